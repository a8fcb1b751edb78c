"""The time of a case, and what was seen of its node at the last look.

Everything else that belongs to a node (`Node` and its facets) shares one `Watch`. It looks at the
kubelet and the API server once per tick, so conditions of a case are plain functions of snapshots.
It never waits in real time when the run is virtual: all waiting goes through the clock of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.harness.expect import failure
from kubelet_conformance.harness.limits import counted_from
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.observing.activity import Activity
from kubelet_conformance.harness.observing.kubelet_log import refused_files
from kubelet_conformance.harness.observing.looked import seen_by
from kubelet_conformance.harness.observing.snapshots import Snapshots
from kubelet_conformance.harness.observing.words import call_line, event_line, is_write
from kubelet_conformance.laws.history import Planned, PlannedKind

LAST_CALLS: Final = 15
LAST_EVENTS: Final = 8
ROUNDING_S: Final = 1e-9
"""So little time may be too little for a clock to show that it has passed."""


class Watch:
    """Time, snapshots and names of the pods of one case."""

    def __init__(self, parts: Parts) -> None:
        self.snapshots = Snapshots(parts.kubelet, parts.api, parts.clock, parts.node_name)
        self.created_at_api: set[str] = set()
        """Names of the pods that the case created at the API; all others are static."""
        self._parts = parts
        self.start_s = parts.clock.monotonic_s()
        """When the case began, on the clock of the run."""
        self.planned: list[Planned] = []
        """What the case did to its node."""
        self.drivers: list[FakeCsiDriver] = []
        """The storage drivers that the case has let listen, each once."""
        self.listening: dict[str, Path] = {}
        """The names of those that listen now, and their sockets."""
        self._kubelet_since_s = 0.0
        self._activity = Activity(parts.runtime, parts.api, parts.pace.quiet_s)

    # --- pods -----------------------------------------------------------------------------

    def runtime_name(self, pod: str) -> str:
        """The name of that pod in the runtime, in `/pods` and at the API: a static pod has the
        node's name behind its own (SRC-033)."""
        return pod if pod in self.created_at_api else f"{pod}-{self._parts.node_name}"

    def pod(self, name: str) -> dict[str, Any] | None:
        """The pod as the kubelet's `/pods` shows it; None when it is not listed."""
        return self.snapshots.pods.get(self.runtime_name(name))

    def listed_pod(self, name: str) -> dict[str, Any]:
        """The same. Raises ExpectationFailed when it is not listed."""
        pod = self.pod(name)
        if pod is None:
            raise failure(self, f"pod {name} in /pods", "not listed")
        return pod

    def plan(self, kind: PlannedKind, about: str = "") -> None:
        """Remember that the case does that to its node now."""
        self.planned.append(Planned(self._parts.clock.monotonic_s(), kind, about))

    # --- time -----------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the case began."""
        return self.since_start_s(self._parts.clock.monotonic_s())

    def since_start_s(self, monotonic_s: float) -> float:
        """A moment of the clock of the run, in seconds since the case began."""
        return monotonic_s - self.start_s

    @property
    def slack_s(self) -> float:
        """How many seconds measuring may add to an upper bound (`limits.Pace`)."""
        return self._parts.pace.slack_s

    def kubelet_started(self) -> None:
        """Remember that the kubelet was started just now: it needs a while to settle."""
        self._kubelet_since_s = self.now_s

    async def run_for(self, duration_s: float, *, tick_s: float = 0.0) -> None:
        """Let `duration_s` seconds pass, with a look every `tick_s` seconds, or at the pace of the
        run where that is longer or the kubelet is quiet, and one at the end."""
        end_s = self.now_s + duration_s
        tick_s = max(tick_s, self._parts.pace.tick_s)
        self._activity.stir(self.now_s)
        while (left_s := end_s - self.now_s) > ROUNDING_S:
            await self._pass(min(tick_s, left_s))
            if self._activity.wants_look(self.now_s) or end_s - self.now_s <= ROUNDING_S:
                await self.snapshots.look()

    @property
    def settled_s(self) -> float:
        """From when on a kubelet does what it has to: now, or later when it has just started."""
        return max(self.now_s, self._kubelet_since_s + self._parts.pace.settle_s)

    async def run_until(
        self, condition: Callable[[], object], *, within_s: float, what: str = ""
    ) -> None:
        """Let time pass until `condition()` is true. A quiet kubelet is only looked at now and
        then, unless the condition asks for its pods; in the end, what was seen of it is new.

        Raises ExpectationFailed after `within_s` seconds, plus slack and what a kubelet that has
        just started may need; `what` is the expectation in its text.
        """
        pace = self._parts.pace
        start_s = self.settled_s
        counted = counted_from(start_s, self.now_s)
        await self.snapshots.refresh()
        self._activity.stir(self.now_s)
        self.snapshots.asked, looked = False, True
        while not condition():
            if self.now_s >= start_s + within_s + self.slack_s:
                expected = f"{what or 'condition'} within {within_s:g} s{counted}"
                raise failure(self, expected, seen_by(condition))
            await self._pass(max(pace.tick_s, min(1.0, within_s / 300)))
            looked = self._activity.wants_look(self.now_s) or self.snapshots.asked
            if looked:
                await self.snapshots.look()
        if not looked:
            await self.snapshots.look()

    async def pause(self) -> None:
        """Let one tick pass (a tenth of a second)."""
        await self._tick(self._parts.pace.tick_s)

    async def _tick(self, duration_s: float) -> None:
        await self._pass(duration_s)
        await self.snapshots.refresh()

    async def _pass(self, duration_s: float) -> None:
        """Let time pass; the disk under the kubelet follows its node."""
        await self._parts.clock.sleep(duration_s, slack_s=self._parts.pace.late_s)
        if self._parts.machine.disk is not None:
            self._parts.machine.disk.follow(self._parts.clock.happened())

    # --- reports --------------------------------------------------------------------------

    def trace(self, *, last: int | None = None) -> list[str]:
        """The recorded calls, one line each: all of them, or only the `last` that change
        something."""
        calls = self._parts.runtime.calls(None, None, None)
        if last is not None:
            calls = [c for c in calls if is_write(c)][-last:]
        return [call_line(c, self.start_s) for c in calls]

    def report(self) -> list[str]:
        """What happened last, as lines below the text of a failure: the files of static pods that
        the kubelet has refused, which belong to what was seen, the time, the last changing calls,
        events and statuses."""
        lines = [*self._refusals(), f"at:       {self.now_s:.2f} s", "last calls:"]
        lines += [f"  {line}" for line in self.trace(last=LAST_CALLS)] or ["  (none)"]
        if events := self.snapshots.events[-LAST_EVENTS:]:
            lines.append("last events:")
            lines += [f"  {line}" for line in self._event_lines(events)]
        if statuses := self.snapshots.status_lines(self.start_s)[-LAST_EVENTS:]:
            lines.append("last statuses:")
            lines += [f"  {line}" for line in statuses]
        return lines

    def _event_lines(self, events: Sequence[Mapping[str, Any]]) -> list[str]:
        """The events, one line each, with the seconds since the case began."""
        times_s = self._parts.api.event_times_s() if self._parts.api is not None else {}
        since_s = {name: self.since_start_s(at_s) for name, at_s in times_s.items()}
        return [event_line(event, since_s.get(event["metadata"]["name"])) for event in events]

    def _refusals(self) -> list[str]:
        """The files of static pods that are there and were refused, each with the reason."""
        directory = self._parts.paths.manifests
        refused = refused_files(self._parts.kubelet.log_lines(), str(directory))
        return [
            f"          static pod file {file} was refused: {why}"
            for file, why in refused.items()
            if (directory / file).exists()
        ]
