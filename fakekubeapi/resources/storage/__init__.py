"""Volumes, claims, attachments, and the drivers of storage."""
