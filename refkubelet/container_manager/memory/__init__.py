"""The memory manager: which NUMA nodes the memory of a container comes from (CG-082)."""
