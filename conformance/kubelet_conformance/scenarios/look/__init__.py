"""What a scenario sees of its node, and expects."""
