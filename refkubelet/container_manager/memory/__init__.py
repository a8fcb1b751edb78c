"""The memory manager: assigns memory of NUMA nodes to containers (CG-082). Read `manager` first;
`static` decides."""
