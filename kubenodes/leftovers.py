"""What nodes leave at an API server, and its removal: many tests may share one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import CSI_NODES, EVENTS, LEASES, NODES, PODS, Kind
from refkubelet.api.paths import on_node

LEASE_NAMESPACE: Final = "kube-node-lease"
AT_ONCE: Final = 20
"""So many requests are under way at the same time."""


async def remove(api: ApiClient, names: AbstractSet[str]) -> None:
    """Delete all that these nodes have at the API server: pods bound to them (at once: nobody is
    there to end them), Node, Lease, CSINode, events that they told and those about them. What is
    gone already is no error. Their kubelets must have ended before. Raises ApiError: the first one,
    after all that can be deleted is."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def delete(
        kind: Kind[Any], name: str, namespace: str = "", grace_period_s: int | None = None
    ) -> None:
        async with gate:
            try:
                await api.delete(kind, name, namespace, grace_period_s=grace_period_s)
            except ApiError as error:
                if not error.not_found:
                    raise

    async def delete_pods(node: str) -> None:
        async with gate:
            pods = await api.list(PODS, fields=on_node(node))
        metas = [pod.metadata for pod in pods.items]
        await every(delete(PODS, one.name or "", one.namespace or "", 0) for one in metas)

    async def delete_events() -> None:
        events = await api.list(EVENTS)
        metas = [event["metadata"] for event in events.items if is_of(event, names)]
        await every(delete(EVENTS, one["name"], one["namespace"]) for one in metas)

    steps: list[Coroutine[Any, Any, None]] = []
    for name in names:
        steps += [delete_pods(name), delete(NODES, name), delete(CSI_NODES, name)]
        steps.append(delete(LEASES, name, LEASE_NAMESPACE))
    await every([*steps, delete_events()])


def is_of(event: Mapping[str, Any], names: AbstractSet[str]) -> bool:
    """Whether one of these nodes told the event, or is what it is about."""
    about = event.get("involvedObject") or {}
    told_by = (event.get("source") or {}).get("host")
    return told_by in names or (about.get("kind") == "Node" and about.get("name") in names)


async def every(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Take all steps side by side, to their ends. Raises the first error of one, after that."""
    ends = await asyncio.gather(*steps, return_exceptions=True)
    for end in ends:
        if end is not None:
            raise end
