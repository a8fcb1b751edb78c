"""The CRI methods over the core."""
