"""Lifecycle hooks."""
