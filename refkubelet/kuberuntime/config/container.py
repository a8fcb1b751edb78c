"""The config of CreateContainer, field by field: LIFE-136..141. Pure.

Variables and mounts come from `kuberuntime.run_options`, which makes the files behind them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import ContainerPort
from msgspec import Struct, field

from refkubelet.container_manager.devices.types import NO_SETTINGS, ContainerSettings, DeviceNode
from refkubelet.cri import labels as keys
from refkubelet.cri.records import DEFAULT_RUNTIME, ImageRecord, PodRuntime
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.environment import expand_all
from refkubelet.kuberuntime.config.linux_resources import container_resources
from refkubelet.kuberuntime.config.mounts import MountError, device_mounts, with_users
from refkubelet.kuberuntime.config.sandbox import pod_labels
from refkubelet.kuberuntime.config.security import SecurityError, container_security
from refkubelet.model.cpuset import ANYWHERE, Placement
from refkubelet.model.downward_api import VariableError
from refkubelet.model.hashes import container_hash
from refkubelet.model.names import container_log_path
from refkubelet.model.objects import Container, Pod, to_dict

DEFAULT_MESSAGE_PATH: Final = "/dev/termination-log"
CONFIG_FAILURES: Final = (
    SecurityError,
    VariableError,
    MountError,
    OSError,
    ValueError,  # zero bytes and numbers beyond 64 bits, which fit into no file name or message
)


class ContainerConfigError(Exception):
    """No config can be made for the container; it waits with reason CreateContainerConfigError and
    this text."""


@contextmanager
def config_failures() -> Iterator[None]:
    """Turn every error of `CONFIG_FAILURES` into a `ContainerConfigError`."""
    try:
        yield
    except CONFIG_FAILURES as error:
        raise ContainerConfigError(str(error)) from error


class RunContainerOptions(Struct, frozen=True):
    """The parts of a config that do not follow from the spec alone (upstream:
    container.RunContainerOptions)."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment, with the variables of devices."""
    mounts: tuple[Any, ...] = ()
    """The spec's mounts, /etc/hosts and the termination log, as CRI messages."""
    devices: ContainerSettings = NO_SETTINGS
    """The settings that its devices need."""


class StartSpec(Struct, frozen=True):
    """One container to start."""

    container: Container
    attempt: int
    image: ImageRecord
    """The runtime's record of the image, for the image's user."""
    image_ref: str
    """The reference that the image step returned."""
    target_id: str = ""
    """The id of the container that an ephemeral container targets."""
    run: RunContainerOptions = field(default_factory=RunContainerOptions)
    placement: Placement = ANYWHERE
    """The CPUs and memory nodes that it may use."""
    runtime: PodRuntime = DEFAULT_RUNTIME
    """The pod's settings of the runtime."""


def container_config(start: StartSpec, pod: Pod, options: RuntimeOptions) -> Any:
    """The ContainerConfig (upstream: generateContainerConfig). Raises `ContainerConfigError`."""
    with config_failures():
        return _config(start, pod, options)


def _config(start: StartSpec, pod: Pod, options: RuntimeOptions) -> Any:
    """The message, with its fields in the order of the contract. Raises `CONFIG_FAILURES`."""
    container, run, devices = start.container, start.run, start.run.devices
    variables = run.variables
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=container.name, attempt=start.attempt),
        image=cri.ImageSpec(image=start.image_ref, user_specified_image=container.image or ""),
        command=expand_all(container.command or (), variables),
        args=expand_all(container.args or (), variables),
        working_dir=container.workingDir or "",
        envs=[_key_value(name, value) for name, value in variables.items()],
        mounts=with_users([*device_mounts(devices), *run.mounts], start.runtime),
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
            resources=container_resources(container, pod, options.resources, start.placement),
            security_context=container_security(
                container=container,
                pod=pod,
                image=start.image,
                options=options,
                target_id=start.target_id,
                runtime=start.runtime,
            ),
        ),
    )


def _device(node: DeviceNode) -> Any:
    return cri.Device(
        container_path=node.container_path, host_path=node.host_path, permissions=node.permissions
    )


def _key_value(name: str, value: str) -> Any:
    return cri.KeyValue(key=name, value=value.encode(errors="surrogateescape"))


def termination_message_path(container: Container) -> str:
    """The path in the container; "" if the spec sets it empty."""
    path = container.terminationMessagePath
    return DEFAULT_MESSAGE_PATH if path is None else path


def container_annotations(container: Container, pod: Pod, attempt: int) -> dict[str, str]:
    """The annotations of a container (LIFE-136), from which a restarted kubelet knows its hash,
    restart count, hook and grace periods."""
    meta, spec = pod.metadata, pod.spec
    annotations = {
        keys.CONTAINER_HASH: container_hash(container),
        keys.RESTART_COUNT: str(attempt),
        keys.TERMINATION_MESSAGE_PATH: termination_message_path(container),
        keys.TERMINATION_MESSAGE_POLICY: container.terminationMessagePolicy or "File",
    }
    if meta.deletionGracePeriodSeconds is not None:
        annotations[keys.POD_DELETION_GRACE] = str(meta.deletionGracePeriodSeconds)
    if spec.terminationGracePeriodSeconds is not None:
        annotations[keys.POD_TERMINATION_GRACE] = str(spec.terminationGracePeriodSeconds)
    if container.lifecycle is not None and container.lifecycle.preStop is not None:
        annotations[keys.PRE_STOP_HANDLER] = _json(to_dict(container.lifecycle.preStop))
    if container.ports:
        annotations[keys.CONTAINER_PORTS] = _json([_ordered(port) for port in container.ports])
    return annotations


def _ordered(port: ContainerPort) -> dict[str, Any]:
    """A port's fields in upstream's order, without empty ones."""
    names = ("name", "hostPort", "containerPort", "protocol", "hostIP")
    return {n: value for n in names if (value := getattr(port, n))}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
