"""What a case may need of a kubelet and a runtime, and how binding a case is.

This module knows nothing of the cases, which are registered above it.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class Level(IntEnum):
    """How binding a rule is, as the spec marks it. By default only MUST cases run."""

    MUST = 1
    SHOULD = 2
    DETAIL = 3


class Feature(Enum):
    """What a pair of kubelet and runtime can offer to a case; the value is the reason shown for a
    skip."""

    API = "an API server for the kubelet"
    STATUS = "a readable pod status (/pods)"
    FAULTS = "a runtime whose calls can be made to fail"
    NODE_RESOURCES = "a node whose memory and disks can be set"
    SPLIT_DISK = "a node whose images alone have a disk, as only CRI-O tells (over its own HTTP)"
    SHORTAGE = (
        "a node that runs short when told so, and pods whose use is what they declare (a fake's)"
    )
    MEMORY_USE = "containers that really take the node's memory and processes"
    OWN_DISK = "a disk for the kubelet's root directory that a case may fill"
    BEHAVIORS = "a runtime that plays behaviours and can be crashed (a fake's)"
    PRESSURE = "a node that can be put under pressure by configuration"
    VIRTUAL_TIME = "virtual time, or --long (the case lasts minutes)"
    PROGRAM_TIME = "programs of the kubelet that live in its time (not in jumping time)"
    MANIFEST_URL = "a web server with manifests"
    IMAGE_GC = "a kubelet that removes unused images"
    REGISTRY = "a registry for the runtime to pull from"
    IMAGE_VOLUMES = "a runtime that mounts images (containerd 2.1 or newer)"
    USER_NAMESPACES = (
        "a runtime with user namespaces and recursive read-only mounts (a fake's; hosts differ)"
    )
    APPARMOR = "a machine with AppArmor (in virtual time, or this one has it)"
    NO_APPARMOR = "a machine without AppArmor (in virtual time, or this one has none)"
    MEMORY_NOTIFICATION = "cgroups that tell when memory runs short (in virtual time)"
    RESTART = "a kubelet that can be stopped and started"
    POD_NETWORK = "pods whose addresses the kubelet can reach"
    POD_SERVERS = "containers that speak HTTPS and gRPC and record connections (a fake's)"
    CGROUPS = "pods whose cgroups the suite can see"
    CONTAINER_GROUPS = "a kubelet that finds a fake's containers in cgroups (cAdvisor does not)"
    CGROUP_V1 = "a node with cgroup v1"
    CGROUP_V2 = "a node with cgroup v2"
    SYSTEMD_CGROUPS = "a node whose cgroups have the names of systemd's slices"
    STREAMED_LISTS = "a runtime that streams its lists (a fake's; no containerd does yet)"
    EVENTS = "a runtime that is known to stream its events"
    DEVICE_PLUGINS = "a kubelet whose device-plugins directory is the case's own"
    SHUTDOWN = "a machine whose shutdown the kubelet is told of"
    SHUTDOWN_AGAIN = "a kubelet known to keep its second shutdown lock (1.36.2 may close it)"
    TWO_FAMILIES = "a machine with an IPv4 and an IPv6 address"
    MOUNTS = (
        "a kubelet that mounts subPaths and filesystems in memory (as root; not in virtual time)"
    )
    ALL_FIELDS = "a kubelet that acts on all fields and gates (refkubelet tells those it does not)"
    OUTSIDE_KILL = "containers that can be killed behind the kubelet's back"
