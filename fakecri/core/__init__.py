"""Sandboxes, containers and images as state machines, without I/O or timers.

What must never happen here: a wait, a socket or a file; a clock but the given one.
"""
