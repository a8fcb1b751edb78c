"""Registers this node at the API server and keeps its status current.

The kubelet registers once: a deleted Node is not made again (NODE-006), but a Node that another
client makes under the same name gets the status at the next update.
Rules: NODE-002 (retries), NODE-004 (adoption), NODE-005, NODE-010 (write on change or every report
period), NODE-011 (tries), NODE-013 (ready as soon as it can be), NODE-014 (pod CIDRs),
NODE-020..024, NODE-034 (reboot).
Upstream: pkg/kubelet/kubelet_node_status.go: registerWithAPIServer, reconcileExtendedResource,
updateNodeStatus, fastStatusUpdateOnce.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints
from refkubelet.model.objects import Node, to_dict
from refkubelet.node.patches import (
    adoption_patch,
    attached_in,
    sent,
    volumes_differ,
    with_devices,
    without_devices,
    without_heartbeat,
)
from refkubelet.node.pod_cidrs import pod_cidrs
from refkubelet.node.settings import NO_FIELDS, NodeSettings
from refkubelet.node.status import (
    conditions,
    flip_events,
    initial_node,
    node_status,
)
from simclock import Clock, format_rfc3339

log = logging.getLogger(__name__)

FIRST_TRY_S: Final = 0.1
RETRY_MAX_S: Final = 7.0
JITTER: Final = 0.04  # added to the period between two updates, at most, as a fraction of it
TRIES: Final = 5  # of one update, without a pause
SOON_S: Final = 0.1
SOON_FOR_S: Final = 120.0
_OF_THE_MACHINE: Final = ("kubernetes.io/os", "kubernetes.io/arch")


class NodeRegistrar:
    """Creates or adopts the Node object, then writes its status. No other part of the kubelet waits
    for this."""

    def __init__(
        self, api: ApiClient, settings: NodeSettings, recorder: EventRecorder, clock: Clock
    ) -> None:
        self._api = api
        self._settings = settings
        self._recorder = recorder
        self._clock = clock
        self._conditions: list[dict[str, Any]] = []
        self._written: dict[str, Any] = {}
        self._written_at_s: float | None = None
        self._delay_s = 0.0
        self._written_to = ""  # the UID of that Node
        self._complaints = Complaints(log, clock)
        self._hurry = asyncio.Event()
        self._unschedulable = False  # as last told in an event
        self._booted = settings.facts.info.get("bootID", "")  # told last, or this boot's

    def hurry(self) -> None:
        """Update the status now, without waiting for the next period."""
        self._hurry.set()

    async def run(self) -> None:
        """Register, then update until cancelled."""
        if self._settings.register:
            await self._register()
        while True:
            await self._update()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._period_s()):
                    await self._hurry.wait()
            self._hurry.clear()

    async def get_ready(self) -> None:
        """Update the status as soon as the node is ready: check every 100 ms, for up to 120 s, then
        wait to be cancelled (NODE-013, upstream: fastStatusUpdateOnce). Without this, a node whose
        runtime answers late would be reported ready up to 10 s later."""
        until_s = self._clock.monotonic_s() + SOON_FOR_S
        while not self._is_ready() and self._clock.monotonic_s() < until_s:
            await self._clock.sleep(SOON_S)
            if self._conditions and not self._is_ready():
                await self._settings.look()
                if not self._settings.not_ready():
                    self.hurry()
        await asyncio.Event().wait()

    def _is_ready(self) -> bool:
        """Whether the last written status has Ready True."""
        return any(c.get("type") == "Ready" and c["status"] == "True" for c in self._conditions)

    def _period_s(self) -> float:
        return self._settings.update_s * (1 + JITTER * self._settings.random())

    async def _register(self) -> None:
        delay_s = FIRST_TRY_S
        while True:
            await self._clock.sleep(delay_s)
            delay_s = min(2 * delay_s, RETRY_MAX_S)
            try:
                await self._try_register()
                return
            except ApiError as e:
                log.warning("cannot register node %s: %s", self._settings.facts.name, e)

    async def _try_register(self) -> None:
        facts = self._settings.facts
        body = initial_node(facts, self._status())
        try:
            node: Node = msgspec.convert(body, Node)
            made = await self._api.create_node(node)
        except ApiError as e:
            if e.status not in (403, 409):
                raise
            await self._adopt(await self._api.get_node(facts.name))
            return
        log.info("registered node %s", facts.name)
        self._accept(body["status"], made)
        self._written_at_s = None  # the first update is due at once

    async def _adopt(self, node: Node) -> None:
        """Adopt an existing Node: write the status, the kubelet's labels and its annotation, but
        neither taints nor other labels (NODE-004)."""
        existing = to_dict(node)
        self._take_over(existing)
        metadata = adoption_patch(self._settings.facts, existing.get("metadata") or {})
        before = existing.get("status") or {}
        status = self._status(before)
        if self._settings.devices is not None and self._settings.devices.node_is_new:
            status = without_devices(status, before)
        patch: dict[str, Any] = {"status": sent(status, before)}
        if metadata:
            patch["metadata"] = metadata
        adopted = await self._api.patch_node_status(self._settings.facts.name, patch)
        log.info("adopted the existing node %s", self._settings.facts.name)
        self._accept(status, adopted)

    async def _update(self) -> None:
        """Write the status if that is due, with up to five tries: first with the informer's Node,
        then with the API server's (NODE-011)."""
        name = self._settings.facts.name
        for number in range(TRIES):
            try:
                node = await self._api.get_node(name) if number else self._settings.seen()
                await self._try_update(node)
            except ApiError as e:
                self._complaints.failed(self._what, e, ApiError)
            else:
                return

    async def _try_update(self, node: Node | None) -> None:
        """Write the status if it changed, if it was last written a report period ago, or if `node`
        is not the Node it was written to (NODE-006)."""
        facts, patch, moved = self._settings.facts, dict[str, Any](), False
        if node is not None:
            self._tell_schedulable(node)
            moved = await self._settings.pod_cidrs(pod_cidrs(node))
        before = to_dict(node).get("status") or {} if node is not None else {}
        is_another = node is not None and _uid(node) != self._written_to
        if node is not None and is_another:
            self._take_over(to_dict(node))
            labels = {key: facts.labels[key] for key in _OF_THE_MACHINE if key in facts.labels}
            patch["metadata"] = {"labels": labels}
        status = self._status(before)
        differs = without_heartbeat(status) != without_heartbeat(self._written)
        changed = differs or is_another or moved or self._written_at_s is None
        changed = changed or (node is not None and volumes_differ(status, before))
        if not changed and not self._is_due():
            return
        self._delay_s = self._settings.report_s * (self._settings.random() - 0.5) if changed else 0
        patch["status"] = sent(status, before)
        written = await self._api.patch_node_status(facts.name, patch)
        self._complaints.over(self._what)
        self._accept(status, written)

    def _take_over(self, existing: Mapping[str, Any]) -> None:
        """Go on from the status of a Node that is there: its conditions, and the boot that it
        knows; another one is told (NODE-034)."""
        status = existing.get("status") or {}
        self._conditions = status.get("conditions") or []
        before = (status.get("nodeInfo") or {}).get("bootID") or ""
        own = self._settings.facts.info.get("bootID", "")
        if before not in ("", own, self._booted):
            self._booted = before
            name = self._settings.facts.name
            text = f"Node {name} has been rebooted, boot id: {own}"
            self._recorder.node_event("Warning", "Rebooted", text)

    def _tell_schedulable(self, node: Node) -> None:
        """Send an event if the Node was made unschedulable, or schedulable again (NODE-070)."""
        unschedulable = bool(node.spec is not None and node.spec.unschedulable)
        if unschedulable != self._unschedulable:
            self._unschedulable = unschedulable
            self._tell("NodeNotSchedulable" if unschedulable else "NodeSchedulable")

    def _tell(self, reason: str) -> None:
        text = f"Node {self._settings.facts.name} status is now: {reason}"
        self._recorder.node_event("Normal", reason, text)

    @property
    def _what(self) -> str:
        return f"cannot update the status of node {self._settings.facts.name}"

    def _is_due(self) -> bool:
        """Whether the last write is a report period ago; after a change, up to half a period more
        or less (NODE-010)."""
        written_at_s = self._written_at_s or 0.0
        age_s = self._clock.monotonic_s() - written_at_s
        return age_s >= self._settings.report_s + self._delay_s

    def _status(self, before: Mapping[str, Any] = NO_FIELDS) -> dict[str, Any]:
        """The status as it is now. `before`: what the Node shows."""
        s = self._settings
        now = format_rfc3339(self._clock.wall_ns())
        rows = conditions(s.pressures(), s.not_ready(), self._conditions, now)
        facts = with_devices(s.facts, s.devices.amounts()) if s.devices else s.facts
        in_use = s.volumes.in_use(attached_in(before)) if s.volumes is not None else []
        volumes = {"volumesInUse": in_use} if in_use else {}
        return {**node_status(facts, rows), **s.runtime(), **volumes}

    def _accept(self, status: dict[str, Any], node: Node) -> None:
        """Record a status that the server has accepted, and send events for changed conditions."""
        for reason in flip_events(self._conditions, status["conditions"]):
            self._tell(reason)
        self._conditions = status["conditions"]
        self._written = status
        self._written_at_s = self._clock.monotonic_s()
        self._written_to = _uid(node)
        if self._settings.volumes is not None:
            self._settings.volumes.reported(status.get("volumesInUse") or ())


def _uid(node: Node) -> str:
    return (node.metadata.uid if node.metadata is not None else None) or ""
