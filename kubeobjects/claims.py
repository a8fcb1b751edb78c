"""What is wrong with the spec of a claim for a persistent volume. Pure.

Upstream: pkg/apis/core/validation: ValidatePersistentVolumeClaimSpec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, forbidden_field, invalid_value, required, unsupported_value
from kubeobjects.names import label_problems, subdomain_problems
from kubeobjects.quantity import canonical, parse_nano
from kubeobjects.selectors import selector_causes

Object = Mapping[str, Any]
ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_CLAIM: Final = "PersistentVolumeClaim"
_ONE_POD: Final = "ReadWriteOncePod"


def claim_spec_causes(spec: Object, path: str) -> Iterator[Cause]:
    """What is wrong with a claim's spec with its defaults."""
    yield from _mode_causes(spec, path)
    field = f"{path}.resources[storage]"
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required(field)
    elif parse_nano(str(storage)) <= 0:
        yield invalid_value(field, canonical(str(storage)), "must be greater than zero")
    yield from _class_causes(spec, "storageClassName", path)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        yield unsupported_value(f"{path}.volumeMode", mode, VOLUME_MODES)
    yield from _origin_causes(spec, path)
    yield from _class_causes(spec, "volumeAttributesClassName", path)


def _mode_causes(spec: Object, path: str) -> Iterator[Cause]:
    modes, field = spec.get("accessModes") or (), f"{path}.accessModes"
    if not modes:
        yield required(field, "at least 1 access mode is required")
    yield from selector_causes(spec.get("selector"), f"{path}.selector")
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield unsupported_value(field, mode, ACCESS_MODES)
    valid_modes = {mode for mode in modes if mode in ACCESS_MODES}
    if _ONE_POD in valid_modes and len(valid_modes) > 1:
        yield forbidden_field(field, f"may not use {_ONE_POD} with other access modes")


def _class_causes(spec: Object, field: str, path: str) -> Iterator[Cause]:
    name = spec.get(field)
    for problem in subdomain_problems(name) if name else ():
        yield invalid_value(f"{path}.{field}", name, problem)


def _origin_causes(spec: Object, path: str) -> Iterator[Cause]:
    """What is wrong with what the volume is filled from: the new field, which may name another
    namespace, and the old one, which has to agree."""
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old is not None:
        yield from _reference_causes(old, f"{path}.dataSource")
    if new is None:
        return
    yield from _reference_causes(new, f"{path}.dataSourceRef")
    namespace = new.get("namespace")
    for problem in label_problems(namespace) if namespace else ():
        yield invalid_value(f"{path}.dataSourceRef.namespace", namespace, problem)
    if old is None:
        return
    if namespace:
        text = "may not be specified when dataSourceRef.namespace is specified"
        yield invalid_value(path, {}, text)  # upstream shows a path, which is an empty object
    elif any(old.get(field) != new.get(field) for field in ("kind", "name", "apiGroup")):
        yield invalid_value(path, {}, "must match dataSourceRef")


def _reference_causes(reference: Object, path: str) -> Iterator[Cause]:
    kind, group = reference.get("kind") or "", reference.get("apiGroup") or ""
    for field in ("name", "kind"):
        if not reference.get(field):
            yield required(f"{path}.{field}")
    if not group and kind != _CLAIM:
        yield invalid_value(path, kind, f"must be '{_CLAIM}' when referencing the default apiGroup")
    for problem in subdomain_problems(group) if group else ():
        yield invalid_value(f"{path}.apiGroup", group, problem)
