"""The config of CreateContainer, field by field: LIFE-136..141.

`ContainerConfigError` is anything that makes the config impossible; the container then waits with
reason CreateContainerConfigError and the error's text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from criapi.v1 import api_pb2 as cri
from lightkube.models.core_v1 import ContainerPort

from refkubelet.container_manager.devices.records import NO_SETTINGS, ContainerSettings, DeviceNode
from refkubelet.cri import labels as keys
from refkubelet.cri.records import DEFAULT_RUNTIME, ImageRecord, PodRuntime
from refkubelet.host.directories import LOG_DIRECTORY_MODE, make_directory
from refkubelet.kuberuntime.common.runtime_deps import ApiObjects, RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.downward_api import NodeAndPodFacts, VariableError
from refkubelet.kuberuntime.config.environment import EnvironmentFacts, environment, expand_all
from refkubelet.kuberuntime.config.linux_resources import container_resources
from refkubelet.kuberuntime.config.mounts import (
    MountError,
    MountFacts,
    device_mounts,
    environment_files,
    etc_hosts_mount,
    termination_log_mount,
    volume_mounts,
    wants_etc_hosts,
    with_users,
)
from refkubelet.kuberuntime.config.sandbox import pod_labels
from refkubelet.kuberuntime.config.security import SecurityError, container_security
from refkubelet.kuberuntime.images.volumes import VolumeImages
from refkubelet.model.addresses import by_family
from refkubelet.model.hashes import container_hash
from refkubelet.model.names import container_log_path, pod_log_dir, safe_join
from refkubelet.model.objects import Container, Pod, to_dict
from refkubelet.model.placement import ANYWHERE, Placement
from refkubelet.model.pod import name_and_namespace, uid, uses_host_network

DEFAULT_MESSAGE_PATH: Final = "/dev/termination-log"
CONFIG_FAILURES: Final = (
    SecurityError,
    VariableError,
    MountError,
    OSError,
    ValueError,  # what no file name and no message can hold: zero bytes, numbers beyond 64 bits
)


class ContainerConfigError(Exception):
    """No config can be made for the container; the text says why."""


@dataclass(frozen=True, slots=True)
class StartSpec:
    """One container to start: `image_ref` is what the image step found, `target_id` the container
    an ephemeral one aims at, `objects` what its variables refer to (None: no API server),
    `volume_images` the images of its image volumes, `devices` what its devices ask for,
    `placement` where it runs, `runtime` what its pod asks of the runtime."""

    container: Container
    attempt: int
    image: ImageRecord
    image_ref: str
    pod_ips: tuple[str, ...] = ()
    target_id: str = ""
    objects: ApiObjects | None = None
    volume_images: VolumeImages = field(default_factory=dict)
    devices: ContainerSettings = NO_SETTINGS
    placement: Placement = ANYWHERE
    runtime: PodRuntime = DEFAULT_RUNTIME


def container_config(start: StartSpec, pod: Pod, deps: RuntimeDeps, options: RuntimeOptions) -> Any:
    """ContainerConfig (upstream: generateContainerConfig). Makes the files its mounts name.

    Raises `ContainerConfigError`.
    """
    try:
        return _config(start, pod, deps, options)
    except CONFIG_FAILURES as error:
        raise ContainerConfigError(str(error)) from error


def _config(start: StartSpec, pod: Pod, deps: RuntimeDeps, options: RuntimeOptions) -> Any:
    container, devices = start.container, start.devices
    _make_log_directory(container, pod, options)
    own = environment(container, pod, _facts(start, pod, options))
    variables = {**devices.envs, **own}
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=container.name, attempt=start.attempt),
        image=cri.ImageSpec(image=start.image_ref, user_specified_image=container.image or ""),
        command=expand_all(container.command or (), variables),
        args=expand_all(container.args or (), variables),
        working_dir=container.workingDir or "",
        envs=[_key_value(name, value) for name, value in variables.items()],
        mounts=with_users(
            [*device_mounts(devices), *_mounts(start, pod, own, deps, options)], start.runtime
        ),
        devices=[_device(node) for node in devices.devices],
        CDI_devices=[cri.CDIDevice(name=name) for name in devices.cdi_devices],
        labels={**pod_labels(pod), keys.CONTAINER_NAME: container.name},
        annotations={
            **devices.annotations,
            **container_annotations(container, pod, start.attempt),
        },
        log_path=container_log_path(container.name, start.attempt),
        stdin=bool(container.stdin),
        stdin_once=bool(container.stdinOnce),
        tty=bool(container.tty),
        linux=cri.LinuxContainerConfig(
            resources=container_resources(container, pod, options, start.placement),
            security_context=container_security(
                container, pod, start.image, options, start.target_id, start.runtime
            ),
        ),
    )


def _device(node: DeviceNode) -> Any:
    return cri.Device(
        container_path=node.container_path, host_path=node.host_path, permissions=node.permissions
    )


def _key_value(name: str, value: str) -> Any:
    return cri.KeyValue(key=name, value=value.encode(errors="surrogateescape"))


def _make_log_directory(container: Container, pod: Pod, options: RuntimeOptions) -> None:
    """The runtime writes the log; its directory is the kubelet's to make."""
    name, namespace = name_and_namespace(pod)
    directory = pod_log_dir(str(options.pod_logs_dir), namespace, name, uid(pod))
    try:
        make_directory(safe_join(directory, container.name), LOG_DIRECTORY_MODE)
    except OSError as error:
        raise ContainerConfigError(
            f"create container log directory for container {container.name} failed: {error}"
        ) from error


