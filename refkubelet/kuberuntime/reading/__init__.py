"""Reads the runtime: lists and statuses of pods, and its events."""
