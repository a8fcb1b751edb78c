"""Tells the runtime what a scenario says of it: what containers do, which calls fail, what pulls
meet."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from msgspec import UNSET, Struct

from fakecri.scripts.script_shapes import RegistryEntry, registry_with
from fakecri.scripts.word_shapes import BehaviorEntry, Behaviors
from fakecri.words.behaviors import exits
from kubelet_conformance.harness.workload import FOREVER_S
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.shape.faults import FAKE_ONLY, Fault
from kubeobjects.strict.reader import Placed


class NeverHit(Exception):
    """Rules of a scenario have never acted, so its expectations say nothing; the text names the
    rules."""


class _PullsOf(Struct, frozen=True):
    """Whether pulls meet an entry of the registry: `hits` had not ended when it was made."""

    view: View
    pattern: str
    made_s: float

    @property
    def hits(self) -> int:
        node = self.view.node
        calls = [c for c in node.calls("PullImage") if fnmatchcase(c.image, self.pattern)]
        return sum(call.ended_s is None or node.ended_s(call) >= self.made_s for call in calls)


class Programmer:
    """Programs the runtime of a scenario, and knows its rules."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._labelled: dict[str, list[Any]] = {}
        self._must_be_hit: list[tuple[Any, Placed, str]] = []

    def begin(self) -> None:
        """What holds from the beginning."""
        scenario = self._view.scenario
        for key, pod in scenario.pods.items():
            for container, each in pod.behaviors.items():
                self._teach(self._view.runtime_name(key), container, each)
        given = scenario.programmed
        if given.registry is not UNSET:
            self.pulls(given.registry)
        for entry in given.behaviors:
            self.behave(entry)
        for fault in given.faults:
            self.fault(fault)

    def _teach(self, pod: str, container: str, each: tuple[Behaviors, ...]) -> None:
        """What the runs of a container do: the last one holds for every attempt, each earlier one
        for its own."""
        if not self._is_fake():
            return
        fake = self._view.node.runtime.programmed
        *first, last = each
        self.must_act(fake.behaves(*last.behaviors, pod=pod, container=container), last)
        for attempt, one in enumerate(first):
            done = list(one.behaviors)
            if not any(isinstance(behavior, exits) for behavior in done):
                done.append(exits(0, after_s=FOREVER_S))  # the last run may end by itself
            rule = fake.behaves(*done, pod=pod, container=container, attempt=attempt)
            self.must_act(rule, one)

    def _is_fake(self) -> bool:
        try:
            return self._view.node.runtime.programmed is not None
        except RuntimeError:  # a real one runs the commands of the manifests
            return False

    def behave(self, entry: BehaviorEntry) -> None:
        """What containers do from their next starts on."""
        chosen = self._named(entry.selectors)
        self.must_act(self._view.node.runtime.programmed.behaves(*entry.behaviors, **chosen), entry)

    def fault(self, entry: Fault) -> None:
        """Disturb calls from now on."""
        runtime = self._view.node.runtime
        target = runtime.fake if entry.action in FAKE_ONLY else runtime.proxy
        rule = entry.programmed(target, **self._named(entry.selectors))
        if not entry.maybe:
            self.must_act(rule, entry)
        if entry.label is not UNSET:
            self.remember(entry.label, rule)

    def _named(self, selectors: dict[str, Any]) -> dict[str, Any]:
        """The selectors, with the pod's name in the runtime."""
        pod = selectors.get("pod")
        if pod in self._view.scenario.pods:
            return {**selectors, "pod": self._view.runtime_name(pod)}
        return selectors

    def pulls(self, table: dict[str, RegistryEntry]) -> None:
        """What pulls meet from now on."""
        self._view.node.runtime.programmed.images.registry = registry_with(table)
        scenario = self._view.scenario
        place = next((step for step in scenario.steps if step.pulls is table), scenario)
        for pattern in table:
            rule = _PullsOf(self._view, pattern, self._view.node.now_s)
            self.must_act(rule, place, f"{pattern}: ")

    def must_act(self, rule: Any, place: Placed, what: str = "") -> None:
        """A rule whose `hits` must not be 0 in the end; `place`: where it is written, `what`: which
        part of that it is."""
        self._must_be_hit.append((rule, place, what))

    def remember(self, label: str, rule: Any) -> None:
        """Give a rule a name."""
        self._labelled.setdefault(label, []).append(rule)

    def end(self, label: str, *, release: bool) -> None:
        """End the rules of that name; with `release` the calls go on that they hold up."""
        for rule in self._labelled.pop(label, []):
            if release and hasattr(rule, "release"):
                rule.release()
            else:
                rule.remove()

    def end_all(self) -> None:
        """End all rules that have a name, and let all calls go on."""
        for label in list(self._labelled):
            self.end(label, release=True)

    def check_hits(self) -> None:
        """Raise NeverHit for rules that have never acted."""
        unused = [
            str(place.error(f"{what}this was never hit"))
            for rule, place, what in self._must_be_hit
            if not rule.hits
        ]
        if unused:
            raise NeverHit(
                "every expectation holds, but says nothing, since a rule never acted:\n"
                + "\n".join(unused)
            )
