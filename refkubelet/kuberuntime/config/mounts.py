"""The mounts of a container as CRI messages (LIFE-138, NODE-201). Pure.

Their order: devices, the spec's volumeMounts, /etc/hosts, the termination log. Before, the volumes
(`refkubelet.volumes`), subpaths and the kubelet's own files (`kuberuntime.run_options`) are made.
Upstream: pkg/kubelet/kubelet_pods.go: makeMounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Volume, VolumeMount
from msgspec import Struct, field

from refkubelet.container_manager.devices.types import ContainerSettings
from refkubelet.cri.records import DEFAULT_RUNTIME, PodRuntime
from refkubelet.kuberuntime.config.environment import expand, references
from refkubelet.model.names import pod_volume_dir
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import uid
from refkubelet.volumes.claims import VolumeOnNode
from refkubelet.volumes.plan import (
    CONTENT,
    HOST_PATH,
    KINDS,
    PLUGINS,
    SubPathError,
    check_sub_path,
    kind_of,
    recursive_read_only,
)

PROPAGATION: Final[dict[str, Any]] = {
    "None": cri.PROPAGATION_PRIVATE,
    "HostToContainer": cri.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": cri.PROPAGATION_BIDIRECTIONAL,
}


class MountError(Exception):
    """A mount cannot be made; the container waits with reason CreateContainerConfigError."""


class MountFacts(Struct, frozen=True):
    """The inputs for mounts besides the spec."""

    root_dir: str
    """The kubelet's own directory."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The container's variables, for subPathExpr."""
    images: Mapping[str, Any] = field(default_factory=dict)
    """The ImageSpec of each image volume, by the volume's name."""
    claimed: Mapping[str, VolumeOnNode] = field(default_factory=dict)
    """Where the volumes of claims are, by the volume's name."""
    runtime: PodRuntime = DEFAULT_RUNTIME
    """The pod's settings of the runtime."""
    parts: Mapping[int, str | SubPathError] = field(default_factory=dict)
    """By index of the volumeMount: the path of its subpath on the node, or an error. Without an
    entry the whole volume is mounted."""


class MountSource(Struct, frozen=True):
    """The source of a volumeMount: the volume's path on the node ("" for an image volume), the
    subpath in it ("" for all of it), and whether the volume is always read-only."""

    path: str
    sub_path: str
    read_only: bool = False


def mount_source(
    mount: VolumeMount, container: Container, pod: Pod, facts: MountFacts
) -> MountSource:
    """The source of a container's volumeMount. Raises `MountError` if the pod has no such volume,
    or if the subpath is invalid."""
    volumes = {v.name: v for v in pod.spec.volumes or []}
    if mount.name not in volumes:
        raise MountError(
            f"container {container.name} mounts volume {mount.name!r}, which the pod does not "
            f"have (it has: {', '.join(volumes) or 'none'})"
        )
    sub_path = _sub_path(mount, facts.variables)
    if mount.name in facts.images:
        return MountSource("", sub_path)
    claimed = facts.claimed.get(mount.name)
    if claimed is not None:
        return MountSource(claimed.path, sub_path, read_only=claimed.read_only)
    volume = volumes[mount.name]
    path = volume_path(volume, pod, facts.root_dir)
    return MountSource(path, sub_path, read_only=kind_of(volume) in CONTENT)


def volume_mounts(container: Container, pod: Pod, facts: MountFacts) -> list[Any]:
    """The spec's volumeMounts, in order. Raises `MountError`, also if a mount must be recursively
    read-only and the runtime does not support that."""
    mounts = []
    for index, mount in enumerate(container.volumeMounts or []):
        source = mount_source(mount, container, pod, facts)
        if mount.name in facts.images:
            mounts.append(_image_mount(mount, facts.images[mount.name], source.sub_path))
            continue
        host_path = facts.parts.get(index, source.path)
        if isinstance(host_path, SubPathError):
            raise MountError(str(host_path))
        mounts.append(_mount(mount, host_path, facts.runtime, read_only=source.read_only))
    return mounts


def volume_path(volume: Volume, pod: Pod, root_dir: str) -> str:
    """The path of a volume on the node. Raises `MountError` for an unknown kind of volume."""
    kind = kind_of(volume)
    if kind == HOST_PATH and volume.hostPath is not None:
        return volume.hostPath.path
    if kind in PLUGINS:
        return pod_volume_dir(root_dir, uid(pod), PLUGINS[kind], volume.name)
    raise MountError(f"volume {volume.name!r} is none of the known kinds: {', '.join(KINDS)}")


def _mount(mount: VolumeMount, host_path: str, runtime: PodRuntime, *, read_only: bool) -> Any:
    try:
        recursive = recursive_read_only(mount, runtime.recursive_read_only)
    except ValueError as error:
        raise MountError(f"failed to resolve recursive read-only mode: {error}") from error
    return cri.Mount(
        container_path=_container_path(mount),
        host_path=host_path,
        readonly=bool(mount.readOnly) or read_only,
        propagation=PROPAGATION.get(mount.mountPropagation or "None", cri.PROPAGATION_PRIVATE),
        recursive_read_only=recursive,
    )


def with_users(mounts: list[Any], runtime: PodRuntime) -> list[Any]:
    """`mounts`, with the pod's ID mapping if it has a user namespace, so that files keep their
    owners in the container."""
    if runtime.users is None:
        return mounts
    ids = cri.IDMapping(host_id=runtime.users.first, length=runtime.users.length)
    mapped = [cri.Mount(uidMappings=[ids], gidMappings=[ids]) for _ in mounts]
    for new, mount in zip(mapped, mounts, strict=True):
        new.MergeFrom(mount)
    return mapped


def device_mounts(settings: ContainerSettings) -> list[Any]:
    """The mounts of the container's devices, which come before its own (CG-084)."""
    return [
        cri.Mount(
            container_path=mount.container_path,
            host_path=mount.host_path,
            readonly=mount.read_only,
        )
        for mount in settings.mounts
    ]


def _image_mount(mount: VolumeMount, image: Any, sub_path: str) -> Any:
    """An image is mounted by the runtime, always read-only (CRI-099)."""
    return cri.Mount(
        container_path=_container_path(mount),
        readonly=True,
        propagation=PROPAGATION.get(mount.mountPropagation or "None", cri.PROPAGATION_PRIVATE),
        image=image,
        image_sub_path=sub_path,
    )


def _sub_path(mount: VolumeMount, variables: Mapping[str, str]) -> str:
    """The subpath with its variables replaced; "" for the whole volume. Raises `MountError`."""
    sub_path = mount.subPath or ""
    if mount.subPathExpr:
        missing = sorted(n for n in references(mount.subPathExpr) if not variables.get(n))
        if missing:
            raise MountError(f"missing value for {', '.join(missing)}")
        sub_path = expand(mount.subPathExpr, variables)
    try:
        check_sub_path(sub_path)
    except SubPathError as error:
        raise MountError(str(error)) from None
    return sub_path


def _container_path(mount: VolumeMount) -> str:
    path = mount.mountPath
    return path if path.startswith("/") else f"/{path}"
