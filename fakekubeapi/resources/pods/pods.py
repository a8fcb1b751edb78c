"""Pods: created Pending, changed only where the API allows it, deleted with a grace period.

A request to the pod itself changes metadata and a few fields of spec, one to /status the status,
one to /resize the resources of containers, one to /ephemeralcontainers the ephemeral containers.
A bound pod that is deleted stays, with deletionTimestamp, until its kubelet deletes it with a grace
period of 0 (STAT-030); a pod that is unbound or has ended goes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.resources.common.strategy import Object, Strategy
from fakekubeapi.resources.common.twins import settle_first
from fakekubeapi.resources.pods.admission import admit_pod
from fakekubeapi.resources.pods.resizes import resize_causes
from fakekubeapi.resources.pods.updates import (
    ephemeral_causes,
    mirror_causes,
    qos_causes,
    spec_causes,
)
from kubeobjects import pods
from kubeobjects.causes import Cause

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_TERMINAL: Final = ("Succeeded", "Failed")


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
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName"),
        *("spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP"),
        "status.nominatedNodeName",
    )

    def prepare_create(self, obj: Object) -> None:
        """Fill in the defaults. The status that was sent is dropped: a new pod is Pending
        (MIRR-023)."""
        pods.default_pod(obj)
        pods.merge_own(obj)
        admit_pod(obj)
        obj["status"] = {"phase": "Pending", "qosClass": pods.qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [dict(_GATED)]

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from pods.pod_causes(obj, static=False)

    def set_times(self, new: Object, old: Object, now: str) -> None:
        for condition in (new.get("status") or {}).get("conditions") or () if not old else ():
            condition["lastTransitionTime"] = condition.get("lastTransitionTime") or now

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "resize":
            requested = new.get("spec") or {}
            new.clear()
            new.update(copy_json(old))
            _copy_resources(requested, new["spec"])
            pods.default_pod(new)
            return
        if subresource == "ephemeralcontainers":
            requested = (new.get("spec") or {}).get("ephemeralContainers") or []
            new.clear()
            new.update(copy_json(old))
            new["spec"]["ephemeralContainers"] = requested
            pods.default_pod(new)
            return
        super().prepare_update(new, old, subresource)
        if subresource == "status":
            new["metadata"]["ownerReferences"] = old["metadata"].get("ownerReferences")
            new["metadata"].pop("deletionTimestamp", None)
            if "deletionTimestamp" in old["metadata"]:
                new["metadata"]["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
            status = new.setdefault("status", {})
            settle_first(status, "podIP", "podIPs", inside="ip")
            status.setdefault("qosClass", old.get("status", {}).get("qosClass", "BestEffort"))
        else:
            for field in ("priority", "preemptionPolicy"):
                if field in old["spec"] and isinstance(new.get("spec"), dict):
                    new["spec"].setdefault(field, old["spec"][field])
            pods.default_pod(new)
            admit_pod(new)

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        yield from pods.spec_causes(new, static=False)
        yield from mirror_causes(new, old)
        yield from pods.special_annotation_causes(new)  # an update tells them twice
        if subresource == "":
            yield from spec_causes(new["spec"], old["spec"])
        if subresource == "status":
            yield from qos_causes(new["status"], old.get("status") or {})
        if subresource == "ephemeralcontainers":
            yield from ephemeral_causes(new["spec"], old["spec"])
        if subresource == "resize":
            yield from resize_causes(new, old)

    def delete_grace_s(self, obj: Object, asked_s: int | None) -> int:
        spec = obj.get("spec") or {}
        if not spec.get("nodeName") or obj.get("status", {}).get("phase") in _TERMINAL:
            return 0
        grace_s = asked_s if asked_s is not None else spec.get("terminationGracePeriodSeconds", 30)
        return grace_s if grace_s >= 0 else 1


def _copy_resources(wanted: dict[str, Any], spec: dict[str, Any]) -> None:
    """Put the resources that a resize asks for, of containers and of the pod, into `spec`."""
    for group in ("containers", "initContainers"):
        sent = {c.get("name"): c for c in wanted.get(group) or []}
        for container in spec.get(group) or []:
            if container["name"] in sent:
                container["resources"] = copy_json(sent[container["name"]].get("resources") or {})
    if "resources" in wanted:
        spec["resources"] = copy_json(wanted["resources"])
