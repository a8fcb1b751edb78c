"""Exclusive resources: CPUs, memory of NUMA nodes, devices, and their alignment."""
