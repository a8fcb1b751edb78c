"""The container manager: cgroups with their limits, exclusive CPUs, memory of NUMA nodes and
devices for containers, aligned with each other by the topology manager.

Read `resource_managers` first, which puts the parts together. `cgroups` makes, limits and removes
cgroups; `cpu`, `memory` and `devices` are hint providers (their contract is in `providers`);
`topology` merges their hints. Upstream: pkg/kubelet/cm.
"""
