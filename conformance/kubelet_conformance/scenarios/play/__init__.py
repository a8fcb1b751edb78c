"""Plays a scenario on a node. Read `playing` first."""
