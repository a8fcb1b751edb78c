"""What is wrong with a change of a pod: what it may not change, and how it may change the rest.

Upstream: pkg/apis/core/validation: ValidatePodUpdate, ValidatePodStatusUpdate,
ValidatePodEphemeralContainersUpdate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fakekubeapi.bodies import copy_json
from kubeobjects import pods
from kubeobjects.causes import Cause, forbidden_field, invalid_value
from kubeobjects.pods.annotations import MIRROR
from kubeobjects.pods.common.checks import MAX_SECONDS, between, needed

Object = dict[str, Any]
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def spec_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong with a change of a pod's spec by a request to the pod itself."""
    for group in ("containers", "initContainers"):
        if len(new.get(group) or ()) != len(old.get(group) or ()):
            text = "pod updates may not add or remove containers"
            yield forbidden_field(f"spec.{group}", text)
            return
    yield from _updatable_causes(new)
    yield from _toleration_causes(new, old)
    yield from _gate_causes(new, old)
    if not _change_allowed(new, old):
        text = f"pod updates may not change fields other than {_UPDATABLE}"
        yield forbidden_field("spec", text)


def _updatable_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with images and deadline, which an update may change: they are looked at once
    more."""
    for group in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(group) or []):
            path = f"spec.{group}[{i}]"
            yield from needed(container, "image", path)
            yield from pods.image_space_causes(container, path)
    deadline_s = spec.get("activeDeadlineSeconds")
    yield from between(deadline_s, "spec.activeDeadlineSeconds", 0, MAX_SECONDS)


def mirror_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if an update adds, changes or removes the mirror annotation (MIRR-027)."""
    was = (old["metadata"].get("annotations") or {}).get(MIRROR)
    new_mirror = (new["metadata"].get("annotations") or {}).get(MIRROR)
    if was == new_mirror:
        return
    verb = "add" if was is None else "remove" if new_mirror is None else "update"
    field = f"metadata.annotations[{MIRROR}]"
    yield forbidden_field(field, f"may not {verb} mirror pod annotation")


def ephemeral_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if an update changes or removes ephemeral containers; it may only add some."""
    by_name = {
        container.get("name"): container for container in new.get("ephemeralContainers") or []
    }
    for container in old.get("ephemeralContainers") or []:
        name = container["name"]
        if by_name.get(name) != container:
            verb = "changed" if name in by_name else "removed"
            text = f'existing ephemeral containers "{name}" may not be {verb}\n'
            yield forbidden_field("spec.ephemeralContainers", text)


def _change_allowed(new: Object, old: Object) -> bool:
    """Whether the specs differ only where an update may change a pod (`_UPDATABLE`)."""
    if new == old:
        return True
    masked = copy_json(new)  # `new` with the allowed changes undone
    for group in ("containers", "initContainers"):
        olds = old.get(group) or []
        for container, was in zip(masked.get(group) or [], olds, strict=False):
            container["image"] = was.get("image")
    if "activeDeadlineSeconds" in new and _deadline_allowed(new, old):
        _take(masked, old, "activeDeadlineSeconds")
    for looked_at in ("tolerations", "schedulingGates"):  # by functions of their own
        _take(masked, old, looked_at)
    grace = "terminationGracePeriodSeconds"
    if (old.get(grace) or 0) < 0 and new.get(grace) == 1:
        _take(masked, old, grace)
    return bool(masked == old)


def _deadline_allowed(new: Object, old: Object) -> bool:
    was = old.get("activeDeadlineSeconds")
    return was is None or bool(new["activeDeadlineSeconds"] <= was)


def _toleration_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if an update changes or removes tolerations; it may add some, and change how
    long others last."""

    def lasting(spec: Object) -> list[dict[str, Any]]:
        listed = spec.get("tolerations") or []
        return [{k: v for k, v in t.items() if k != "tolerationSeconds"} for t in listed]

    new_ones = lasting(new)
    if all(t in new_ones for t in lasting(old)):
        yield from pods.toleration_causes(new.get("tolerations") or [], "spec.tolerations")
        return
    text = "existing toleration can not be modified except its tolerationSeconds"
    yield forbidden_field("spec.tolerations", text)


def _gate_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if an update adds scheduling gates; it may only remove some."""
    had = {gate.get("name") for gate in old.get("schedulingGates") or []}
    text = "only deletion is allowed, but found new scheduling gate '{}'"
    for i, gate in enumerate(new.get("schedulingGates") or []):
        if gate.get("name") not in had:
            name = f"spec.schedulingGates[{i}].name"
            yield forbidden_field(name, text.format(gate.get("name")))


def qos_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if a status changes the QoS class."""
    new_class = new.get("qosClass")
    if new_class == old.get("qosClass", new_class):
        return
    yield invalid_value("status.qosClass", new_class, "field is immutable")


def _take(masked: Object, old: Object, field: str) -> None:
    """Make the field of `masked` as it is in `old`, also where that means it is absent."""
    if field in old:
        masked[field] = old[field]
    else:
        masked.pop(field, None)
