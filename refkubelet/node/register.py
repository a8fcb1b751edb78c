"""Registers this node at the API server and keeps its status current.

The kubelet registers once: a deleted Node is not made again (NODE-006), but a Node that another
client makes under the same name gets the status at the next update. Each update compares the Node
as it is at the API server with the one that it shall be (`updated`, NODE-015): what somebody else
has changed is put right with it, and told as every other change.
Rules: NODE-002 (retries), NODE-004 (adoption), NODE-005, NODE-010 (write on change or every report
period), NODE-011 (tries), NODE-013 (ready as soon as it can be), NODE-014 (pod CIDRs), NODE-015,
NODE-020..024, NODE-034 (reboot).
Upstream: pkg/kubelet/kubelet_node_status.go: registerWithAPIServer, tryRegisterWithAPIServer,
updateNodeStatus, tryUpdateNodeStatus, fastStatusUpdateOnce.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import NODES
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints
from refkubelet.model.objects import Node, to_dict
from refkubelet.node.patches import adopted_node, attached_in, has_changed, node_patch
from refkubelet.node.pod_cidrs import pod_cidrs
from refkubelet.node.settings import NO_FIELDS, NodeSettings
from refkubelet.node.status import flip_events, initial_node
from refkubelet.node.updated import NO_DEVICES, NodeReport, updated_node, updated_status
from simclock import Clock, format_rfc3339

log = logging.getLogger(__name__)

FIRST_TRY_S: Final = 0.1
RETRY_MAX_S: Final = 7.0
JITTER: Final = 0.04  # added to the period between two updates, at most, as a fraction of it
TRIES: Final = 5  # of one update, without a pause
SOON_S: Final = 0.1
SOON_FOR_S: Final = 120.0


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
        self._conditions: list[dict[str, Any]] = []  # as the Node was last written
        self._written_at_s: float | None = None
        self._delay_s = 0.0
        self._latest = _Latest(settings.seen)
        self._complaints = Complaints(log, clock)
        self._hurry = asyncio.Event()
        self._unschedulable = False  # as last told in an event
        self._told_of_boot = False

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
                await self._settings.runtime.look()
                if not self._settings.health.not_ready():
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
        body = self._initial_node()
        if self._settings.startup is not None:
            self._settings.startup.tried()
        try:
            created = await self._api.create(NODES, {"apiVersion": "v1", "kind": "Node"} | body)
        except ApiError as e:
            if e.status not in (403, 409):
                raise
            await self._adopt(await self._api.get(NODES, self._settings.facts.name), body)
            return
        log.info("registered node %s", self._settings.facts.name)
        if self._settings.startup is not None:
            self._settings.startup.registered()
        self._conditions = body["status"]["conditions"]
        self._latest.answered(created)

    def _initial_node(self) -> dict[str, Any]:
        """The Node to create. Its pressure conditions are told by events at each try to register,
        also where the Node is there already (NODE-021)."""
        facts = self._settings.facts
        body = initial_node(facts, updated_status(None, self._report(NO_FIELDS)))
        for reason in flip_events((), body["status"]["conditions"]):
            self._tell(reason)
        return body

    async def _adopt(self, node: Node, initial: Mapping[str, Any]) -> None:
        """Adopt an existing Node: correct the little that a kubelet corrects at its start
        (NODE-004). The status follows with the first update."""
        existing = to_dict(node)
        devices = self._settings.devices
        is_new = devices is not None and devices.node_is_new
        patch = node_patch(existing, adopted_node(existing, initial, devices_are_lost=is_new))
        if patch:
            node = await self._patched(patch)
        log.info("adopted the existing node %s", self._settings.facts.name)
        self._latest.answered(node)

    async def _patched(self, patch: Mapping[str, Any]) -> Node:
        name = self._settings.facts.name
        return await self._api.patch(NODES, name, patch, subresource="status")

    async def _update(self) -> None:
        """Write the status if that is due, with up to five tries: first with the informer's Node,
        then with the API server's (NODE-011)."""
        name = self._settings.facts.name
        for number in range(TRIES):
            try:
                node = self._latest.node()
                if number:
                    node = await self._api.get(NODES, name)
                if node is not None:
                    await self._try_update(to_dict(node), pod_cidrs(node))
            except ApiError as e:
                self._complaints.failed(self._what, e, ApiError)
            else:
                if node is not None:
                    return  # else the informer has none (yet)

    async def _try_update(self, before: Mapping[str, Any], cidrs: Sequence[str]) -> None:
        """Write the status if the Node at the API server, `before`, is not as it shall be, or if it
        was last written a report period ago. Events tell of each difference that is found, written
        or not."""
        moved = await self._settings.runtime.pod_cidrs(cidrs)
        after = updated_node(before, self._report(before.get("status") or {}))
        self._tell_changes(before, after)
        changed = moved or has_changed(before, after)
        if not changed and not self._is_due():
            self._show_volumes(after["status"])
            return
        changed = changed or self._written_at_s is None
        self._delay_s = self._settings.report_s * (self._settings.random() - 0.5) if changed else 0
        patched = await self._patched(node_patch(before, after))
        self._complaints.over(self._what)
        self._conditions = after["status"]["conditions"]
        self._written_at_s = self._clock.monotonic_s()
        if self._settings.startup is not None and self._is_ready():
            self._settings.startup.ready()
        self._latest.answered(patched)
        self._show_volumes(after["status"])

    def _show_volumes(self, status: Mapping[str, Any]) -> None:
        """The Node has this status; pods may mount the volumes that it shows as in use."""
        if self._settings.volumes is not None:
            self._settings.volumes.reported(status.get("volumesInUse") or ())

    def _tell_changes(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Send the events of an update: another boot of the machine (NODE-034), conditions with
        another status (NODE-021, NODE-024), pods that may or may not come (NODE-070)."""
        old, new = before.get("status") or {}, after["status"]
        boot, own = ((each.get("nodeInfo") or {}).get("bootID") for each in (old, new))
        if boot and boot != own and not self._told_of_boot:
            self._told_of_boot = True
            text = f"Node {self._settings.facts.name} has been rebooted, boot id: {own}"
            self._recorder.node_event("Warning", "Rebooted", text)
        for reason in flip_events(old.get("conditions") or (), new["conditions"]):
            self._tell(reason)
        self._tell_schedulable(before)

    def _tell_schedulable(self, node: Mapping[str, Any]) -> None:
        """Send an event if the Node was made unschedulable, or schedulable again (NODE-070)."""
        unschedulable = bool((node.get("spec") or {}).get("unschedulable"))
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
        """Whether the status was not written yet, or the last write is a report period ago; after a
        change, up to half a period more or less (NODE-010)."""
        if self._written_at_s is None:
            return True
        age_s = self._clock.monotonic_s() - self._written_at_s
        return age_s >= self._settings.report_s + self._delay_s

    def _report(self, before: Mapping[str, Any]) -> NodeReport:
        """What there is to tell now. `before`: the status that the Node shows."""
        s = self._settings
        in_use = s.volumes.in_use(attached_in(before)) if s.volumes is not None else []
        volumes = {"volumesInUse": in_use} if in_use else {}
        return NodeReport(
            facts=s.facts,
            now=format_rfc3339(self._clock.wall_ns()),
            pressures=s.health.pressures(),
            not_ready=s.health.not_ready(),
            devices=s.devices.amounts() if s.devices is not None else NO_DEVICES,
            fields={**s.runtime.fields(), **volumes},
        )


class _Latest:
    """The newest Node that is known. `seen`: the informer's, None while it has none.

    An answer to a write counts until the informer has another Node than it had then, which is not
    one of before the write: its watch may be behind, and bring earlier writes first. A Node of
    before the write would be written, and told of, once more."""

    def __init__(self, seen: Callable[[], Node | None]) -> None:
        self._seen = seen
        self._seen_then: Node | None = None
        self._answer: Node | None = None

    def answered(self, node: Node) -> None:
        """The API server has just answered with this Node."""
        self._answer, self._seen_then = node, self._seen()

    def node(self) -> Node | None:
        watched = self._seen()
        answer = self._answer
        if answer is not None and (watched is self._seen_then or _is_older(watched, answer)):
            return answer
        self._answer = None
        return watched


def _is_older(node: Node | None, other: Node) -> bool:
    """Whether `node` is there, and an earlier version of the same object: its resourceVersion is
    the smaller one. False where one of both is no whole decimal: that says nothing of an order."""
    if node is None or node.metadata is None or other.metadata is None:
        return False
    if node.metadata.uid != other.metadata.uid:
        return False
    versions = [each.resourceVersion or "" for each in (node.metadata, other.metadata)]
    if not all(text.isascii() and text.isdigit() for text in versions):
        return False
    return int(versions[0]) < int(versions[1])
