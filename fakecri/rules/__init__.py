"""What tests program: the words for containers, faults of calls, and what both match.

What must never happen here: a rule that outlives its block, or that is not listed.
"""
