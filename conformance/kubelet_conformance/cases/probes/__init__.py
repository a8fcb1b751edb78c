"""Probes: when they run, what they ask, and what follows from the answers (PROBE-)."""
