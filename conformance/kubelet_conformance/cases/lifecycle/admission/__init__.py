"""Which pods a node takes."""
