"""Container logs: their rotation, and the termination message."""
