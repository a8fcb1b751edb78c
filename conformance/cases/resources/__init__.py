"""Exclusive resources: CPUs, memory of NUMA nodes, and their alignment."""
