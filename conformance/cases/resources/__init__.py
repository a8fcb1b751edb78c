"""Exclusive resources of the node: CPUs, memory of NUMA nodes, devices."""
