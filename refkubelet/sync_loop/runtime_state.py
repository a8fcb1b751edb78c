"""Whether the runtime is ready. Runtime errors stop the sync loop, network errors only pods that
need the pod network (LIFE-006, NODE-050, PLEG-202). `RuntimeWatch` polls, `RuntimeState` judges.

Upstream: pkg/kubelet/runtime.go; pkg/kubelet/kubelet.go: updateRuntimeUp.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from refkubelet.cri.client import WANTED_VERSION
from refkubelet.cri.records import HandlerFeatures, RuntimeConditions, RuntimeVersion
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.host.awake import Seconds
from simclock import Clock

log = logging.getLogger(__name__)

STATUS_PERIOD_S: Final = 5.0
STATUS_MAX_AGE_S: Final = 30.0
SILENT: Final = "cannot get the runtime's status"


class RuntimeState:
    """The last answer of the CRI's Status, and the health of the PLEG. `evented_error`, the health
    of the evented PLEG, counts for the node's condition only: its full queue must not stop the
    loop that empties it (PLEG-303). `clock`: by which an answer gets old (NODE-054).
    `strict_groups` and `handlers` are those of the last answer."""

    def __init__(
        self,
        clock: Seconds,
        pleg_error: Callable[[], str | None],
        evented_error: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._pleg_error = pleg_error
        self._evented_error = evented_error
        self._good_s: float | None = None
        self._runtime_error: str | None = None
        self._network_error: str | None = "network state unknown"  # NODE-023
        self.strict_groups = False
        self.handlers: Mapping[str, HandlerFeatures] = {}

    @property
    def seen_ready(self) -> bool:
        """Whether the runtime was ready at least once."""
        return self._good_s is not None

    def observe(self, conditions: RuntimeConditions) -> None:
        """Record an answer of Status; a runtime that is not ready is an error at once."""
        self.handlers = conditions.handlers
        self._runtime_error = conditions.runtime_error()
        self.strict_groups = conditions.strict_groups
        if self._runtime_error is not None:
            return
        self._network_error = conditions.network_error()
        self._good_s = self._clock.monotonic_s()

    def runtime_errors(self) -> str | None:
        """Why the sync loop must wait, all reasons in one text; None: it may run."""
        return "; ".join(self._errors()) or None

    def _errors(self) -> list[str]:
        errors = []
        if self._good_s is None:
            errors.append("container runtime status check may not have completed yet")
        elif self._clock.monotonic_s() - self._good_s >= STATUS_MAX_AGE_S:
            errors.append("container runtime is down")
        problem = self._pleg_error()
        if problem is not None:
            errors.append(f"PLEG is not healthy: {problem}")
        if self._runtime_error is not None:
            errors.append(self._runtime_error)
        return errors

    def not_ready(self) -> list[str]:
        """Why the node is not ready, the network included (NODE-020)."""
        errors, problem = self._errors(), self._evented_error()
        if problem is not None:
            errors.append(f"EventedPLEG is not healthy: {problem}")
        return errors if self._network_error is None else [*errors, self._network_error]

    def network_error(self) -> str | None:
        """Why pods that need the pod network must wait; None: the network is ready."""
        return self._network_error


class WatchedRuntime(Protocol):
    async def status(self) -> RuntimeConditions: ...

    async def version(self, version: str = "") -> RuntimeVersion: ...


class RuntimeWatch:
    """Asks the runtime for its status every 5 s (NODE-050). When it is ready for the first time,
    `at_first` is called and `ready` is set; no pod is synced before."""

    def __init__(
        self,
        runtime: WatchedRuntime,
        state: RuntimeState,
        clock: Clock,
        at_first: Callable[[], None] = lambda: None,
    ) -> None:
        self._runtime = runtime
        self._state = state
        self._clock = clock
        self._at_first = at_first
        self._name: str | None = None
        self._complaints = Complaints(log, clock)
        self.ready = asyncio.Event()

    def runtime_name(self) -> str:
        """The runtime's own name, the scheme of container IDs in statuses."""
        return self._name or "unknown"

    def after_ready(self, run: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """`run`, started only when the runtime is ready for the first time (NODE-050)."""

        async def run_when_ready() -> None:
            await self.ready.wait()
            await run()

        return run_when_ready

    async def run(self) -> None:
        while True:
            await self.update_runtime_up()
            await self._clock.sleep(STATUS_PERIOD_S)

    async def update_runtime_up(self) -> None:
        """Ask once. A failed call is no error until the last good answer is 30 s old."""
        try:
            if self._name is None:
                self._name = (await self._runtime.version(WANTED_VERSION)).runtime_name
            self._state.observe(await self._runtime.status())
        except Exception as error:
            self._complaints.failed(SILENT, error, CriCallError)
            return
        self._complaints.over(SILENT)
        if self._state.seen_ready and not self.ready.is_set():
            self._at_first()
            self.ready.set()
