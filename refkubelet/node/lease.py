"""The node's lease: the heartbeat by which a cluster knows that the kubelet lives.

Rules: NODE-012 (time-out), NODE-040 (content, interval), NODE-041 (made, renewed, tried again).
Upstream: component-helpers/apimachinery/lease/controller.go; pkg/kubelet/util/nodelease.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import LEASES, NODES
from refkubelet.failures import Complaints
from refkubelet.node.lease_content import LEASE_NAMESPACE, has_owner, renewed, with_owner
from simclock import Clock

log = logging.getLogger(__name__)

RENEW_FRACTION: Final = 0.25
JITTER: Final = 0.04
TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 7.0

Lease = dict[str, Any]


class LeaseSettings(Struct, frozen=True):
    """Whose lease it is, and how long it holds."""

    node_name: str
    duration_s: int = 40
    """`nodeLeaseDurationSeconds`; renewed after a quarter of it."""
    update_s: float = 10.0
    """`nodeStatusUpdateFrequency`: no request for the lease takes longer than this, or than the
    lease holds (NODE-012)."""
    random: Callable[[], float] = lambda: 0.5
    """Draws from [0, 1), so that the nodes of a cluster do not all write at the same time."""


class NodeLease:
    """Makes the lease, then renews it. No other part of the kubelet waits for this."""

    def __init__(self, api: ApiClient, settings: LeaseSettings, clock: Clock) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._latest: Lease | None = None
        self._waits_for_node = False
        self._complaints = Complaints(log, clock)

    async def run(self) -> None:
        """Renew until cancelled: at once, then a quarter of the duration after each renewal, and
        up to 4 % more (NODE-040)."""
        while True:
            await self._sync()
            period_s = self._settings.duration_s * RENEW_FRACTION
            await self._clock.sleep(period_s * (1 + JITTER * self._settings.random()))

    async def _sync(self) -> None:
        """Renew the lease as it was last; if that is in vain, read or make it, and renew what was
        read."""
        if self._latest is not None and await self._renew(self._latest):
            return
        lease, is_new = await self._ensure()
        self._latest = lease
        if lease is not None and not is_new:
            await self._renew(lease)

    async def _renew(self, base: Lease | None) -> bool:
        """Write the lease with a new time, with up to five tries; after a conflict the lease is
        read again (NODE-041). Whether it was written."""
        for _ in range(TRIES):
            try:
                if base is None:
                    return False
                lease = await self._owned(self._content(base))
                self._latest = await self._within(self._api.replace(LEASES, lease))
            except ApiError as error:
                self._complaints.failed(self._what, error, ApiError)
                if error.conflict:
                    base, _ = await self._ensure()
            else:
                self._complaints.over(self._what)
                return True
        return False

    async def _ensure(self) -> tuple[Lease | None, bool]:
        """The lease, and whether it was made just now; tried until the server answers, after 200 ms
        and twice as long each time, up to 7 s. None: it is not there and cannot be made, since the
        Node cannot be read."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await self._read_or_make()
            except ApiError as error:
                self._complaints.failed(self._what, error, ApiError)
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _read_or_make(self) -> tuple[Lease | None, bool]:
        name = self._settings.node_name
        try:
            return await self._within(self._api.get(LEASES, name, LEASE_NAMESPACE)), False
        except ApiError as error:
            if not error.not_found:
                raise
        try:
            lease = await self._owned(self._content(None))
        except ApiError as error:
            self._tell_of_no_owner(error)
            return None, False
        created = await self._within(self._api.create(LEASES, lease))
        self._complaints.over(self._what)
        return created, True

    def _tell_of_no_owner(self, error: ApiError) -> None:
        """The Node cannot be read. That it is not there is a trouble from the second time on: at
        its first start a kubelet is about to make it."""
        if error.not_found and not self._waits_for_node:
            self._waits_for_node = True
            log.info("no lease before there is the node %s", self._settings.node_name)
        else:
            self._complaints.failed(self._what, error, ApiError)

    def _content(self, base: Lease | None) -> Lease:
        settings = self._settings
        return renewed(base, settings.node_name, settings.duration_s, self._clock.wall_ns())

    async def _owned(self, lease: Lease) -> Lease:
        """`lease` with the Node as its owner. Raises: ApiError if it has none, and the Node cannot
        be read."""
        if has_owner(lease):
            return lease
        node = await self._within(self._api.get(NODES, self._settings.node_name))
        uid = (node.metadata.uid if node.metadata is not None else None) or ""
        return with_owner(lease, self._settings.node_name, uid)

    async def _within(self, request: Awaitable[Any]) -> Any:
        """The answer of a request, if it comes in time (NODE-012). Raises: ApiError."""
        limit_s = min(self._settings.update_s, float(self._settings.duration_s))
        try:
            async with asyncio.timeout(limit_s):
                return await request
        except TimeoutError:
            raise ApiError(0, "Timeout", f"no answer within {limit_s:g} s") from None

    @property
    def _what(self) -> str:
        return f"cannot renew the lease of node {self._settings.node_name}"
