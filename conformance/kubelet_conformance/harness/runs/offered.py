"""Which features a pair of kubelet and runtime offers to cases on this machine, kind by kind."""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from fakecri.machine.logind_bus import can_serve
from kubelet_conformance.features import Feature
from kubelet_conformance.harness.containerd.versions import release_of
from kubelet_conformance.harness.machines.cgroup_trees import machine_version
from kubelet_conformance.harness.machines.disks import why_no_disk

IN_PROCESS: Final = "refkubelet"
PROCESS: Final = "refkubelet-process"
FAKE: Final = "fake"
FAKE_SOCKET: Final = "fake-socket"
CONTAINERD: Final = "containerd"

APPARMOR: Final = Path("/sys/module/apparmor/parameters/enabled")

Features = set[Feature]


def kubelet_features(kubelet: str) -> Features:
    """Features of the kubelet itself, and of what the suite can give it."""
    features = {
        *(Feature.API, Feature.STATUS, Feature.PRESSURE, Feature.RESTART, Feature.IMAGE_GC),
        Feature.MANIFEST_URL,
        *(Feature.FAULTS, Feature.OUTSIDE_KILL),  # by the proxy in front of every runtime
    }
    is_ours = kubelet in (IN_PROCESS, PROCESS)
    if is_ours:
        features |= {Feature.SHUTDOWN_AGAIN, Feature.CONTAINER_GROUPS}
    else:
        features.add(Feature.ALL_FIELDS)
    if kubelet != IN_PROCESS and os.geteuid() == 0:
        features.add(Feature.MOUNTS)
    if is_ours or os.geteuid() == 0:  # others need a mount for a plugin directory of their own
        features.add(Feature.DEVICE_PLUGINS)
    return features


def machine_features(*, virtual: bool) -> Features:
    """Features of the machine: of a fake one in a virtual run, else of this one."""
    if virtual:
        return {
            *(Feature.VIRTUAL_TIME, Feature.NODE_RESOURCES, Feature.SHUTDOWN, Feature.OWN_DISK),
            *(Feature.SPLIT_DISK, Feature.APPARMOR, Feature.NO_APPARMOR),
            *(Feature.MEMORY_NOTIFICATION, Feature.TWO_FAMILIES),
            *(Feature.CGROUPS, Feature.CGROUP_V1, Feature.CGROUP_V2, Feature.SYSTEMD_CGROUPS),
        }
    features = set()
    if can_serve():
        features.add(Feature.SHUTDOWN)
    if not why_no_disk():
        features.add(Feature.OWN_DISK)
    features.add(Feature.APPARMOR if _has_apparmor() else Feature.NO_APPARMOR)
    # Here, not above: runs without a kubelet program start earlier.
    from kubelet_conformance.harness.kubelets.program import own_addresses

    if all(own_addresses()):
        features.add(Feature.TWO_FAMILIES)
    version = machine_version()
    if version is not None:
        features |= {Feature.CGROUPS, Feature.CGROUP_V1 if version == 1 else Feature.CGROUP_V2}
    return features


def _has_apparmor() -> bool:
    """Whether this machine's kernel has AppArmor switched on."""
    try:
        return APPARMOR.read_text().strip() == "Y"
    except OSError:
        return False


def given_features(kubelet: str, runtime: str) -> Features:
    """What a machine of numbers adds, which a kubelet binary on the fake runtime can be given."""
    is_ours = kubelet in (IN_PROCESS, PROCESS)
    if is_ours or runtime not in (FAKE, FAKE_SOCKET):
        return set()
    # Here, not above: runs without a kubelet program start earlier.
    from kubelet_conformance.harness.machines.given.machine import why_no_cgroup_v1, why_no_machine

    if why_no_machine():
        return set()
    features = {Feature.NODE_RESOURCES, Feature.CGROUPS, Feature.CGROUP_V2}
    return features if why_no_cgroup_v1() else {*features, Feature.CGROUP_V1}


def wants_given_machine(needs: AbstractSet[Feature], version: int | None) -> bool:
    """Whether a case with a kubelet process is run on a given machine: for its numbers, or for
    cgroups of another version than this machine's. `version`: that of this machine, None without
    cgroups that can be used. Only offered features are asked for."""
    if Feature.NODE_RESOURCES in needs:
        return True
    if Feature.CGROUP_V1 in needs:
        return version != 1
    if Feature.CGROUP_V2 in needs:
        return version != 2
    return Feature.CGROUPS in needs and version is None


def runtime_features(runtime: str, containerd_version: str) -> Features:
    """Features of the runtime and its pods; `containerd_version` "": the default one.

    A runtime given by its socket cannot be told of a registry, and what else it has is not known.
    Containerd has image volumes, and events for every client, from version 2 on.
    """
    by_socket = runtime.startswith("unix://")
    features = set() if by_socket else {Feature.REGISTRY}
    if runtime != FAKE_SOCKET:
        features.add(Feature.MEMORY_USE)
    if runtime != CONTAINERD:
        features.add(Feature.POD_NETWORK)
    if runtime in (FAKE, FAKE_SOCKET):
        features |= {Feature.POD_SERVERS, Feature.SHORTAGE, Feature.USER_NAMESPACES}
        features |= {Feature.BEHAVIORS, Feature.STREAMED_LISTS}
    new = runtime != CONTAINERD or release_of(containerd_version or None).config_version >= 3
    if new and not by_socket:
        features |= {Feature.IMAGE_VOLUMES, Feature.EVENTS}
    return features
