"""Waits for what a scenario expects, watches what must never be, and says what is wrong."""

from __future__ import annotations

import inspect
from typing import Any, Final

from msgspec import UNSET

from kubelet_conformance.harness.expect import ExpectationFailed
from kubelet_conformance.harness.limits import counted_from
from kubelet_conformance.scenarios.look import calls as look_calls
from kubelet_conformance.scenarios.look import csi as look_csi
from kubelet_conformance.scenarios.look import node as look_node
from kubelet_conformance.scenarios.look import plugged as look_plugged
from kubelet_conformance.scenarios.look import shown as look_shown
from kubelet_conformance.scenarios.look.view import Look, View, said
from kubelet_conformance.scenarios.shape.conditions import (
    Condition,
    Expectation,
    Group,
    Monitor,
)
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.walk import shows_bug
from kubeobjects.strict.values import Value

_LOOKS: Final[dict[str, Any]] = {
    "calls": look_calls.calls,
    "order": look_calls.order,
    "gaps": look_calls.gaps,
    "gap": look_calls.gap,
    "requests": look_calls.requests,
    "pod": look_shown.pod,
    "container": look_shown.container,
    "history": look_shown.history,
    "node": look_shown.node,
    "event": look_shown.event,
    "containers": look_node.containers,
    "sandboxes": look_node.sandboxes,
    "images": look_node.images,
    "files": look_node.files,
    "root": look_node.root,
    "cgroup": look_node.cgroup,
    "stats": look_node.stats,
    "shutdown": look_node.shutdown,
    "answer": look_plugged.answer,
    "device_calls": look_plugged.device_calls,
    "login_runs": look_plugged.login_runs,
    "csi_calls": look_csi.csi_calls,
    "csi_driver": look_csi.csi_driver,
}
TICKS: Final = 600
"""So many looks a long wait takes, about; a short one takes ten in a second."""


async def look(view: View, condition: Condition) -> Look:
    """Look at one condition now."""
    result = _LOOKS[condition.kind](view, condition.what)
    if inspect.isawaitable(result):
        result = await result
    assert isinstance(result, Look)
    return result


async def look_at(view: View, wanted: Condition) -> Look:
    """Look at a condition with its `any_of`, `all_of` or `never`."""
    never = getattr(wanted, "never", UNSET)
    if never is not UNSET:
        result = await look(view, never)
        return Look(not result.holds, result.seen)
    for word, holds in (("any_of", any), ("all_of", all)):
        parts = getattr(wanted, word, UNSET)
        if parts is not UNSET:
            looks = [await look_at(view, part) for part in parts]
            words = "; and ".join(result.seen for result in looks)
            return Look(holds([result.holds for result in looks]), words)
    return await look(view, wanted)


def wanted_words(wanted: Condition) -> str:
    """What is expected, as it is written."""
    for name, joint in (("any_of", " or "), ("all_of", " and ")):
        parts = getattr(wanted, name, UNSET)
        if parts is not UNSET:
            words = joint.join(wanted_words(part) for part in parts)
            return f"({words})" if isinstance(wanted, Group) else words
    never = getattr(wanted, "never", UNSET)
    if never is not UNSET:
        return f"never {_condition_words(never)}"
    return _condition_words(wanted)


def _condition_words(condition: Condition) -> str:
    return f"{condition.kind}: {said(condition.what)}"


def failed(view: View, wanted: Expectation | Monitor, when: str, seen: str) -> ExpectationFailed:
    """The failure: the sentence of the scenario, what was expected and where that is written, what
    was seen, and what happened last."""
    place: Value | None = wanted.__dict__.get("place")
    where = f" ({place.file}:{place.node.line})" if place and place.node.line else ""
    lines = [wanted.says] if wanted.says else []
    lines += [f"expected: {wanted_words(wanted)}{when}{where}", f"seen:     {seen}"]
    text = "\n".join([*lines, *view.node.report()])
    return ExpectationFailed(text, shows_bug=shows_bug(view.scenario, wanted))


class Watcher:
    """Lets time pass, with an eye on what must never hold."""

    def __init__(self, scenario: Scenario, view: View) -> None:
        self._monitors = scenario.never
        self._view = view

    async def run_for(self, duration_s: float) -> None:
        """Let so much time pass. Raises ExpectationFailed when something holds that must not."""
        node = self._view.node
        tick_s = duration_s / TICKS
        if not self._monitors:
            await node.run_for(duration_s, tick_s=min(tick_s, 1.0))
            return
        end_s = node.now_s + duration_s
        while node.now_s < end_s - 1e-9:
            await node.run_for(min(max(0.1, min(tick_s, 1.0)), end_s - node.now_s))
            await self.check()

    async def check(self) -> None:
        """Look at what must not hold."""
        marks = self._view.marks
        for monitor in self._monitors:
            early = monitor.since is not UNSET and monitor.since not in marks
            if early or (monitor.until is not UNSET and monitor.until in marks):
                continue
            result = await look_at(self._view, monitor)
            if result.holds:
                raise failed(self._view, monitor, ", at no time", result.seen)

    async def until(self, wanted: Expectation, within_s: float) -> None:
        """Run until what is wanted holds, then for as long as it has to go on to hold. Raises
        ExpectationFailed."""
        node = self._view.node
        limit_s = within_s if wanted.within is UNSET else wanted.within
        end_s = node.settled_s + limit_s + (node.slack_s if limit_s else 0.0)
        counted = counted_from(node.settled_s, node.now_s)
        await node.refresh()
        result = await look_at(self._view, wanted)
        while not result.holds:
            if node.now_s >= end_s:
                raise failed(self._view, wanted, f" within {limit_s:g} s{counted}", result.seen)
            await self.run_for(min(max(0.1, limit_s / TICKS), 1.0))
            result = await look_at(self._view, wanted)
        await self._goes_on(wanted)

    async def _goes_on(self, wanted: Expectation) -> None:
        """What is wanted holds for its whole time."""
        node = self._view.node
        end_s = node.now_s + wanted.during
        step_s = max(0.1, min(wanted.during / TICKS, 1.0))
        while node.now_s < end_s - 1e-9:
            await self.run_for(min(step_s, end_s - node.now_s))
            result = await look_at(self._view, wanted)
            if not result.holds:
                raise failed(self._view, wanted, f" during {wanted.during:g} s", result.seen)
