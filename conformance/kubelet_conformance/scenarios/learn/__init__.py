"""Makes scenarios of recorded calls."""
