"""What to do with a pod: decided over records; the doing is elsewhere.

What must never happen here: a call, a wait, or a look at a clock.
"""
