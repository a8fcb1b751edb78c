"""Checks where a container has volumes: as directories and files, or as block devices. Pure.

What must never pass here: a path that leads out of its volume (NODE-204).
Upstream: ValidateVolumeMounts, ValidateVolumeDevices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from kubeobjects.causes import Cause, forbidden_field, invalid_value, not_found
from kubeobjects.pods.common.checks import Object, descending_path, needed, optional_word

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_MODES: Final = ("Disabled", "Enabled", "IfPossible")
_BLOCK_KINDS: Final = ("persistentVolumeClaim", "ephemeral")
_UNIQUE: Final = "must be unique"


def mount_causes(container: Object, path: str, volumes: Mapping[str, Object]) -> Iterator[Cause]:
    """What is wrong with `volumeMounts` and `volumeDevices`. `volumes`: the pod's valid volumes."""
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    device_of = {device.get("name") or "": device.get("devicePath") or "" for device in devices}
    mount_of = {mount.get("name") or "": mount.get("mountPath") or "" for mount in mounts}
    device_paths, mount_paths = set(device_of.values()), set(mount_of.values())
    places: set[str] = set()
    for i, mount in enumerate(mounts):
        mount_path, name = f"{path}.volumeMounts[{i}]", mount.get("name") or ""
        place = mount.get("mountPath") or ""
        yield from needed(mount, "name", mount_path)
        if name not in volumes:
            yield not_found(f"{mount_path}.name", name)
        yield from needed(mount, "mountPath", mount_path)
        if place in places:
            yield invalid_value(f"{mount_path}.mountPath", place, _UNIQUE)
        places.add(place)
        yield from _overlap(mount_path, name, device_of, "volumeDevices", field="name")
        yield from _overlap(mount_path, place, device_paths, "volumeDevices", field="mountPath")
        yield from _mount_itself(mount, f"{path}.volumeMounts", i, container)
    yield from _device_causes(container, path, volumes, names=mount_of, paths=mount_paths)


def _overlap(
    here: str, value: str, others: Collection[str], kind: str, *, field: str
) -> Iterator[Cause]:
    """A name or a path that is in the other list, too."""
    if value in others:
        as_path = "" if field == "name" else " as a path"
        yield invalid_value(f"{here}.{field}", value, f"must not already exist{as_path} in {kind}")


def _mount_itself(mount: Object, where: str, index: int, container: Object) -> Iterator[Cause]:
    """Path in the volume and modes. As upstream, most of these causes do not name the mount."""
    inside, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    yield from descending_path(inside, f"{where}.subPath")
    if inside and expression:
        text = "subPathExpr and subPath are mutually exclusive"
        yield invalid_value(f"{where}[{index}].subPathExpr", expression, text)
    yield from descending_path(expression, f"{where}.subPathExpr")
    propagation = mount.get("mountPropagation")
    yield from optional_word(propagation, f"{where}.mountPropagation", _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        text = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden_field(f"{where}.mountPropagation", text)
    mode, field = mount.get("recursiveReadOnly"), f"{where}.recursiveReadOnly"
    yield from optional_word(mode, field, _MODES)
    if mode in _MODES and mode != "Disabled":
        if not mount.get("readOnly"):
            yield forbidden_field(field, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            text = "may only be specified when mountPropagation is None or not specified"
            yield forbidden_field(field, text)


def _device_causes(
    container: Object,
    path: str,
    volumes: Mapping[str, Object],
    *,
    names: Collection[str],
    paths: Collection[str],
) -> Iterator[Cause]:
    """Block devices: only of claims, once each. `names`, `paths`: those of the mounts."""
    named: set[str] = set()
    places: set[str] = set()
    for i, device in enumerate(container.get("volumeDevices") or ()):
        device_path, name = f"{path}.volumeDevices[{i}]", device.get("name") or ""
        place = device.get("devicePath") or ""
        yield from needed(device, "name", device_path)
        if name in named:
            yield invalid_value(f"{device_path}.name", name, _UNIQUE)
        yield from _block_volume(f"{device_path}.name", name, volumes)
        yield from needed(device, "devicePath", device_path)
        if place in places:
            yield invalid_value(f"{device_path}.devicePath", place, _UNIQUE)
        if ".." in place.split("/"):
            text = "can not contain backsteps ('..')"
            yield invalid_value(f"{device_path}.devicePath", place, text)
        else:
            places.add(place)
        yield from _overlap(device_path, name, names, "volumeMounts", field="name")
        yield from _overlap(device_path, place, paths, "volumeMounts", field="devicePath")
        named.update((name,) if name else ())


def _block_volume(field: str, name: str, volumes: Mapping[str, Object]) -> Iterator[Cause]:
    if name not in volumes:
        yield not_found(field, name)
    elif not any(volumes[name].get(kind) is not None for kind in _BLOCK_KINDS):
        kinds = "PersistentVolumeClaim or Ephemeral for block mode"
        yield invalid_value(field, name, f"can only use volume source type of {kinds}")
