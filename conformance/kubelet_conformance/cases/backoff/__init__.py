"""Restart back-off and restart policies (BACK-)."""
