"""What the main programs of containers do: run, serve, listen."""
