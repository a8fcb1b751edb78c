"""Names of cgroups, as tuples of words, and their paths with both drivers. Pure.

Rules: CG-010..012. Upstream: pkg/kubelet/cm/cgroup_manager_linux.go: ToCgroupfs, ToSystemd;
pod_container_manager_linux.go: GetPodContainerName.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import normpath
from typing import Final

from kubeobjects.pods.qos import QosClass
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.model.qos import qos_class

CgroupName = tuple[str, ...]

SYSTEMD: Final = "systemd"
NODE_CGROUP: Final = "kubepods"
QOS_CGROUPS: Final[Mapping[QosClass, CgroupName]] = {
    "Guaranteed": (),
    "Burstable": ("burstable",),
    "BestEffort": ("besteffort",),
}
_POD: Final = "pod"
_SLICE: Final = ".slice"


class CgroupNameError(ValueError):
    """The name is invalid for a cgroup; the text says why."""


def node_cgroup(cgroup_root: str) -> CgroupName:
    """The cgroup of all pods, below the configured root ("" and "/": the top)."""
    return (*words_of(cgroup_root), NODE_CGROUP)


def pod_cgroup(root: CgroupName, pod: Pod) -> CgroupName:
    """The pod's cgroup below the node's. Raises `CgroupNameError` (CG-011)."""
    return (*root, *QOS_CGROUPS[qos_class(pod)], pod_word(uid(pod)))


def pod_word(pod_uid: str) -> str:
    """The last word of a pod's cgroup. Raises `CgroupNameError` for a UID that would be ambiguous
    in a systemd name (CG-011)."""
    if "/" in pod_uid or "_" in pod_uid:
        raise CgroupNameError(f"invalid character in pod UID {pod_uid!r}: no '/' and no '_'")
    return f"{_POD}{pod_uid}"


def pod_uid(word: str) -> str | None:
    """The UID in the last word of a pod's cgroup; None: it is not a pod's cgroup (CG-043).

    >>> pod_uid("pod12-34"), pod_uid("burstable"), pod_uid("podpod1")
    ('12-34', None, None)
    """
    parts = word.split(_POD)
    return parts[1] if len(parts) == 2 else None


def cgroup_path(name: CgroupName, driver: str) -> str:
    """The path of a cgroup below a hierarchy's mount point, as in RunPodSandbox (CG-010, CG-012).

    >>> cgroup_path(("kubepods", "burstable", "pod12-34"), "cgroupfs")
    '/kubepods/burstable/pod12-34'
    """
    if driver == SYSTEMD:
        return systemd_path(name)
    words = [word for word in name if word]
    return "/" + normpath("/".join(words)) if words else "/"


def systemd_path(name: CgroupName) -> str:
    """The path of slices: every prefix of the name is a directory, and `-` in a word becomes `_`.
    Raises `CgroupNameError` for an empty word, which no slice can have.

    >>> systemd_path(("kubepods", "burstable", "pod12-34"))
    '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice'
    """
    if not name or (set(name) == {""} and len(name) <= 2):
        return "/"
    if any(not word or "/" in word for word in name):
        raise CgroupNameError(
            f"error converting cgroup name [{' '.join(name)}] to systemd format: a slice has no "
            "empty word and no '/' in its name"
        )
    escaped = [word.replace("-", "_") for word in name]
    slices = ("-".join(escaped[: n + 1]) + _SLICE for n in range(len(escaped)))
    return "/" + "/".join(slices)


def parse_path(path: str, driver: str) -> CgroupName:
    """The name of a path of that driver; a systemd path is determined by its last slice.

    >>> parse_path("/kubepods.slice/kubepods-pod12_34.slice", "systemd")
    ('kubepods', 'pod12-34')
    """
    if driver != SYSTEMD:
        return words_of(path)
    stripped = path.rstrip("/")
    last = stripped.rpartition("/")[2] if stripped else path[:1] or "."
    return tuple(word.replace("_", "-") for word in last.removesuffix(_SLICE).split("-"))


def words_of(path: str) -> CgroupName:
    """A cgroupfs path as a name; each text between slashes is a word, even if it is empty.

    >>> words_of("/"), words_of("/a/b"), words_of("a//b")
    ((), ('a', 'b'), ('a', '', 'b'))
    """
    stripped = path.removeprefix("/")
    return tuple(stripped.split("/")) if stripped else ()
