"""Topology hints, how they are merged, and what a pod is admitted with (CG-083)."""
