"""Pods: created Pending, changed only where the API allows it, deleted with a grace period.

A request to the pod itself changes metadata and a few fields of spec, one to /status the status,
one to /resize the resources of containers, one to /ephemeralcontainers the ephemeral containers.
A bound pod that is deleted stays, with deletionTimestamp, until its kubelet deletes it with a grace
period of 0 (STAT-030); a pod that is unbound or has ended goes at once.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.resources.pod_defaults import default_pod, qos_class
from fakekubeapi.resources.pod_resizes import resize_causes
from fakekubeapi.resources.pod_validation import (
    annotation_causes,
    toleration_causes,
    updatable_causes,
    validate_pod,
)
from fakekubeapi.resources.strategy import Object, Strategy
from kubeobjects.causes import Cause, forbidden_field, invalid_value

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
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
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [dict(_GATED)]

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *validate_pod(obj, new=True)]

    def set_times(self, new: Object, old: Object, now: str) -> None:
        for condition in (new.get("status") or {}).get("conditions") or () if not old else ():
            condition["lastTransitionTime"] = condition.get("lastTransitionTime") or now

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "resize":
            wanted = new.get("spec") or {}
            new.clear()
            new.update(copy_json(old))
            _copy_resources(wanted, new["spec"])
            default_pod(new, admission=False)
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
            new["metadata"].pop("deletionTimestamp", None)
            if "deletionTimestamp" in old["metadata"]:
                new["metadata"]["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
            status = new.setdefault("status", {})
            if status.get("podIP") and not status.get("podIPs"):
                status["podIPs"] = [{"ip": status["podIP"]}]
            status.setdefault("qosClass", old.get("status", {}).get("qosClass", "BestEffort"))
        else:
            for field in ("priority", "preemptionPolicy"):
                if field in old["spec"] and isinstance(new.get("spec"), dict):
                    new["spec"].setdefault(field, old["spec"][field])
            default_pod(new)

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        causes += [*validate_pod(new), *_mirror_causes(new, old)]
        causes += annotation_causes(new, new["spec"])
        changed = _container_causes(new["spec"], old["spec"]) if subresource == "" else []
        if changed:
            return [*causes, *changed]
        if subresource == "":
            causes += updatable_causes(new["spec"])
            causes += _toleration_causes(new["spec"], old["spec"])
            causes += _gate_causes(new["spec"], old["spec"])
        if subresource == "" and not _spec_change_allowed(new["spec"], old["spec"]):
            causes.append(
                forbidden_field(
                    "spec", f"pod updates may not change fields other than {_UPDATABLE}"
                )
            )
        if subresource == "status":
            causes += _qos_causes(new["status"], old.get("status") or {})
        if subresource == "ephemeralcontainers":
            causes += _ephemeral_causes(new["spec"], old["spec"])
        if subresource == "resize":
            causes += resize_causes(new, old)
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


def _container_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What is wrong if an update adds or removes containers."""
    text = "pod updates may not add or remove containers"
    return [
        forbidden_field(f"spec.{group}", text)
        for group in ("containers", "initContainers")
        if len(new.get(group) or ()) != len(old.get(group) or ())
    ][:1]


def _ephemeral_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What is wrong if an update changes or removes ephemeral containers; it may only add some."""
    now = {container.get("name"): container for container in new.get("ephemeralContainers") or []}
    causes = []
    for container in old.get("ephemeralContainers") or []:
        name = container["name"]
        if now.get(name) != container:
            verb = "changed" if name in now else "removed"
            text = f'existing ephemeral containers "{name}" may not be {verb}\n'
            causes.append(forbidden_field("spec.ephemeralContainers", text))
    return causes


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
    for looked_at in ("tolerations", "schedulingGates"):  # by functions of their own
        _take(masked, old, looked_at)
    grace = "terminationGracePeriodSeconds"
    if (old.get(grace) or 0) < 0 and new.get(grace) == 1:
        _take(masked, old, grace)
    return bool(masked == old)


def _deadline_allowed(new: dict[str, Any], old: dict[str, Any]) -> bool:
    was = old.get("activeDeadlineSeconds")
    return was is None or bool(new["activeDeadlineSeconds"] <= was)


def _toleration_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What is wrong if an update changes or removes tolerations; it may add some, and change how
    long others last."""

    def lasting(spec: dict[str, Any]) -> list[dict[str, Any]]:
        listed = spec.get("tolerations") or []
        return [{k: v for k, v in one.items() if k != "tolerationSeconds"} for one in listed]

    now = lasting(new)
    if all(one in now for one in lasting(old)):
        return toleration_causes(new.get("tolerations") or [])
    text = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden_field("spec.tolerations", text)]


def _gate_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What is wrong if an update adds scheduling gates; it may only remove some."""
    had = {gate.get("name") for gate in old.get("schedulingGates") or []}
    text = "only deletion is allowed, but found new scheduling gate '{}'"
    return [
        forbidden_field(f"spec.schedulingGates[{i}].name", text.format(gate.get("name")))
        for i, gate in enumerate(new.get("schedulingGates") or [])
        if gate.get("name") not in had
    ]


def _qos_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What is wrong if a status changes the QoS class."""
    given = new.get("qosClass")
    if given == old.get("qosClass", given):
        return []
    return [invalid_value("status.qosClass", given, "field is immutable")]


def _take(masked: dict[str, Any], old: dict[str, Any], field: str) -> None:
    """Make the field of `masked` as it is in `old`, also where that means it is absent."""
    if field in old:
        masked[field] = old[field]
    else:
        masked.pop(field, None)
