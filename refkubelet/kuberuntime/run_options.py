"""The variables and mounts of a container, and the files that the kubelet makes for them (LIFE-136,
LIFE-137, LIFE-138, NODE-209, NODE-211).

Here the disk is read and written: the directory of logs, files of variables, parts of volumes, the
hosts file, the termination log. What is in them and in the configuration is decided in
`kuberuntime.config`, without effects. The files are small and local, so they are written directly.
Upstream: pkg/kubelet/kubelet_pods.go: GenerateRunContainerOptions; kuberuntime_container.go:
makeMounts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from criapi.v1 import api_pb2 as cri

from refkubelet.container_manager.devices.types import NO_SETTINGS, ContainerSettings
from refkubelet.cri.records import DEFAULT_RUNTIME, PodRuntime
from refkubelet.host.directories import LOG_DIRECTORY_MODE, make_directory
from refkubelet.host.untrusted_files import opened_below, read_whole
from refkubelet.kuberuntime.common.runtime_deps import ApiObjects, RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.container import (
    ContainerConfigError,
    RunContainerOptions,
    config_failures,
    termination_message_path,
)
from refkubelet.kuberuntime.config.downward_api import NodeAndPodFacts
from refkubelet.kuberuntime.config.env_file import env_file_values
from refkubelet.kuberuntime.config.environment import (
    EnvFile,
    EnvironmentFacts,
    FileKey,
    environment,
    referenced_files,
)
from refkubelet.kuberuntime.config.hosts_file import ETC_HOSTS, hosts_text, wants_etc_hosts
from refkubelet.kuberuntime.config.mounts import (
    MountError,
    MountFacts,
    mount_source,
    volume_mounts,
    volume_path,
)
from refkubelet.kuberuntime.images.volumes import VolumeImages
from refkubelet.model.addresses import by_family
from refkubelet.model.names import container_dir, pod_dir, pod_log_dir, safe_join
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import name_and_namespace, uid, uses_host_network
from refkubelet.volumes.mounting import Mounts
from refkubelet.volumes.plan import SubPathError, used_volumes
from refkubelet.volumes.sub_paths import SubPathUse, prepare
from simtime import Ids

NODE_HOSTS: Final = Path("/etc/hosts")
ENV_FILE_BYTES: Final = 1024 * 1024  # what an API server takes of a whole object


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a container gets besides its spec comes from these."""

    pod_ips: tuple[str, ...] = ()
    """As the runtime told them."""
    objects: ApiObjects | None = None
    """What its variables refer to; None: no API server."""
    volume_images: VolumeImages = field(default_factory=dict)
    """The images of its image volumes."""
    devices: ContainerSettings = NO_SETTINGS
    """What its devices ask for."""
    runtime: PodRuntime = DEFAULT_RUNTIME
    """What its pod asks of the runtime."""


def run_container_options(
    container: Container, pod: Pod, facts: RunFacts, deps: RuntimeDeps, options: RuntimeOptions
) -> RunContainerOptions:
    """The container's variables and mounts; the files behind them are there afterwards. The pod's
    volumes must be set up. Raises `ContainerConfigError`."""
    with config_failures():
        _make_log_directory(container, pod, options.pod_logs_dir)
        own = environment(container, pod, _environment_facts(container, pod, facts, options))
        from_spec = MountFacts(str(options.root_dir), own, facts.volume_images, facts.runtime)
        parts = volume_parts(container, pod, from_spec, deps.mounts)
        mounts = volume_mounts(container, pod, replace(from_spec, parts=parts))
        if wants_etc_hosts(container, pod, facts.pod_ips):
            domain = options.dns.cluster_domain
            mounts.append(etc_hosts_mount(pod, facts.pod_ips, options.root_dir, domain))
        if termination_message_path(container):
            mounts.append(_termination_log_mount(container, pod, options.root_dir, deps.ids))
        variables = {**facts.devices.envs, **own}
        return RunContainerOptions(variables, tuple(mounts), facts.devices)


