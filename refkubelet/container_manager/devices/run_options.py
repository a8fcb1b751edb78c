"""What all devices of one container add to its configuration. Pure.

Of two answers that set the same thing, the first counts. Upstream:
pkg/kubelet/cm/devicemanager/pod_devices.go: deviceRunContainerOptions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from refkubelet.container_manager.devices.types import ContainerSettings

T = TypeVar("T")


def combined(parts: Iterable[ContainerSettings]) -> ContainerSettings:
    """One answer for the whole container: variables and annotations by name, device files and
    mounts by their path in the container, CDI devices by name."""
    parts = tuple(parts)
    return ContainerSettings(
        envs=_first(part.envs for part in parts),
        mounts=_unique((m for part in parts for m in part.mounts), lambda m: m.container_path),
        devices=_unique((d for part in parts for d in part.devices), lambda d: d.container_path),
        annotations=_first(part.annotations for part in parts),
        cdi_devices=_unique((name for part in parts for name in part.cdi_devices), str),
    )


def _first(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in maps:
        found = {**one, **found}
    return found


def _unique(values: Iterable[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    found: dict[Hashable, T] = {}
    for value in values:
        found.setdefault(key(value), value)
    return tuple(found.values())
