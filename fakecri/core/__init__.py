"""Sandboxes, containers and images as state machines, without I/O or timers."""
