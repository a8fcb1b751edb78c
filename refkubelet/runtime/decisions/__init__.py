"""What to do with a pod: decided over records; the doing is elsewhere."""
