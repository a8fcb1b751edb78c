"""Checks the bodies of bindings and evictions, and which pods can be bound. Pure."""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.errors import StatusError, bad_request
from fakekubeapi.requests.routes import Route
from kubeobjects.causes import required, unsupported_value


def require_name(route: Route, body: dict[str, Any], kind: str) -> None:
    """Raise StatusError 400 if a body of that kind has another name than the path."""
    if (body.get("metadata") or {}).get("name", "") != route.name:
        raise bad_request(f"name in URL does not match name in {kind} object")


def require_eviction(body: dict[str, Any]) -> None:
    """Raise StatusError 400 if the body is not an Eviction of a known version."""
    version, kind = body.get("apiVersion") or "policy/v1", body.get("kind") or "Eviction"
    if kind != "Eviction" or version not in ("policy/v1", "policy/v1beta1"):
        raise bad_request(
            f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a Eviction: no '
            f'kind "{kind}" is registered for version "{version}" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"'
        )


EVICTED: Final = "EvictionByEvictionAPI"


def is_disrupted(pod: dict[str, Any]) -> bool:
    """Whether the pod has the condition of an eviction already."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(c["type"] == "DisruptionTarget" and c["reason"] == EVICTED for c in conditions)


def with_disruption(pod: dict[str, Any], now: str) -> dict[str, Any]:
    """The pod with the condition that announces its eviction."""
    status = pod.get("status") or {}
    others = [c for c in status.get("conditions") or [] if c["type"] != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": EVICTED,
        "message": "Eviction API: evicting",
    }
    return {**pod, "status": {**status, "conditions": [*others, condition]}}


def target_of(route: Route, body: dict[str, Any]) -> str:
    """The node that a Binding names. Raises: StatusError 400 for another name than that of the pod,
    500 where no node is named."""
    require_name(route, body, "Binding")
    target = body.get("target") or {}
    causes = []
    if (target.get("kind") or "Node") != "Node":
        causes.append(unsupported_value("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        causes.append(required("target.name"))
    if causes:
        texts = [cause.text for cause in causes]
        message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        raise StatusError(500, message, reason="")
    name: str = target["name"]
    return name


def with_node(pod: dict[str, Any], body: dict[str, Any], node: str, now: str) -> dict[str, Any]:
    """The pod with its node, the labels and annotations of the Binding `body`, and the condition
    that says that it is scheduled."""
    sent, metadata = body.get("metadata") or {}, dict(pod["metadata"])
    for field in ("labels", "annotations"):
        if sent.get(field):
            metadata[field] = {**metadata.get(field, {}), **sent[field]}
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    status = pod.get("status", {})
    others = [c for c in status.get("conditions", []) if c["type"] != "PodScheduled"]
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*others, condition]},
    }


def binding_problem(pod: dict[str, Any]) -> str:
    """Why a pod cannot be bound; "" if it can."""
    spec = pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        return "is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return "has non-empty .spec.schedulingGates"
    return ""
