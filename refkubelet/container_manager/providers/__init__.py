"""The contract of hint providers: the managers of CPUs, memory and devices.

Read `hints` first: the contract with the topology manager, and sets of NUMA nodes. `active`: the
containers of active pods, and the release of what others have.
Upstream: pkg/kubelet/cm/topologymanager: topology_manager.go, bitmask.
"""
