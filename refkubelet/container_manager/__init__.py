"""What of the node containers get: cgroups with their limits, exclusive CPUs, memory of NUMA nodes
and devices, aligned with each other by the topology manager. Upstream: pkg/kubelet/cm.
"""
