"""What of the node containers get: cgroups with their limits, exclusive CPUs, memory of NUMA nodes
and devices, aligned with each other by the topology manager.

`cgroups` has limits and the life of cgroups; `cpu`, `memory` and `devices` are hint providers,
whose contract is in `providers`; `topology` merges their hints; `resource_managers` puts them
together and is the module to read first. Upstream: pkg/kubelet/cm.
"""