def _facts(start: StartSpec, pod: Pod, options: RuntimeOptions) -> EnvironmentFacts:
    host_network = uses_host_network(pod)
    around = NodeAndPodFacts(
        pod_ips=(options.node_ips if host_network else by_family(start.pod_ips, options.node_ips)),
        host_ips=options.node_ips,
        node_name=options.node_name,
        allocatable=options.allocatable,
    )
    files = environment_files(start.container, pod, options.root_dir)
    return EnvironmentFacts(around, start.objects, files)


def _mounts(
    start: StartSpec,
    pod: Pod,
    variables: Mapping[str, str],
    deps: RuntimeDeps,
    options: RuntimeOptions,
) -> list[Any]:
    container, root = start.container, options.root_dir
    facts = MountFacts(root, variables, start.volume_images, start.runtime, deps.mounts)
    mounts = volume_mounts(container, pod, facts)
    if wants_etc_hosts(container, pod, start.pod_ips):
        mounts.append(etc_hosts_mount(pod, start.pod_ips, root, options.dns.cluster_domain))
    log = termination_log_mount(_with_message_path(container), pod, root, deps.ids)
    return [*mounts, log] if log is not None else mounts


def _with_message_path(container: Container) -> Container:
    if container.terminationMessagePath is not None:
        return container
    return Container(container.name, terminationMessagePath=DEFAULT_MESSAGE_PATH)


def container_annotations(container: Container, pod: Pod, attempt: int) -> dict[str, str]:
    """The kubelet's notes on the container (LIFE-136): what a restarted kubelet must know to
    compare it with the spec and to stop it as the spec wanted."""
    meta, spec = pod.metadata, pod.spec
    path = container.terminationMessagePath
    notes = {
        keys.CONTAINER_HASH: container_hash(container),
        keys.RESTART_COUNT: str(attempt),
        keys.TERMINATION_MESSAGE_PATH: DEFAULT_MESSAGE_PATH if path is None else path,
        keys.TERMINATION_MESSAGE_POLICY: container.terminationMessagePolicy or "File",
    }
    if meta.deletionGracePeriodSeconds is not None:
        notes[keys.POD_DELETION_GRACE] = str(meta.deletionGracePeriodSeconds)
    if spec.terminationGracePeriodSeconds is not None:
        notes[keys.POD_TERMINATION_GRACE] = str(spec.terminationGracePeriodSeconds)
    if container.lifecycle is not None and container.lifecycle.preStop is not None:
        notes[keys.PRE_STOP_HANDLER] = _json(to_dict(container.lifecycle.preStop))
    if container.ports:
        notes[keys.CONTAINER_PORTS] = _json([_ordered(port) for port in container.ports])
    return notes


def _ordered(port: ContainerPort) -> dict[str, Any]:
    """A port's fields as the kubelet writes them."""
    names = ("name", "hostPort", "containerPort", "protocol", "hostIP")
    return {n: value for n in names if (value := getattr(port, n))}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
