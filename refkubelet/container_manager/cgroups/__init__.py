"""The cgroups above containers, and their limits.

    <cgroupRoot>/kubepods               the node's capacity without reservations
      burstable, besteffort             the QoS classes: their shares of the CPU
      [burstable|besteffort/]pod<UID>   the pod's limits; the runtime makes the cgroups below

Read `manager` first. `allocatable` and `node_config` decide, with `model/cgroups`; `tree` reads and
writes directories and files. Rules: CG-010..043. Upstream: pkg/kubelet/cm. What must never happen
here: a write outside `kubepods` and the configured reserved cgroups; a process is killed that is
not in a pod's cgroup.
"""
