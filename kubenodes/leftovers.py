"""What nodes leave at an API server, and its removal: many tests may share one."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import CSI_NODES, EVENTS, LEASES, NODES, PODS, Kind
from refkubelet.api.paths import on_node

LEASE_NAMESPACE: Final = "kube-node-lease"


async def remove(api: ApiClient, names: AbstractSet[str]) -> None:
    """Delete all that these nodes have at the API server: pods bound to them (at once: nobody is
    there to end them), Node, Lease, CSINode, events that they told and those about them. What is
    gone already is no error. Their kubelets must have ended before. Raises ApiError."""
    for name in names:
        pods = await api.list(PODS, fields=on_node(name))
        for pod in pods.items:
            namespace = pod.metadata.namespace or ""
            await _delete(api, PODS, pod.metadata.name or "", namespace, grace_period_s=0)
        await _delete(api, NODES, name)
        await _delete(api, LEASES, name, LEASE_NAMESPACE)
        await _delete(api, CSI_NODES, name)
    events = await api.list(EVENTS)
    for event in events.items:
        if is_of(event, names):
            metadata = event["metadata"]
            await _delete(api, EVENTS, metadata["name"], metadata["namespace"])


def is_of(event: Mapping[str, Any], names: AbstractSet[str]) -> bool:
    """Whether one of these nodes told the event, or is what it is about."""
    about = event.get("involvedObject") or {}
    told_by = (event.get("source") or {}).get("host")
    return told_by in names or (about.get("kind") == "Node" and about.get("name") in names)


async def _delete(
    api: ApiClient,
    kind: Kind[Any],
    name: str,
    namespace: str = "",
    *,
    grace_period_s: int | None = None,
) -> None:
    try:
        await api.delete(kind, name, namespace, grace_period_s=grace_period_s)
    except ApiError as error:
        if not error.not_found:
            raise
