"""What tests program: the words for containers, faults of calls, and what both match."""
