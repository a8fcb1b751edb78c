"""Makes the variables and mounts of a container, and the files for them (LIFE-136, LIFE-137,
LIFE-138, NODE-209, NODE-211).

This module reads and writes the disk: the log directory, files of variables, subpaths of volumes,
the hosts file, the termination log. Their content is decided in `kuberuntime.config`, which is
pure.
Upstream: pkg/kubelet/kubelet_pods.go: GenerateRunContainerOptions; kuberuntime_container.go:
makeMounts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import Struct, field

from kubeobjects.structs import replace
from refkubelet.container_manager.devices.types import NO_SETTINGS, ContainerSettings
from refkubelet.cri.records import DEFAULT_RUNTIME, PodRuntime
from refkubelet.host.directories import LOG_DIRECTORY_MODE, make_directory
from refkubelet.host.untrusted_files import holds, opened_below, write_in_place
from refkubelet.kuberuntime.common.runtime_deps import ApiObjects, RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.container import (
    ContainerConfigError,
    RunContainerOptions,
    config_failures,
    termination_message_path,
)
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
from refkubelet.model.downward_api import NodeAndPodFacts
from refkubelet.model.names import container_dir, pod_dir, pod_log_dir, safe_join
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import name_and_namespace, uid, uses_host_network
from refkubelet.volumes.mounting import Mounts
from refkubelet.volumes.plan import SubPathError, used_volumes
from refkubelet.volumes.sub_paths import SubPathUse, prepare
from simclock import Ids

NODE_HOSTS: Final = Path("/etc/hosts")
ENV_FILE_BYTES: Final = 1024 * 1024  # the longest file that is read


class RunFacts(Struct, frozen=True):
    """The inputs for a container besides its spec."""

    pod_ips: tuple[str, ...] = ()
    """The pod's addresses, from the runtime."""
    objects: ApiObjects | None = None
    """The objects that its variables refer to; None: standalone."""
    volume_images: VolumeImages = field(default_factory=dict)
    """The images of its image volumes."""
    devices: ContainerSettings = NO_SETTINGS
    """The settings that its devices need."""
    runtime: PodRuntime = DEFAULT_RUNTIME
    """The pod's settings of the runtime."""


def run_container_options(
    container: Container, pod: Pod, facts: RunFacts, deps: RuntimeDeps, options: RuntimeOptions
) -> RunContainerOptions:
    """Make the container's variables and mounts, and the files for them. The pod's volumes must be
    set up before. Raises `ContainerConfigError`."""
    with config_failures():
        _make_log_directory(container, pod, options.pod_logs_dir)
        own = environment(container, pod, _environment_facts(container, pod, facts, options))
        from_spec = MountFacts(
            str(options.root_dir),
            own,
            facts.volume_images,
            claimed=deps.pods.claimed(uid(pod)),
            runtime=facts.runtime,
        )
        parts = volume_parts(container, pod, from_spec, deps.node.mounts)
        mounts = volume_mounts(container, pod, replace(from_spec, parts=parts))
        if wants_etc_hosts(container, pod, facts.pod_ips):
            domain = options.dns.cluster_domain
            mounts.append(etc_hosts_mount(pod, facts.pod_ips, options.root_dir, domain))
        if termination_message_path(container):
            mounts.append(_termination_log_mount(container, pod, options.root_dir, deps.ids))
        variables = {**facts.devices.envs, **own}
        return RunContainerOptions(variables, tuple(mounts), facts.devices)


def _make_log_directory(container: Container, pod: Pod, pod_logs_dir: Path) -> None:
    """Make the directory in which the runtime writes the log. Raises `ContainerConfigError`."""
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
    on_node = uses_host_network(pod)
    around = NodeAndPodFacts(
        pod_ips=options.host_network_ips if on_node else by_family(facts.pod_ips, node_ips),
        host_ips=node_ips,
        node_name=options.node_name,
        allocatable=options.allocatable,
    )
    files = environment_files(container, pod, options.root_dir)
    return EnvironmentFacts(around, facts.objects, files)


def environment_files(container: Container, pod: Pod, root_dir: Path) -> dict[FileKey, EnvFile]:
    """Read the files that the container's variables come from (LIFE-137), except on volumes that no
    container of the pod mounts, which are not set up. Raises `MountError`."""
    files: dict[FileKey, EnvFile] = {}
    if not (references := referenced_files(container)):
        return files
    volumes = {v.name: v for v in pod.spec.volumes or []}
    mounted = used_volumes(pod)
    for name, path in references:
        if name not in volumes or name not in mounted:
            continue
        base = volume_path(volumes[name], pod, str(root_dir))
        files[name, path] = _environment_file(base, path.lstrip("/"))
    return files


def _environment_file(volume: str, path: str) -> EnvFile:
    try:
        with opened_below(volume, path) as file:
            return EnvFile(file.path, env_file_values(file.read(ENV_FILE_BYTES).decode()))
    except (OSError, ValueError):  # ValueError: a zero byte in the path, or the file is not UTF-8
        return EnvFile(os.path.join(volume, path), None)


def volume_parts(
    container: Container, pod: Pod, facts: MountFacts, mounts: Mounts
) -> dict[int, str | SubPathError]:
    """Find or make the subpaths that the container mounts (NODE-211), by index of the volumeMount;
    stops at the first error, because that fails the container."""
    parts: dict[int, str | SubPathError] = {}
    for index, mount in enumerate(container.volumeMounts or ()):
        try:
            source = mount_source(mount, container, pod, facts)
        except MountError:
            break  # `volume_mounts` raises the same error
        if not source.path or not source.sub_path:
            continue
        place = facts.claimed.get(mount.name)
        use = SubPathUse(
            root_dir=facts.root_dir,
            pod_uid=uid(pod),
            volume=mount.name,
            container=container.name,
            index=index,
            directory=place.name if place is not None else "",
        )
        try:
            parts[index] = prepare(source.path, source.sub_path, use, mounts)
        except SubPathError as error:
            parts[index] = error
            break
    return parts


def etc_hosts_mount(pod: Pod, pod_ips: tuple[str, ...], root_dir: Path, cluster_domain: str) -> Any:
    """Write the pod's hosts file, unless it has this content already; returns its mount
    (LIFE-138)."""
    directory = pod_dir(str(root_dir), uid(pod))
    path = os.path.join(directory, "etc-hosts")
    node_hosts = _node_hosts() if uses_host_network(pod) else ""
    text = hosts_text(pod, pod_ips, cluster_domain, node_hosts)
    data = text.encode(errors="surrogateescape")
    if not holds(path, data):
        make_directory(directory)
        write_in_place(path, data, 0o644)
    return cri.Mount(container_path=ETC_HOSTS, host_path=path)


def _node_hosts() -> str:
    """The text of the node's hosts file, "" without one; bytes that are not UTF-8 are kept."""
    return NODE_HOSTS.read_text(errors="surrogateescape") if NODE_HOSTS.exists() else ""


def _termination_log_mount(container: Container, pod: Pod, root_dir: Path, ids: Ids) -> Any:
    """Make a new, empty, world-writable file for the termination message; returns its mount
    (LIFE-138)."""
    directory = container_dir(str(root_dir), uid(pod), container.name)
    make_directory(directory)
    path = os.path.join(directory, ids.hex(8))
    write_in_place(path, b"", 0o666)
    return cri.Mount(container_path=termination_message_path(container), host_path=path)
