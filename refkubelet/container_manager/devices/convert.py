"""Converts the messages of v1beta1 to the records of the device manager.

Upstream: staging/src/k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from kubecri.deviceplugin import api_pb2 as api

from refkubelet.container_manager.devices.types import (
    ContainerSettings,
    Device,
    DeviceMount,
    DeviceNode,
    PluginOptions,
)

log = logging.getLogger(__name__)

MAX_NUMA_NODES: Final = 64


def options(message: Any) -> PluginOptions:
    return PluginOptions(message.pre_start_required, message.get_preferred_allocation_available)


def devices(messages: Iterable[Any]) -> dict[str, Device]:
    """ID -> device; of two with the same ID the last one counts, as in upstream."""
    return {message.ID: _device(message) for message in messages}


def _device(message: Any) -> Device:
    named = [node.ID for node in message.topology.nodes]
    nodes = tuple(node for node in dict.fromkeys(named) if 0 <= node < MAX_NUMA_NODES)
    if len(nodes) != len(named):
        log.warning("device %s has invalid NUMA nodes in %s; used: %s", message.ID, named, nodes)
    return Device(message.ID, message.health, nodes)


def settings(answer: bytes) -> ContainerSettings:
    """The settings in a serialized ContainerAllocateResponse. Raises ValueError for other bytes."""
    message = api.ContainerAllocateResponse()
    try:
        message.ParseFromString(answer)
    except Exception as error:  # protobuf's own exception class differs between versions
        raise ValueError(f"not a ContainerAllocateResponse: {error}") from None
    return ContainerSettings(
        envs=dict(message.envs),
        mounts=tuple(
            DeviceMount(m.host_path, m.container_path, m.read_only) for m in message.mounts
        ),
        devices=tuple(
            DeviceNode(d.host_path, d.container_path, d.permissions) for d in message.devices
        ),
        annotations=dict(message.annotations),
        cdi_devices=tuple(device.name for device in message.cdi_devices),
    )
