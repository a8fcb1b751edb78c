"""Volumes: what they hold, who may read it, how it changes, and pods that wait (NODE-2)."""
