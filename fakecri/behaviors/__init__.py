"""What containers do, as plain data: the behaviours, the words for them, and the plan of one run.

Pure. What must never happen here: a behaviour that is impossible is accepted.
"""
