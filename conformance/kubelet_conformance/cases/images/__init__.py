"""Images: policies, pulls, back-off, credentials, turns (BACK-201..213)."""
