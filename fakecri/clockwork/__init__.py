"""What drives the core: its time, and the files that it wants written.

What must never happen here: the core's clock and the running loop disagree.
"""
