"""The mounts of a container, and the few files the kubelet makes for them: LIFE-138.

Order on the wire: those of devices, the spec's volumeMounts, /etc/hosts, the termination log last.
Volumes: hostPath, emptyDir and image. Files are small and local, so they are written directly.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from criapi.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Volume, VolumeMount

from refkubelet.directories import make_directory
from refkubelet.model.names import container_dir, pod_dir, pod_volume_dir
from refkubelet.model.objects import Container, Pod, uid
from refkubelet.resources.devices.records import ContainerSettings
from refkubelet.runtime.config.env_file import env_file_values
from refkubelet.runtime.config.environment import EnvFile, FileKey, expand, referenced_files
from refkubelet.runtime.config.sandbox import hostname_and_domain
from refkubelet.runtime.decisions.mount_modes import recursive_read_only
from refkubelet.runtime.records import DEFAULT_RUNTIME, PodRuntime
from refkubelet.untrusted_files import opened_below, read_whole
from simtime import Ids

ETC_HOSTS: Final = "/etc/hosts"
ENV_FILE_BYTES: Final = 1024 * 1024  # what an API server takes of a whole object
EMPTY_DIR_PLUGIN: Final = "kubernetes.io/empty-dir"
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


def volume_mounts(
    container: Container,
    pod: Pod,
    root_dir: Path,
    variables: dict[str, str],
    images: Mapping[str, Any],
    runtime: PodRuntime = DEFAULT_RUNTIME,
) -> list[Any]:
    """The spec's volumeMounts, in order; makes missing emptyDirs. `images`: what to mount for
    volumes that are images, by name. Raises `MountError`, also where a mount must be read-only all
    the way down and the runtime cannot do that."""
    volumes = {v.name: v for v in (pod.spec.volumes if pod.spec else None) or []}
    mounts = []
    for mount in container.volumeMounts or []:
        if mount.name not in volumes:
            raise MountError(
                f"container {container.name} mounts volume {mount.name!r}, which the pod does not "
                f"have (it has: {', '.join(volumes) or 'none'})"
            )
        if mount.name in images:
            mounts.append(_image_mount(mount, images[mount.name], variables))
            continue
        base = _volume_path(volumes[mount.name], pod, root_dir)
        mounts.append(_mount(mount, base, variables, runtime))
    return mounts


def _volume_path(volume: Volume, pod: Pod, root_dir: Path) -> Path:
    if volume.hostPath is not None:
        path = Path(volume.hostPath.path)
        if volume.hostPath.type == "DirectoryOrCreate":
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
        elif volume.hostPath.type == "FileOrCreate" and not path.exists():
            path.touch(mode=0o644)
        return path
    if volume.emptyDir is not None:
        path = Path(pod_volume_dir(str(root_dir), uid(pod), EMPTY_DIR_PLUGIN, volume.name))
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o777)
        return path
    kinds = "hostPath, emptyDir, image"
    raise MountError(f"volume {volume.name!r} is of no kind that is known: {kinds}")


def remove_empty_dirs(pod: Pod, root_dir: Path) -> None:
    """What the pod's emptyDirs hold, and they themselves (LIFE-073). Raises OSError."""
    above = Path(pod_volume_dir(str(root_dir), uid(pod), EMPTY_DIR_PLUGIN, ""))
    if above.is_dir():
        shutil.rmtree(above)


def environment_files(container: Container, pod: Pod, root_dir: Path) -> dict[FileKey, EnvFile]:
    """The files that the container's variables come from (LIFE-137); those of volumes that no
    container of the pod mounts are left out: nobody has set them up. Raises `MountError`."""
    volumes = {v.name: v for v in (pod.spec.volumes if pod.spec else None) or []}
    mounted = _mounted_volumes(pod)
    files: dict[FileKey, EnvFile] = {}
    for name, path in referenced_files(container):
        if name not in volumes or name not in mounted:
            continue
        base = _volume_path(volumes[name], pod, root_dir)
        files[name, path] = _environment_file(base, path.lstrip("/"))
    return files


def _environment_file(volume: Path, path: str) -> EnvFile:
    try:
        with opened_below(volume, path) as file:
            return EnvFile(file.path, env_file_values(file.read(ENV_FILE_BYTES).decode()))
    except (OSError, ValueError):  # the latter: a zero byte in the path, no UTF-8 in the file
        return EnvFile(str(volume / path), None)


def _mounted_volumes(pod: Pod) -> frozenset[str]:
    spec = pod.spec
    if spec is None:
        return frozenset()
    everyone = (*spec.containers, *(spec.initContainers or ()), *(spec.ephemeralContainers or ()))
    return frozenset(mount.name for c in everyone for mount in c.volumeMounts or ())


def _mount(mount: VolumeMount, base: Path, variables: dict[str, str], runtime: PodRuntime) -> Any:
    try:
        recursive = recursive_read_only(mount, runtime.recursive_read_only)
    except ValueError as error:
        raise MountError(str(error)) from error
    sub_path = _sub_path(mount, variables)
    host_path = base / sub_path
    if sub_path and not host_path.exists():
        host_path.mkdir(parents=True)
    return cri.Mount(
        container_path=_container_path(mount),
        host_path=str(host_path),
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


def _image_mount(mount: VolumeMount, image: Any, variables: dict[str, str]) -> Any:
    """An image is mounted by the runtime, always read-only (CRI-099)."""
    return cri.Mount(
        container_path=_container_path(mount),
        readonly=True,
        propagation=PROPAGATION.get(mount.mountPropagation or "None", cri.PROPAGATION_PRIVATE),
        image=image,
        image_sub_path=_sub_path(mount, variables),
    )


def _sub_path(mount: VolumeMount, variables: dict[str, str]) -> str:
    sub_path = mount.subPath or expand(mount.subPathExpr or "", variables)
    if sub_path.startswith("/") or ".." in sub_path.split("/"):
        raise MountError(
            f"subPath of volume mount {mount.name!r} must stay below the volume, not {sub_path!r}"
        )
    return sub_path


def _container_path(mount: VolumeMount) -> str:
    path = mount.mountPath
    return path if path.startswith("/") else f"/{path}"


def wants_etc_hosts(container: Container, pod: Pod, pod_ips: tuple[str, ...]) -> bool:
    """With a pod IP, or on the node's network, unless the user mounts something there."""
    known = bool(pod_ips) or bool(pod.spec and pod.spec.hostNetwork)
    return known and all(m.mountPath != ETC_HOSTS for m in container.volumeMounts or [])


def etc_hosts_mount(pod: Pod, pod_ips: tuple[str, ...], root_dir: Path, cluster_domain: str) -> Any:
    """Write the pod's hosts file, if it is not there already, and mount it."""
    directory = pod_dir(str(root_dir), uid(pod))
    path = os.path.join(directory, "etc-hosts")
    data = hosts_text(pod, pod_ips, cluster_domain).encode()
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
    if pod.spec is not None and pod.spec.hostNetwork:
        node_file = Path(ETC_HOSTS)
        text = HOST_NETWORK_HEADER + (node_file.read_text() if node_file.exists() else "")
    else:
        name, domain = hostname_and_domain(pod, cluster_domain)
        names = f"{name}.{domain}\t{name}" if domain else name
        text = HOSTS_HEADER + "".join(f"{ip}\t{names}\n" for ip in pod_ips)
    aliases = (pod.spec.hostAliases if pod.spec else None) or []
    if aliases:
        lines = "".join(f"{a.ip}\t" + "\t".join(a.hostnames or []) + "\n" for a in aliases)
        text += f"\n# Entries added by HostAliases.\n{lines}"
    return text


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
