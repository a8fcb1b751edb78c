"""The name of a pod's cgroup, as RunPodSandbox gets it in `cgroup_parent` (CG-010, CG-012)."""

from __future__ import annotations

from typing import Final

from refkubelet.model.objects import Pod, uid
from refkubelet.model.qos import qos_class

QOS_GROUPS: Final = {"Guaranteed": (), "Burstable": ("burstable",), "BestEffort": ("besteffort",)}


def cgroup_parent(pod: Pod, root: str, driver: str) -> str:
    """The full path of the pod's cgroup below `root` (e.g. `/kubepods`).

    `driver` is `cgroupfs` or `systemd`. Upstream: pod_container_manager_linux.go.
    """
    names = [part for part in root.split("/") if part]
    names += [*QOS_GROUPS[qos_class(pod)], f"pod{uid(pod)}"]
    return systemd_path(names) if driver == "systemd" else "/" + "/".join(names)


def systemd_path(names: list[str]) -> str:
    """Slices: every prefix is a directory, and `-` inside a name becomes `_`.

    >>> systemd_path(["kubepods", "burstable", "pod12-34"])
    '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice'
    """
    escaped = [name.replace("-", "_") for name in names]
    slices = ("-".join(escaped[: n + 1]) + ".slice" for n in range(len(escaped)))
    return "/" + "/".join(slices)
