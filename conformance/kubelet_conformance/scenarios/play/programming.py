"""Tells the runtime what a scenario says of it: what containers do, which calls fail, what pulls
meet."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from fakecri.scripts.script_shapes import RegistryEntry, registry_with
from fakecri.scripts.word_shapes import BehaviorEntry, Behaviors
from fakecri.words.behaviors import exits
from kubelet_conformance.harness.workload import FOREVER_S
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.shape.steps import FAKE_ONLY, Fault
from kubeobjects.strict.reader import Placed


class NeverHit(Exception):
    """Rules of a scenario have never acted, so its expectations say nothing; the text names the
    rules."""


class Programmer:
    """Programs the runtime of a scenario, and knows its rules."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._labelled: dict[str, list[Any]] = {}
        self._must_be_hit: list[tuple[Any, Placed]] = []

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
        fake = self._view.node.runtime.fake
        *first, last = each
        fake.behaves(*last.behaviors, pod=pod, container=container)
        for attempt, one in enumerate(first):
            done = list(one.behaviors)
            if not any(isinstance(behavior, exits) for behavior in done):
                done.append(exits(0, after_s=FOREVER_S))  # the last run may end by itself
            fake.behaves(*done, pod=pod, container=container, attempt=attempt)

    def _is_fake(self) -> bool:
        try:
            return self._view.node.runtime.fake is not None
        except RuntimeError:  # a real one runs the commands of the manifests
            return False

    def behave(self, entry: BehaviorEntry) -> None:
        """What containers do from their next starts on."""
        chosen = self._named(entry.selectors)
        rule = self._view.node.runtime.fake.behaves(*entry.behaviors, **chosen)
        self._must_be_hit.append((rule, entry))

    def fault(self, entry: Fault) -> None:
        """Disturb calls from now on."""
        runtime = self._view.node.runtime
        target = runtime.fake if entry.action in FAKE_ONLY else runtime.proxy
        rule = entry.programmed(target, **self._named(entry.selectors))
        if not entry.maybe:
            self._must_be_hit.append((rule, entry))
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
        self._view.node.runtime.fake.images.registry = registry_with(table)

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

    def check_hits(self) -> None:
        """Raise NeverHit for rules that have never acted."""
        unused = [
            str(entry.error("this was never hit"))
            for rule, entry in self._must_be_hit
            if not rule.hits
        ]
        if unused:
            raise NeverHit(
                "every expectation holds, but says nothing, since a rule never acted:\n"
                + "\n".join(unused)
            )
