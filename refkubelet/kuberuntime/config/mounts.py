"""The mounts of a container, and the few files the kubelet makes for them: LIFE-138.

Order on the wire: those of devices, the spec's volumeMounts, /etc/hosts, the termination log last.
The volumes themselves are set up before (`refkubelet.volumes`). Files are small and local, so they
are written directly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from criapi.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Volume, VolumeMount

from refkubelet.container_manager.devices.records import ContainerSettings
from refkubelet.cri.records import DEFAULT_RUNTIME, PodRuntime
from refkubelet.host.directories import make_directory
from refkubelet.host.untrusted_files import opened_below, read_whole
from refkubelet.kuberuntime.config.env_file import env_file_values
from refkubelet.kuberuntime.config.environment import (
    EnvFile,
    FileKey,
    expand,
    referenced_files,
    references,
)
from refkubelet.kuberuntime.config.sandbox import hostname_and_domain
from refkubelet.kuberuntime.decisions.mount_modes import recursive_read_only
from refkubelet.model.names import container_dir, pod_dir, pod_volume_dir
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import uid, uses_host_network
from refkubelet.volumes.empty_dirs import PLUGIN as EMPTY_DIR_PLUGIN
from refkubelet.volumes.mounting import Mounts, NoMounts
from refkubelet.volumes.plan import EMPTY_DIR, HOST_PATH, KINDS, kind_of, used_volumes
from refkubelet.volumes.sub_paths import SubPathError, SubPathUse, check_sub_path, prepare
from simtime import Ids

ETC_HOSTS: Final = "/etc/hosts"
ENV_FILE_BYTES: Final = 1024 * 1024  # what an API server takes of a whole object
PROPAGATION: Final[dict[str, Any]] = {
    "None": cri.PROPAGATION_PRIVATE,
    "HostToContainer": cri.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": cri.PROPAGATION_BIDIRECTIONAL,
}
HOSTS_HEADER: Final = (
    "# Kubernetes-managed hosts file.\n"
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)
HOST_NETWORK_HEADER: Final = "# Kubernetes-managed hosts file (host network).\n"


class MountError(Exception):
    """A mount cannot be made; reason CreateContainerConfigError."""


@dataclass(frozen=True, slots=True)
class MountFacts:
    """What mounts are made of beside the spec: the kubelet's directory, the container's variables,
    what to mount for volumes that are images (by name), what the pod asks of its runtime."""

    root_dir: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, Any] = field(default_factory=dict)
    runtime: PodRuntime = DEFAULT_RUNTIME
    mounts: Mounts = field(default_factory=NoMounts)


def volume_mounts(container: Container, pod: Pod, facts: MountFacts) -> list[Any]:
    """The spec's volumeMounts, in order; their volumes are there already. Raises `MountError`, also
    where a mount must be read-only all the way down and the runtime cannot do that."""
    volumes = {v.name: v for v in pod.spec.volumes or []}
    mounts = []
    for index, mount in enumerate(container.volumeMounts or []):
        if mount.name not in volumes:
            raise MountError(
                f"container {container.name} mounts volume {mount.name!r}, which the pod does not "
                f"have (it has: {', '.join(volumes) or 'none'})"
            )
        sub_path = _sub_path(mount, facts.variables)
        if mount.name in facts.images:
            mounts.append(_image_mount(mount, facts.images[mount.name], sub_path))
            continue
        path = _volume_path(volumes[mount.name], pod, facts.root_dir)
        if sub_path:
            use = SubPathUse(str(facts.root_dir), uid(pod), mount.name, container.name, index)
            path = _part(path, sub_path, use, facts.mounts)
        mounts.append(_mount(mount, path, facts.runtime))
    return mounts


def _part(path: str, sub_path: str, use: SubPathUse, mounts: Mounts) -> str:
    try:
        return prepare(path, sub_path, use, mounts)
    except SubPathError as error:
        raise MountError(str(error)) from None


def _volume_path(volume: Volume, pod: Pod, root_dir: Path) -> str:
    """Where the volume is; it was set up before any container (NODE-201)."""
    kind = kind_of(volume)
    if kind == HOST_PATH and volume.hostPath is not None:
        return volume.hostPath.path
    if kind == EMPTY_DIR:
        return pod_volume_dir(str(root_dir), uid(pod), EMPTY_DIR_PLUGIN, volume.name)
    raise MountError(f"volume {volume.name!r} is of no kind that is known: {', '.join(KINDS)}")


def environment_files(container: Container, pod: Pod, root_dir: Path) -> dict[FileKey, EnvFile]:
    """The files that the container's variables come from (LIFE-137); those of volumes that no
    container of the pod mounts are left out: nobody has set them up. Raises `MountError`."""
    volumes = {v.name: v for v in pod.spec.volumes or []}
    mounted = used_volumes(pod)
    files: dict[FileKey, EnvFile] = {}
    for name, path in referenced_files(container):
        if name not in volumes or name not in mounted:
            continue
        base = _volume_path(volumes[name], pod, root_dir)
        files[name, path] = _environment_file(base, path.lstrip("/"))
    return files


def _environment_file(volume: str, path: str) -> EnvFile:
    try:
        with opened_below(volume, path) as file:
            return EnvFile(file.path, env_file_values(file.read(ENV_FILE_BYTES).decode()))
    except (OSError, ValueError):  # the latter: a zero byte in the path, no UTF-8 in the file
        return EnvFile(os.path.join(volume, path), None)


def _mount(mount: VolumeMount, host_path: str, runtime: PodRuntime) -> Any:
    try:
        recursive = recursive_read_only(mount, runtime.recursive_read_only)
    except ValueError as error:
        raise MountError(f"failed to resolve recursive read-only mode: {error}") from error
    return cri.Mount(
        container_path=_container_path(mount),
        host_path=host_path,
        readonly=bool(mount.readOnly),
        propagation=PROPAGATION.get(mount.mountPropagation or "None", cri.PROPAGATION_PRIVATE),
        recursive_read_only=recursive,
    )


def with_users(mounts: list[Any], runtime: PodRuntime) -> list[Any]:
    """All of them with the pod's own ids, if it has any: files keep their owners inside."""
    if runtime.users is not None:
        ids = cri.IDMapping(host_id=runtime.users.first, length=runtime.users.length)
        for mount in mounts:
            mount.uidMappings.append(ids)
            mount.gidMappings.append(ids)
    return mounts


