"""Finds conditions of a scenario that say nothing: what holds whatever happens, what nothing can
ever be, and what is looked at before it could happen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from fakecri.cri.services import METHODS
from kubelet_conformance.scenarios.part_checks import empty_parts, not_in_message, not_in_object
from kubelet_conformance.scenarios.shape.conditions import (
    Cgroup,
    Condition,
    Containers,
    ContainerShown,
    Expectation,
    Files,
    History,
    NodeShown,
    PodShown,
)
from kubelet_conformance.scenarios.shape.plugged import Asking, DeviceCalls, RootShown
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.selectors import CallSelector, RequestSelector
from kubelet_conformance.scenarios.shape.steps import NodeFile, Step
from kubelet_conformance.scenarios.shape.walk import (
    all_wanted,
    conditions_of,
    parts_of,
    placed_in,
)
from kubeobjects.schema.messages import message
from kubeobjects.strict.errors import ScriptError, did_you_mean
from kubeobjects.strict.reader import Placed

PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown", "")
_LISTS: Final = ("has", "conditions", "taints", "no_taints", "request", "response", "body")
_MORE_LISTS: Final = ("has_not", "entries", "no_entries", "headers")
_OF_CONTAINER: Final = ("container_id", "sandbox_config")
_OF_POD: Final = (*_OF_CONTAINER, "pod_sandbox_id", "config")
_HAPPENS: Final = ("calls", "requests", "event", "device_calls", "login_runs", "csi_calls")
"""Conditions on what has happened so far; others are on what is there now."""
_EARLY: Final = "this holds at once, before anything could happen: say `during`, or let time pass"


def empty_conditions(
    scenario: Scenario, containers: set[str], *, whole: bool
) -> Iterator[ScriptError]:
    """What says nothing, each with its place. `containers`: the names of those of all pods;
    `whole`: no step is missing."""
    for part in placed_in(scenario):
        if isinstance(part, Condition | Step):
            continue
        for name in (*_LISTS, *_MORE_LISTS):
            for text in empty_parts(getattr(part, name, None), name):
                yield part.error(text)
        if isinstance(part, CallSelector):
            yield from _calls(part, containers)
        elif isinstance(part, RequestSelector):
            yield from _request_body(part)
        elif isinstance(part, Files | NodeFile | RootShown | Asking):
            yield from _path(part)
        elif isinstance(part, Containers):
            yield from _container_name(part, part.name, containers)
        else:
            yield from _object(part)
    for part in conditions_of(scenario):
        count = getattr(part.what, "count", UNSET)
        if count is not UNSET and count.holds(0) and count.high == math.inf:
            yield part.what.error(f"count: {count} holds whatever happens")
    if whole:
        yield from _at_once(scenario)
    if not scenario.bugs:
        for wanted in all_wanted(scenario):
            if wanted.bug:
                yield wanted.error("bug: wanted `affected`, which says who has the bug")


def _calls(what: CallSelector, containers: set[str]) -> Iterator[ScriptError]:
    """Calls that nobody can make."""
    method = METHODS[what.method]
    fields = method.request_type.DESCRIPTOR.fields_by_name
    for word, given, known in (
        ("pod", what.pod, _OF_POD),
        ("container", what.container, _OF_CONTAINER),
        ("attempt", what.attempt, _OF_POD),
        ("image", what.image, ("image", *_OF_CONTAINER)),
    ):
        of_image = word in ("container", "attempt") and what.method == "PullImage"
        if given is not UNSET and (of_image or not set(fields) & set(known)):
            yield what.error(f"{word}: {what.method} is not about one {word}")
    if what.pod is UNSET:
        yield from _container_name(what, what.container, containers)
    for word, kind in (("request", method.request_type), ("response", method.response_type)):
        if (wanted := getattr(what, word)) is not UNSET:
            for text in not_in_message(wanted, kind.DESCRIPTOR, word):
                yield what.error(text)
    if what.failed is False and what.code is not UNSET:
        yield what.error("code: calls that did not fail have none")
    if what.response is not UNSET and (what.failed is True or what.code is not UNSET):
        yield what.error("response: calls that failed have none")


def _container_name(what: Placed, name: Any, containers: set[str]) -> Iterator[ScriptError]:
    if name is not UNSET and name not in containers:
        hint = did_you_mean(name, containers)
        yield what.error(f"no container {name!r} in any pod{hint}")


def _request_body(what: RequestSelector) -> Iterator[ScriptError]:
    """Bodies that requests about a pod cannot have."""
    if what.subresource not in (UNSET, "", "status"):
        yield what.error(f"subresource: kubelets send no requests for {what.subresource!r}")
    kinds = {"PATCH": "core.v1.Pod", "DELETE": "meta.v1.DeleteOptions"}
    if what.body is UNSET or what.pod is UNSET or what.method not in kinds:
        return
    for text in not_in_object(what.body, message(kinds[what.method]), "body", directives=True):
        yield what.error(text)


def _path(what: Files | NodeFile | RootShown | Asking) -> Iterator[ScriptError]:
    """Paths that lead elsewhere, or nowhere."""
    path = "" if what.path is UNSET else what.path
    if what.pod is UNSET and ("{uid}" in path or "{name}" in path):
        yield what.error("path: wanted `pod`, whose {uid} and {name} it has")
    if isinstance(what, Asking):
        if not path.startswith("/"):
            yield what.error(f"path: wanted one that begins with /; got {path!r}")
    elif path.startswith("/") or ".." in path.split("/"):
        yield what.error(f"path: wanted one below the directory; got {path!r}")


def _object(what: Placed) -> Iterator[ScriptError]:
    """What no object, container or pod can have."""
    kinds = {PodShown: "core.v1.Pod", NodeShown: "core.v1.Node"}
    kind = kinds.get(type(what), "core.v1.ContainerStatus")
    if isinstance(what, PodShown | NodeShown | ContainerShown) and what.has is not UNSET:
        for text in not_in_object(what.has, message(kind), "has"):
            yield what.error(text)
    if isinstance(what, DeviceCalls) and what.request is not UNSET:
        from kubecri.deviceplugin import api_pb2

        service = api_pb2.DESCRIPTOR.services_by_name["DevicePlugin"]
        request = service.methods_by_name[what.method].input_type
        for text in not_in_message(what.request, request, "request"):
            yield what.error(text)
    if isinstance(what, PodShown | Cgroup) and not what.there:
        more = sorted(what.given().keys() - {"name", "pod", "path", "source", "there"})
        if more:
            yield what.error(f"there: what is not there has no {', '.join(more)}")
    if isinstance(what, ContainerShown) and what.state == "none":
        more = sorted(what.given().keys() - {"pod", "name", "source", "state"})
        if more:
            yield what.error(f"state: a container without a state has no {', '.join(more)}")
    if isinstance(what, PodShown) and what.phase is not UNSET:
        for text in what.phase.texts:
            if not any(type(what.phase)((text,)).fits(phase) for phase in PHASES):
                yield what.error(f"phase: {text!r} is none of {', '.join(PHASES[:-1])}")
    if isinstance(what, History):
        yield from _history(what)


def _history(what: History) -> Iterator[ScriptError]:
    for word in ("has", "has_not"):
        given = getattr(what, word)
        for text in () if given is UNSET else given:
            if what.container is UNSET:
                fits = "*" in text or text in PHASES
                names = ", ".join(PHASES[:-1])
            else:
                fits = text == "running" or text.startswith(("*", "waiting(", "terminated("))
                names = "running, waiting(reason), terminated(code)"
            if not fits:
                yield what.error(f"{word}: {text!r} is none of {names}")


def _holds_by_itself(wanted: Condition) -> bool:
    """Whether it holds as long as nothing happens, and is looked at once."""
    for word in ("all_of", "any_of"):
        parts = getattr(wanted, word, UNSET)
        if parts is not UNSET:
            return (all if word == "all_of" else any)(_holds_by_itself(part) for part in parts)
    never = getattr(wanted, "never", UNSET)
    if never is not UNSET:
        return not _wants_nothing(never) and getattr(wanted, "within", UNSET) is UNSET
    return _wants_nothing(wanted)


def _wants_nothing(part: Condition) -> bool:
    """Whether it wants that something has not happened."""
    if part.history is not UNSET:
        return part.history.has is UNSET
    count = getattr(part.what, "count", UNSET)
    return part.kind in _HAPPENS and count is not UNSET and bool(count.holds(0))


def _at_once(scenario: Scenario) -> Iterator[ScriptError]:
    """Expectations that something has not happened, right after the step that could make it happen,
    or since a mark that is only just set."""
    acted, new_marks = True, set[Any]()
    for step in scenario.steps:
        if step.mark is not UNSET:
            new_marks.add(step.mark)
        elif step.wait is UNSET and step.expect is UNSET:
            passes = step.advance is not UNSET and step.advance > 0
            acted, new_marks = (False, set()) if passes else (True, new_marks)
        for looked in (step.wait, step.expect):
            if looked is UNSET:
                continue
            if not _too_early(looked, acted=acted, new_marks=new_marks):
                acted, new_marks = False, set()
            elif looked is step.expect:
                yield looked.error(_EARLY)
    for looked in scenario.expect:
        if not _too_early(looked, acted=acted, new_marks=new_marks):
            acted, new_marks = False, set()
        else:
            yield looked.error(_EARLY)


def _too_early(wanted: Expectation, *, acted: bool, new_marks: set[Any]) -> bool:
    """Whether it is looked at once, before anything could happen."""
    new = any(getattr(part.what, "since", UNSET) in new_marks for part in parts_of(wanted))
    return (acted or new) and not wanted.during and _holds_by_itself(wanted)
