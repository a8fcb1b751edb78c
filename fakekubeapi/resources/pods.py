"""Pods: created Pending, changed only where the API allows it, deleted with a grace period.

A request to the pod itself changes metadata and a few fields of spec, one to /status the status,
one to /resize the resources of containers, one to /ephemeralcontainers the ephemeral containers.
A bound pod that is deleted stays, with deletionTimestamp, until its kubelet deletes it with a grace
period of 0 (STAT-030); a pod that is unbound or has ended goes at once.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.errors import Cause, forbidden_field
from fakekubeapi.resources.pod_defaults import default_pod, qos_class
from fakekubeapi.resources.pod_validation import validate_pod
from fakekubeapi.resources.strategy import Object, Strategy, validate_metadata

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_TERMINAL: Final = ("Succeeded", "Failed")
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodStrategy(Strategy):
    """The rules of pods."""

    returns_deleted = True
    has_generation = True
    graceful = True
    admitted: ClassVar[tuple[str, ...]] = (
        "spec.tolerations",
        "spec.priority",
        "spec.preemptionPolicy",
    )
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
        """Fill in the defaults. The status that was sent is dropped: a new pod is Pending
        (MIRR-023)."""
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
    """What is wrong if an update adds, changes or removes the mirror annotation (MIRR-027)."""
    was = (old["metadata"].get("annotations") or {}).get(MIRROR_ANNOTATION)
    now = (new["metadata"].get("annotations") or {}).get(MIRROR_ANNOTATION)
    if was == now:
        return []
    verb = "add" if was is None else "remove" if now is None else "update"
    field = f"metadata.annotations[{MIRROR_ANNOTATION}]"
    return [forbidden_field(field, f"may not {verb} mirror pod annotation")]


def _ephemeral_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What is wrong if an update changes or removes ephemeral containers; it may only add some."""
    now = {container.get("name"): container for container in new["ephemeralContainers"]}
    return [
        forbidden_field(
            "spec.ephemeralContainers", f'existing ephemeral containers "{name}" may not be changed'
        )
        for container in old.get("ephemeralContainers") or []
        if now.get(name := container["name"]) != container
    ]


def _copy_resources(wanted: dict[str, Any], spec: dict[str, Any]) -> None:
    """Put the resources that a resize asks for, of containers and of the pod, into `spec`."""
    for group in ("containers", "initContainers"):
        asked = {c.get("name"): c for c in wanted.get(group) or []}
        for container in spec.get(group) or []:
            if container["name"] in asked:
                container["resources"] = copy_json(asked[container["name"]].get("resources") or {})
    if "resources" in wanted:
        spec["resources"] = copy_json(wanted["resources"])


def _spec_change_allowed(new: dict[str, Any], old: dict[str, Any]) -> bool:
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
    """Make the field of `masked` as it is in `old`, also where that means it is absent."""
    if field in old:
        masked[field] = old[field]
    else:
        masked.pop(field, None)
