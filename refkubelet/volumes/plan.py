"""Decides which volumes a pod uses, their kinds, and whether they can be set up. Pure.

What must never happen here: a container starts without a volume or device that it requested; a
mount that must be recursively read-only is not.
Upstream: pkg/kubelet/volumemanager/populator, pkg/volume/util/util.go: GetPodVolumeNames;
pkg/kubelet/kubelet_pods.go: resolveRecursiveReadOnly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lightkube.models.core_v1 import Volume, VolumeMount

from kubeobjects.golang.strconv import quoted
from refkubelet.model.objects import Pod, to_dict
from refkubelet.model.pod import all_containers
from refkubelet.volumes.claims import no_plugin

HOST_PATH: Final = "hostPath"
EMPTY_DIR: Final = "emptyDir"
EMPTY_DIR_PLUGIN: Final = "kubernetes.io/empty-dir"
IMAGE: Final = "image"
CONFIG_MAP: Final = "configMap"
SECRET: Final = "secret"
PROJECTED: Final = "projected"
DOWNWARD_API: Final = "downwardAPI"
PLUGINS: Final[Mapping[str, str]] = {
    EMPTY_DIR: EMPTY_DIR_PLUGIN,
    CONFIG_MAP: "kubernetes.io/configmap",
    SECRET: "kubernetes.io/secret",
    PROJECTED: "kubernetes.io/projected",
    DOWNWARD_API: "kubernetes.io/downward-api",
}
"""The kinds of volumes that the kubelet makes in the pod's directory, and their plugins."""
CONTENT: Final = (CONFIG_MAP, SECRET, PROJECTED, DOWNWARD_API)
"""The kinds that are filled with what the API server has; containers have them read-only, and each
sync of the pod fills them anew (NODE-201.3)."""
CLAIMED: Final = ("persistentVolumeClaim", "ephemeral")
CSI: Final = "csi"
KINDS: Final = (*PLUGINS, HOST_PATH, IMAGE, CSI)
IN_MEMORY: Final = "Memory"
SUB_PATHS: Final = "volume-subpaths"
"""The directory of bound subpaths, in that of the pod."""
OWN_MOUNTS: Final = (SUB_PATHS, *(f"volumes/{name.replace('/', '~')}" for name in PLUGINS.values()))
"""The directories in that of a pod where the kubelet itself mounts."""
LOCAL_PLUGIN: Final = "kubernetes.io/local-volume"
LOCAL_MOUNTS: Final = f"volumes/{LOCAL_PLUGIN.replace('/', '~')}"
"""The one where it mounts directories that are not its own, and whose content it never deletes."""


class SubPathError(Exception):
    """A subpath cannot be used; the text reveals nothing about the node's files."""


def used_volumes(pod: Pod) -> dict[str, Volume | None]:
    """The volumes that containers mount or use as devices, by name, in the order of the spec
    (NODE-201); None for a volume that the pod does not have."""
    used_names = dict.fromkeys(_wanted(pod))
    volumes = {v.name: v for v in pod.spec.volumes or ()}
    specified: dict[str, Volume | None] = {n: v for n, v in volumes.items() if n in used_names}
    return specified | {name: None for name in used_names if name not in volumes}


def kind_of(volume: Volume) -> str:
    """The kind of a volume: the name of its source in the API; without a source emptyDir."""
    return next((key for key in to_dict(volume) if key != "name"), EMPTY_DIR)


def refusals(pod: Pod) -> dict[str, str]:
    """Why the pod's volumes cannot be set up, by volume name (NODE-202); empty: they can."""
    devices = frozenset(d.name for c in all_containers(pod) for d in c.volumeDevices or ())
    problems = (
        (name, _refusal(volume, as_device=name in devices))
        for name, volume in used_volumes(pod).items()
    )
    return {name: why for name, why in problems if why is not None}


def _refusal(volume: Volume | None, *, as_device: bool) -> str | None:
    if volume is None:
        return "the pod has no volume of that name"
    kind = kind_of(volume)
    if kind in CLAIMED:
        return None  # what its claim is, decides
    if kind not in KINDS:
        return no_plugin(volume.name)
    if as_device:
        return f"volume {volume.name} has volumeMode Filesystem, but is specified in volumeDevices"
    return None


def refusal_message(pod: Pod, refused: Mapping[str, str]) -> str:
    """Why the pod's volumes cannot be mounted: the reasons of those that cannot be set up."""
    reasons = list(dict.fromkeys(refused.values()))
    return unmounted_message(used_volumes(pod), refused, "; ".join(reasons))


def unmounted_message(unmounted: Iterable[str], unprocessed: Iterable[str], why: str) -> str:
    """The error of a sync whose volumes are not there (NODE-202).

    >>> unmounted_message({"b", "a"}, (), "late")
    'unmounted volumes=[a b], unattached volumes=[], failed to process volumes=[]: late'
    """
    return (
        f"unmounted volumes=[{' '.join(sorted(unmounted))}], unattached volumes=[], "
        f"failed to process volumes=[{' '.join(sorted(unprocessed))}]: {why}"
    )


def recursive_read_only(mount: VolumeMount, supported: bool) -> bool:
    """Whether the mount is recursively read-only. Raises ValueError if it must be and cannot."""
    mode = mount.recursiveReadOnly
    if mode in (None, "Disabled"):
        return False
    wish = f"volume {quoted(mount.name)} requested recursive read-only mode, but it is not"
    if not mount.readOnly:
        raise ValueError(f"{wish} read-only")
    if mount.mountPropagation not in (None, "None"):
        raise ValueError(f"{wish} compatible with propagation {quoted(mount.mountPropagation)}")
    if mode == "Enabled" and not supported:
        raise ValueError(f"{wish} supported by the runtime")
    if mode not in ("Enabled", "IfPossible"):
        raise ValueError(f"unknown recursive read-only mode {quoted(mode)}")
    return supported


def check_sub_path(path: str) -> None:
    """Raise `SubPathError` for a subPath that would lead out of the volume."""
    if path.startswith("/"):
        raise SubPathError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise SubPathError(f"unable to provision SubPath `{path}`: must not contain '..'")


def _wanted(pod: Pod) -> Iterator[str]:
    for container in all_containers(pod):
        yield from (mount.name for mount in container.volumeMounts or ())
        yield from (device.name for device in container.volumeDevices or ())