def device_mounts(settings: ContainerSettings) -> list[Any]:
    """What the container's devices want mounted, before its own mounts (CG-084)."""
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
    """ "" for the whole volume. Raises `MountError`."""
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


def wants_etc_hosts(container: Container, pod: Pod, pod_ips: tuple[str, ...]) -> bool:
    """With a pod IP, or on the node's network, unless the user mounts something there."""
    known = bool(pod_ips) or uses_host_network(pod)
    return known and all(m.mountPath != ETC_HOSTS for m in container.volumeMounts or [])


def etc_hosts_mount(pod: Pod, pod_ips: tuple[str, ...], root_dir: Path, cluster_domain: str) -> Any:
    """Write the pod's hosts file, if it is not there already, and mount it."""
    directory = pod_dir(str(root_dir), uid(pod))
    path = os.path.join(directory, "etc-hosts")
    data = hosts_text(pod, pod_ips, cluster_domain).encode(errors="surrogateescape")
    if not _holds(path, data):
        make_directory(directory)
        Path(path).write_bytes(data)
        os.chmod(path, 0o644)
    return cri.Mount(container_path=ETC_HOSTS, host_path=path)


def _holds(path: str, data: bytes) -> bool:
    """Whether the file is these bytes; containers may have written any number of others."""
    try:
        return read_whole(path, len(data), follow_links=False) == data
    except OSError:
        return False


def hosts_text(pod: Pod, pod_ips: tuple[str, ...], cluster_domain: str) -> str:
    """The hosts file: the node's on its network, else the fixed part and the pod's name; then
    hostAliases."""
    if uses_host_network(pod):
        text = HOST_NETWORK_HEADER + _node_hosts()
    else:
        name, domain = hostname_and_domain(pod, cluster_domain)
        names = f"{name}.{domain}\t{name}" if domain else name
        text = HOSTS_HEADER + "".join(f"{ip}\t{names}\n" for ip in pod_ips)
    aliases = pod.spec.hostAliases or []
    if aliases:
        lines = "".join(f"{a.ip}\t" + "\t".join(a.hostnames or []) + "\n" for a in aliases)
        text += f"\n# Entries added by HostAliases.\n{lines}"
    return text


def _node_hosts() -> str:
    """The node's own file, if there is one; bytes that are no UTF-8 stay what they are."""
    file = Path(ETC_HOSTS)
    return file.read_text(errors="surrogateescape") if file.exists() else ""


def termination_log_mount(container: Container, pod: Pod, root_dir: Path, ids: Ids) -> Any | None:
    """A fresh, empty, world-writable file for the termination message; None without a path."""
    if not container.terminationMessagePath:
        return None
    directory = container_dir(str(root_dir), uid(pod), container.name)
    make_directory(directory)
    path = os.path.join(directory, ids.hex(8))
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.fchmod(descriptor, 0o666)
    os.close(descriptor)
    return cri.Mount(container_path=container.terminationMessagePath, host_path=path)
