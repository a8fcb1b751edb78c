"""The cgroups above containers, and what they are limited to.

    <cgroupRoot>/kubepods               the node's capacity without what is reserved
      burstable, besteffort             how CPU is shared between the classes
      [burstable|besteffort/]pod<UID>   what the pod asked for; the runtime makes those below

`allocatable` and `node_config` decide, with `model/cgroups`; `tree` touches directories, `manager`
(read it first) does both in the kubelet's order. Rules: CG-010..043. Upstream: pkg/kubelet/cm. What
must never happen here: a write outside `kubepods` and the reserved cgroups that the configuration
names; a process killed that was not found in a pod's cgroup.
"""
