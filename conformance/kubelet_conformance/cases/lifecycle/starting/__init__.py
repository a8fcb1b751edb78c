"""How pods start: sandboxes, and what containers are given."""
