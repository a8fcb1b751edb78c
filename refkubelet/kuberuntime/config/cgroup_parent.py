"""The name of a pod's cgroup, as RunPodSandbox gets it in `cgroup_parent` (CG-010, CG-012)."""

from __future__ import annotations

from refkubelet.model.cgroups.names import cgroup_path, pod_group, words_of
from refkubelet.model.objects import Pod


def cgroup_parent(pod: Pod, root: str, driver: str) -> str:
    """The full path of the pod's cgroup below `root` (e.g. `/kubepods`), the one that the container
    manager makes. `driver` is `cgroupfs` or `systemd`. Raises `CgroupNameError`."""
    return cgroup_path(pod_group(words_of(root), pod), driver)
