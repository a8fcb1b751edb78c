"""How pods end: stops, shutdowns, housekeeping."""
