"""Pods: created Pending, changed only where the API allows it, deleted with grace.

Spec and status have two doors: the object itself changes metadata and a few spec fields, /status
changes status. Two more change a part of the spec: /resize and /ephemeralcontainers. A
bound pod that is deleted stays, with deletionTimestamp, until the kubelet deletes it with grace 0
(STAT-030); an unbound or finished one goes at once.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from fakeapi.errors import Cause, forbidden_field
from fakeapi.jsontools import copy_json
from fakeapi.resources.pod_defaults import default_pod, qos_class
from fakeapi.resources.pod_validation import validate_pod
from fakeapi.resources.strategy import Object, Strategy, validate_metadata

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_TERMINAL: Final = ("Succeeded", "Failed")
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodStrategy(Strategy):
    returns_deleted = True
    has_generation = True
    graceful = True
    field_labels: ClassVar[tuple[str, ...]] = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    )

    def prepare_create(self, obj: Object) -> None:
        """Defaults; the posted status is dropped (MIRR-023) and starts as Pending."""
        default_pod(obj)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*validate_metadata(obj), *validate_pod(obj)]

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "resize":
            wanted = new.get("spec") or {}
            new.clear()
            new.update(copy_json(old))
            _copy_resources(wanted, new["spec"])
            return
        if subresource == "ephemeralcontainers":
            wanted = (new.get("spec") or {}).get("ephemeralContainers") or []
            new.clear()
            new.update(copy_json(old))
            new["spec"]["ephemeralContainers"] = wanted
            default_pod(new, admission=False)
            return
        super().prepare_update(new, old, subresource)
        if subresource == "status":
            new["metadata"]["ownerReferences"] = old["metadata"].get("ownerReferences")
            status = new.setdefault("status", {})
            status.setdefault("qosClass", old.get("status", {}).get("qosClass", "BestEffort"))
        else:
            for field in ("priority", "preemptionPolicy"):
                if field in old["spec"] and isinstance(new.get("spec"), dict):
                    new["spec"].setdefault(field, old["spec"][field])
            default_pod(new)

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = [*validate_metadata(new), *validate_pod(new), *_mirror_causes(new, old)]
        if subresource == "" and not _spec_change_allowed(new["spec"], old["spec"]):
            causes.append(
                forbidden_field(
                    "spec", f"pod updates may not change fields other than {_UPDATABLE}"
                )
            )
        if subresource == "ephemeralcontainers":
            causes += _ephemeral_causes(new["spec"], old["spec"])
        return causes

    def delete_grace_s(self, obj: Object, asked_s: int | None) -> int:
        spec = obj.get("spec") or {}
        if not spec.get("nodeName") or obj.get("status", {}).get("phase") in _TERMINAL:
            return 0
        wanted = asked_s if asked_s is not None else spec.get("terminationGracePeriodSeconds", 30)
        return wanted if wanted >= 0 else 1


def _mirror_causes(new: Object, old: Object) -> list[Cause]:
    """The mirror annotation can be neither added, changed nor removed (MIRR-027)."""
    was = (old["metadata"].get("annotations") or {}).get(MIRROR_ANNOTATION)
    now = (new["metadata"].get("annotations") or {}).get(MIRROR_ANNOTATION)
    if was == now:
        return []
    verb = "add" if was is None else "remove" if now is None else "update"
    field = f"metadata.annotations[{MIRROR_ANNOTATION}]"
    return [forbidden_field(field, f"may not {verb} mirror pod annotation")]


def _ephemeral_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Ephemeral containers are added, and stay as they are for ever."""
    now = {container.get("name"): container for container in new["ephemeralContainers"]}
    return [
        forbidden_field(
            "spec.ephemeralContainers", f'existing ephemeral containers "{name}" may not be changed'
        )
        for container in old.get("ephemeralContainers") or []
        if now.get(name := container["name"]) != container
    ]


def _copy_resources(wanted: dict[str, Any], spec: dict[str, Any]) -> None:
    for group in ("containers", "initContainers"):
        asked = {c.get("name"): c for c in wanted.get(group) or []}
        for container in spec.get(group) or []:
            if container["name"] in asked:
                container["resources"] = copy_json(asked[container["name"]].get("resources") or {})
    if "resources" in wanted:
        spec["resources"] = copy_json(wanted["resources"])


def _spec_change_allowed(new: dict[str, Any], old: dict[str, Any]) -> bool:
    if new == old:
        return True
    masked = copy_json(new)
    for group in ("containers", "initContainers"):
        olds = old.get(group) or []
        for container, was in zip(masked.get(group) or [], olds, strict=False):
            container["image"] = was.get("image")
    if "activeDeadlineSeconds" in new and _deadline_allowed(new, old):
        _take(masked, old, "activeDeadlineSeconds")
    if _only_added(new.get("tolerations") or [], old.get("tolerations") or []):
        _take(masked, old, "tolerations")
    grace = "terminationGracePeriodSeconds"
    if (old.get(grace) or 0) < 0 and new.get(grace) == 1:
        _take(masked, old, grace)
    return bool(masked == old)


def _deadline_allowed(new: dict[str, Any], old: dict[str, Any]) -> bool:
    was = old.get("activeDeadlineSeconds")
    return was is None or bool(new["activeDeadlineSeconds"] <= was)


def _only_added(new: list[Any], old: list[Any]) -> bool:
    return all(item in new for item in old)


def _take(masked: dict[str, Any], old: dict[str, Any], field: str) -> None:
    if field in old:
        masked[field] = old[field]
    else:
        masked.pop(field, None)