def _make_log_directory(container: Container, pod: Pod, pod_logs_dir: Path) -> None:
    """The runtime writes the log; its directory is the kubelet's to make."""
    name, namespace = name_and_namespace(pod)
    directory = pod_log_dir(str(pod_logs_dir), namespace, name, uid(pod))
    try:
        make_directory(safe_join(directory, container.name), LOG_DIRECTORY_MODE)
    except OSError as error:
        raise ContainerConfigError(
            f"create container log directory for container {container.name} failed: {error}"
        ) from error


def _environment_facts(
    container: Container, pod: Pod, facts: RunFacts, options: RuntimeOptions
) -> EnvironmentFacts:
    node_ips = options.node_ips
    around = NodeAndPodFacts(
        pod_ips=node_ips if uses_host_network(pod) else by_family(facts.pod_ips, node_ips),
        host_ips=node_ips,
        node_name=options.node_name,
        allocatable=options.allocatable,
    )
    files = environment_files(container, pod, options.root_dir)
    return EnvironmentFacts(around, facts.objects, files)


def environment_files(container: Container, pod: Pod, root_dir: Path) -> dict[FileKey, EnvFile]:
    """Read the files that the container's variables come from (LIFE-137). Those of volumes that no
    container of the pod mounts are left out: such volumes are not set up. Raises `MountError`."""
    volumes = {v.name: v for v in pod.spec.volumes or []}
    mounted = used_volumes(pod)
    files: dict[FileKey, EnvFile] = {}
    for name, path in referenced_files(container):
        if name not in volumes or name not in mounted:
            continue
        base = volume_path(volumes[name], pod, str(root_dir))
        files[name, path] = _environment_file(base, path.lstrip("/"))
    return files


def _environment_file(volume: str, path: str) -> EnvFile:
    try:
        with opened_below(volume, path) as file:
            return EnvFile(file.path, env_file_values(file.read(ENV_FILE_BYTES).decode()))
    except (OSError, ValueError):  # the latter: a zero byte in the path, no UTF-8 in the file
        return EnvFile(os.path.join(volume, path), None)


def volume_parts(
    container: Container, pod: Pod, facts: MountFacts, mounts: Mounts
) -> dict[int, str | SubPathError]:
    """Find, or make, the parts of volumes that the container mounts (NODE-211), by index of the
    volumeMount; up to the first volumeMount that cannot be had, as the container fails with it."""
    parts: dict[int, str | SubPathError] = {}
    for index, mount in enumerate(container.volumeMounts or ()):
        try:
            source = mount_source(mount, container, pod, facts)
        except MountError:
            break  # `volume_mounts` says so, too
        if not source.path or not source.sub_path:
            continue
        use = SubPathUse(facts.root_dir, uid(pod), mount.name, container.name, index)
        try:
            parts[index] = prepare(source.path, source.sub_path, use, mounts)
        except SubPathError as error:
            parts[index] = error
            break
    return parts


def etc_hosts_mount(pod: Pod, pod_ips: tuple[str, ...], root_dir: Path, cluster_domain: str) -> Any:
    """Write the pod's hosts file, if it is not there already, and mount it (LIFE-138)."""
    directory = pod_dir(str(root_dir), uid(pod))
    path = os.path.join(directory, "etc-hosts")
    node_hosts = _node_hosts() if uses_host_network(pod) else ""
    text = hosts_text(pod, pod_ips, cluster_domain, node_hosts)
    data = text.encode(errors="surrogateescape")
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


def _node_hosts() -> str:
    """The node's own file, if there is one; bytes that are no UTF-8 stay what they are."""
    return NODE_HOSTS.read_text(errors="surrogateescape") if NODE_HOSTS.exists() else ""


def _termination_log_mount(container: Container, pod: Pod, root_dir: Path, ids: Ids) -> Any:
    """A fresh, empty, world-writable file for the termination message (LIFE-138)."""
    directory = container_dir(str(root_dir), uid(pod), container.name)
    make_directory(directory)
    path = os.path.join(directory, ids.hex(8))
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.fchmod(descriptor, 0o666)
    os.close(descriptor)
    return cri.Mount(container_path=termination_message_path(container), host_path=path)
