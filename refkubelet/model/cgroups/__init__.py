"""What the cgroups of pods, QoS classes and the node are called and limited to.

`names`: where a cgroup is. `values`: the limits that follow from a pod's spec, the sums of a QoS
class and the node's allocatable amounts; read this first. `limits`: a set of limits, and the files
that say it to the kernel. `cpu_shares`: CPU amounts as shares, weights and quotas. What is written
to the machine: `refkubelet.container_manager.cgroups`.
"""
