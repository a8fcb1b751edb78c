"""Adds the health of devices to a pod's status: allocatedResourcesStatus of containers. Pure.

Only for regular containers, as in upstream. Upstream: pkg/kubelet/cm/devicemanager/manager.go:
UpdateAllocatedResourcesStatus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lightkube.models.core_v1 import ResourceHealth, ResourceStatus

from kubeobjects.structs import replace
from refkubelet.container_manager.devices.types import HEALTHY
from refkubelet.model.objects import ContainerStatus, PodStatus

GATE: Final = "ResourceHealthStatus"  # on by default
UNHEALTHY: Final = "Unhealthy"
DeviceHealth = Mapping[str, Mapping[str, str]]
"""Resource -> device -> its health, as the plugin names it."""


def with_device_health(status: PodStatus, of: Callable[[str], DeviceHealth]) -> PodStatus:
    """The status with the health of devices; `of` returns it by the container's name."""
    statuses = [_with_health(each, of(each.name)) for each in status.containerStatuses or ()]
    return replace(status, containerStatuses=statuses) if statuses else status


def _with_health(status: ContainerStatus, health: DeviceHealth) -> ContainerStatus:
    """One container's status with the health of its devices, sorted by resource and device."""
    if not health:
        return status
    rows = [
        ResourceStatus(
            name=resource,
            resources=[
                ResourceHealth(
                    resourceID=device_id, health=HEALTHY if word == HEALTHY else UNHEALTHY
                )
                for device_id, word in sorted(devices.items())
            ],
        )
        for resource, devices in sorted(health.items())
    ]
    return replace(status, allocatedResourcesStatus=rows)
