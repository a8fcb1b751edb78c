"""What the managers of CPUs, memory and devices have in common: each is a hint provider.

`hints`: the contract between hint providers and the topology manager, and sets of NUMA nodes; read
it first. `active`: the containers that count, and what is left over from others.
Upstream: pkg/kubelet/cm/topologymanager: topology_manager.go, bitmask.
"""
