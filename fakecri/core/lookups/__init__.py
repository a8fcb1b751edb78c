"""Objects found by id, prefix or name, and listed all the time."""
