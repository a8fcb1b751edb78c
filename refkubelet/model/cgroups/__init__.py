"""The names and limits of the cgroups of pods, QoS classes and the node.

Read `values` first: the limits from a pod's spec, the sums of a QoS class and the node's
allocatable amounts. `names`: names and paths. `limits`: a set of limits, and the kernel's files for
it. `cpu_shares`: CPU amounts as shares, weights and quotas. `refkubelet.container_manager.cgroups`
writes them to the machine.
"""
