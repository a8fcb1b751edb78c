"""A run of the suite: what was chosen, the parts of each case, its outcome."""
