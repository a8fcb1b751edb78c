"""Finds what cannot be right in a scenario although each of its words is: names that nothing has,
pods that no step makes, rules that cannot act, expectations that hold whatever happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import UNSET

from fakekubeapi.errors import StatusError
from fakekubeapi.requests.shapes import check_shape, require_known_fields
from kubelet_conformance.scenarios.config_checks import not_in_configuration
from kubelet_conformance.scenarios.csi_checks import driver_states, wrong_drivers
from kubelet_conformance.scenarios.nothing_checks import empty_conditions
from kubelet_conformance.scenarios.pod_checks import wrong_pods
from kubelet_conformance.scenarios.shape.conditions import PodShown
from kubelet_conformance.scenarios.shape.pods import KINDS, container_names
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.steps import Step, made_by, sources_of
from kubelet_conformance.scenarios.shape.walk import conditions_of, placed_in
from kubelet_conformance.scenarios.step_checks import changes_of_pods, idle_steps
from kubeobjects.schema.messages import message
from kubeobjects.strict.errors import ScriptError, did_you_mean
from kubeobjects.strict.reader import Placed, Strict

_BARE: Final = ("remove", "vanish", "stop_sandbox", "kill_sandbox")
"""Steps whose argument is a pod."""
_MARKS: Final = ("since", "until", "mark")


def mistakes(scenario: Scenario, *, whole: bool = True) -> Iterator[ScriptError]:
    """All mistakes, each with its place. Not `whole`: parts of the file could not be read, so
    nothing is said that they may have been needed for."""
    yield from _manifests(scenario)
    yield from _names(scenario)
    yield from _rules(scenario)
    yield from not_in_configuration(scenario)
    names = {name for of_pod in _containers(scenario).values() for name in of_pod}
    yield from empty_conditions(scenario, names, whole=whole)
    if whole:
        yield from _pods(scenario)
        yield from _marks(scenario)
        if scenario.calm is UNSET:  # else the laws are what is expected, and steps may be in vain
            yield from _labels(scenario)
            yield from _kubelet_states(scenario)
            yield from _nothing_expected(scenario)
            yield from idle_steps(scenario)
            yield from driver_states(scenario)
        yield from wrong_pods(scenario)
        yield from wrong_drivers(scenario)


def _manifests(scenario: Scenario) -> Iterator[ScriptError]:
    """What is no pod."""
    for key, pod in scenario.pods.items():
        try:
            manifest = pod.manifest(key)
            check_shape(manifest, message("core.v1.Pod"))
            require_known_fields(manifest, message("core.v1.Pod"))
        except StatusError as error:
            yield pod.error(str(error))


def _pods(scenario: Scenario) -> Iterator[ScriptError]:
    """Pods that nothing makes, or that are made twice in ways that exclude each other."""
    sources: dict[str, str] = {}
    for step in scenario.steps:
        key, source = made_by(step)
        if key and sources.setdefault(key, source) != source:
            yield step.error(f"pod {key!r} is both a static one and one of the API")
    has_files = any(s.write_file is not UNSET and s.write_file.pod is UNSET for s in scenario.steps)
    for key, pod in scenario.pods.items():
        if key not in sources and not has_files:
            yield pod.error("no step makes this pod: wanted a step `apply` or `create` with it")


def _names(scenario: Scenario) -> Iterator[ScriptError]:
    """Pods and containers that there are not."""
    containers = _containers(scenario)
    for step in scenario.steps:
        for place, key, container in _asked_in_step(step):
            yield from _unknown(containers, place, key, container)
    for condition in conditions_of(scenario):
        for place, key, container in _asked(condition):
            yield from _unknown(containers, place, key, container)


def _unknown(
    containers: Mapping[str, list[str]], place: Placed, key: str, container: Any
) -> Iterator[ScriptError]:
    if key not in containers:
        pod_keys = ", ".join(containers) or "none"
        hint = did_you_mean(key, containers)
        yield place.error(f"no pod {key!r} in `pods`, which has: {pod_keys}{hint}")
    elif container is not UNSET and container not in (names := containers[key]):
        hint = did_you_mean(container, names)
        yield place.error(f"no container {container!r} in pod {key}: {', '.join(names)}{hint}")


def _containers(scenario: Scenario) -> dict[str, list[str]]:
    """The containers that pods have at some time, by the keys of the pods."""
    names = {key: list(container_names(pod.manifest(key))) for key, pod in scenario.pods.items()}
    for key, changes in changes_of_pods(scenario.steps).items():
        for spec in (change.get("spec") or {} for change in changes if key in names):
            for kind in (*KINDS, "ephemeralContainers"):
                names[key] += [c["name"] for c in spec.get(kind) or [] if "name" in c]
    return names


def _asked_in_step(step: Step) -> Iterator[tuple[Placed, str, Any]]:
    """The pods and containers that a step names."""
    argument = step.argument
    if step.word in _BARE or (
        step.word in ("apply", "create", "delete") and isinstance(argument, str)
    ):
        yield step, argument, UNSET
    elif step.word not in ("fault", "behave", "api_fault", "csi_fault", "wait", "expect"):
        key = getattr(argument, "pod", UNSET)
        if key is not UNSET:
            yield argument, key, getattr(argument, "container", UNSET)


def _asked(what: Any) -> Iterator[tuple[Placed, str, Any]]:
    """The pods and containers that a condition names, at any depth."""
    if isinstance(what, PodShown):
        yield what, what.name, UNSET
    elif isinstance(what, Placed):
        key = getattr(what, "pod", UNSET)
        if isinstance(key, str):
            yield what, key, getattr(what, "container", getattr(what, "name", UNSET))
        for value in what.given().values():
            yield from _asked(value)
    elif isinstance(what, tuple):
        for part in what:
            yield from _asked(part)


def _marks(scenario: Scenario) -> Iterator[ScriptError]:
    """Marks that are not set before."""
    every = {step.mark for step in scenario.steps if step.mark is not UNSET}
    marks: set[str] = set()
    for step in scenario.steps:
        if step.mark is not UNSET:
            marks.add(step.mark)
        for part in (step.wait, step.expect):
            yield from _unset_marks(part, marks)
    yield from _unset_marks((*scenario.expect, *scenario.never), every)
    order = [step.mark for step in scenario.steps if step.mark is not UNSET]
    for place in placed_in(scenario):
        since, until = getattr(place, "since", ""), getattr(place, "until", "")
        if since in order and until in order and order.index(until) <= order.index(since):
            yield place.error(f"until: mark {until!r} is not set after {since!r}")


def _unset_marks(what: Any, known: set[str]) -> Iterator[ScriptError]:
    if isinstance(what, Placed):
        for name in _MARKS:
            mark = getattr(what, name, UNSET)
            if isinstance(mark, str) and mark not in known:
                hint = did_you_mean(mark, known)
                yield what.error(f"{name}: no step before sets a mark {mark!r}{hint}")
        for value in what.given().values():
            yield from _unset_marks(value, known)
    elif isinstance(what, tuple):
        for part in what:
            yield from _unset_marks(part, known)


def _labels(scenario: Scenario) -> Iterator[ScriptError]:
    """Faults that are ended without having begun."""
    labels = {f.label for f in scenario.programmed.faults if f.label is not UNSET}
    for step in scenario.steps:
        label = getattr(step.argument, "label", UNSET)
        if label is not UNSET:
            labels.add(label)
        for word in ("release", "end"):
            ended = getattr(step, word)
            if ended is not UNSET and ended not in labels:
                hint = did_you_mean(ended, labels)
                yield step.error(f"{word}: no fault before has the label {ended!r}{hint}")


def _kubelet_states(scenario: Scenario) -> Iterator[ScriptError]:
    """Starts of a kubelet that runs, and stops of one that does not."""
    runs = True
    for step in scenario.steps:
        if step.logins is not UNSET and not runs:
            yield step.error("logins: it restarts the kubelet, which does not run")
        if step.kubelet is UNSET:
            continue
        argument = step.kubelet
        word = argument if isinstance(argument, str) else argument.do
        if runs is (word == "start"):
            yield step.error(f"kubelet: {word}: it {'runs already' if runs else 'does not run'}")
        refused = not isinstance(argument, str) and argument.refused is not UNSET
        runs = word in ("start", "restart") and not refused


def _nothing_expected(scenario: Scenario) -> Iterator[ScriptError]:
    """A scenario that expects nothing, and expectations that would fail without a sentence."""
    expected = [s.expect for s in scenario.steps if s.expect is not UNSET] + [*scenario.expect]
    refused = any(
        isinstance(s.kubelet, Strict) and s.kubelet.refused is not UNSET for s in scenario.steps
    )
    if not expected and not scenario.never and not refused:
        yield scenario.error("nothing is expected: wanted `expect` or `never`")
    for goal in expected:
        if not goal.says:
            yield goal.error("key 'says' is missing, wanted the sentence that a failure prints")


def _rules(scenario: Scenario) -> Iterator[ScriptError]:
    """Rules that no pod of the scenario can meet, and faults that do not fit their methods."""
    programmed = scenario.programmed
    sources = sources_of(scenario.steps)
    rules: list[Any] = [*programmed.faults, *programmed.behaviors]
    rules += [step.argument for step in scenario.steps if step.word in ("fault", "behave")]
    containers = _containers(scenario) if rules else {}
    for rule in rules:
        # Here, not above: only scenarios with rules need a runtime to be read.
        from kubelet_conformance.scenarios.fault_checks import cannot_act

        yield from cannot_act(rule)
        if rule.pod is UNSET:
            continue
        names = {
            key: str(pod.manifest(key)["metadata"]["name"]) for key, pod in scenario.pods.items()
        }
        met = [k for k, name in names.items() if _meets(rule.pod, k, name, sources.get(k, ""))]
        if not met:
            yield rule.error(f"pod: {rule.pod!r} fits no pod of the scenario")
        elif rule.container is not UNSET:
            inner = [name for key in met for name in containers[key]]
            if not any(fnmatchcase(name, rule.container) for name in inner):
                yield rule.error(f"container: {rule.container!r} fits none of {', '.join(inner)}")


def _meets(pattern: str, key: str, name: str, source: str) -> bool:
    """Whether a rule for that pod meets the pod: its key, or a pattern of its name."""
    in_runtime = f"{name}-node" if source == "static" else name
    return pattern == key or fnmatchcase(in_runtime, pattern)
