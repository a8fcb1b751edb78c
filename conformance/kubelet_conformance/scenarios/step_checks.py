"""Finds steps of a scenario that do nothing: amounts that the node does not have, changes that
change nothing, ends of what has not begun, names of what is not plugged in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from fakecri.machine.node import FakeNode
from fakecri.machine.values import Filesystem
from fakecri.words.behaviors import replies
from kubelet_conformance.scenarios.part_checks import not_in_object
from kubelet_conformance.scenarios.shape.plugged import (
    AnswerShown,
    DeviceCalls,
    DeviceFault,
    Login,
    LoginRuns,
    SetDevices,
)
from kubelet_conformance.scenarios.shape.pods import merged
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.steps import Step
from kubelet_conformance.scenarios.shape.walk import placed_in
from kubeobjects.schema.messages import message
from kubeobjects.strict.errors import ScriptError, did_you_mean
from kubeobjects.strict.reader import Placed

_PAIRS: Final = (
    ("runtime", "away", "back"),
    ("runtime", ("crash", "lose_state"), "restart"),
    ("runtime", "lose_network", "network"),
    ("api", "down", "up"),
    ("shutdown", "announce", "call_off"),
)
"""A step's word, what begins something, and what ends it."""


def idle_steps(scenario: Scenario) -> Iterator[ScriptError]:
    """Steps that do nothing, each with its place."""
    yield from _ends(scenario)
    yield from _amounts(scenario)
    yield from _changes(scenario)
    yield from _plugged(scenario)
    yield from _answers(scenario)
    yield from _replies(scenario)


def _ends(scenario: Scenario) -> Iterator[ScriptError]:
    """What ends before it has begun, or begins twice."""
    for word, begins, ends in _PAIRS:
        begun = False
        for step in scenario.steps:
            value = getattr(step, word)
            if value == ends and not begun:
                yield step.error(f"{word}: {ends}: nothing has begun that it could end")
            elif value is not UNSET and value in begins and begun:
                yield step.error(f"{word}: {value}: it is so already")
            if value is not UNSET and (value == ends or value in begins):
                begun = value != ends


def _amounts(scenario: Scenario) -> Iterator[ScriptError]:
    """More than the node has, and disks that it has not."""
    node, disk = FakeNode(), Filesystem("disk")
    given = {} if scenario.node is UNSET else scenario.node.given()
    amounts = {
        "memory": given.get("memory", node.memory_bytes),
        "disk": disk.capacity_bytes,
        "inodes": disk.inodes,
        "pids": node.pid_limit,
    }
    disks = False
    for step in scenario.steps:
        disks = disks or step.disks is not UNSET
        if step.machine is UNSET:
            continue
        for word, has in amounts.items():
            wanted = getattr(step.machine, word)
            if wanted is not UNSET and wanted > has:
                yield step.machine.error(f"{word}: the node has {has} in all, so {wanted} is never")
        if step.machine.of not in (UNSET, "node") and not disks:
            yield step.machine.error(f"of: no step `disks` before gives the {step.machine.of} one")


def _changes(scenario: Scenario) -> Iterator[ScriptError]:
    """Changes with fields that there are not, and those that change nothing."""
    manifests = {key: pod.manifest(key) for key, pod in scenario.pods.items()}
    for step in scenario.steps:
        argument = step.argument
        change = getattr(argument, "set", UNSET)
        if step.word == "create_object":
            change = argument.manifest
        if not isinstance(argument, Placed) or not isinstance(change, Mapping):
            continue
        if step.word == "kubelet":
            continue
        kind = _kind(step)
        for text in not_in_object(change, message(kind), "set", directives=True) if kind else ():
            yield argument.error(text)
        key = getattr(argument, "pod", "")
        if step.word in ("apply", "edit", "create") and key in manifests:
            after = merged(manifests[key], change)
            if after == manifests[key]:
                yield argument.error("set: the pod has all of this already")
            manifests[key] = after
        elif not change:
            yield argument.error("set: wanted something in it")


def _kind(step: Step) -> str:
    """The type of what a step changes; "": it has none that is known."""
    if step.word == "patch_node":
        return "core.v1.Node"
    if step.word != "create_object":
        return "core.v1.Pod" if hasattr(step.argument, "pod") else ""
    from fakekubeapi.resources.registry import find_resource

    resource = find_resource("", "v1", step.argument.plural)
    return f"core.v1.{resource.kind}" if resource is not None else ""


def _plugged(scenario: Scenario) -> Iterator[ScriptError]:
    """Plug-ins that are not there."""
    resources: set[str] = set()
    logins: set[str] = set()
    for step in scenario.steps:
        if step.plug_in is not UNSET:
            resources.add(step.plug_in.resource)
        if step.logins is not UNSET:
            logins |= {each.name for each in step.logins}
        if step.unplug is not UNSET:
            yield from _not_among(step, step.unplug, resources, "plug_in")
        yield from _unplugged(step, resources, logins)
    for wanted in (*scenario.expect, *scenario.never):
        yield from _unplugged(wanted, resources, logins)


def _unplugged(what: Placed, resources: set[str], logins: set[str]) -> Iterator[ScriptError]:
    for part in placed_in(what):
        if isinstance(part, DeviceCalls | SetDevices | DeviceFault):
            yield from _not_among(part, part.resource, resources, "plug_in")
        elif isinstance(part, LoginRuns | Login):
            yield from _not_among(part, part.name, logins, "logins")


def _not_among(place: Placed, name: str, known: set[str], word: str) -> Iterator[ScriptError]:
    if name not in known:
        yield place.error(f"no step `{word}` before has {name!r}{did_you_mean(name, known)}")


def _answers(scenario: Scenario) -> Iterator[ScriptError]:
    """Answers to what nobody has asked, and requests whose answer nobody looks at."""
    asked: set[str] = set()
    for place in (*scenario.steps, *scenario.expect, *scenario.never):
        if isinstance(place, Step) and place.ask is not UNSET:
            asked.add(place.ask.label)
        for part in placed_in(place):
            if isinstance(part, AnswerShown) and part.to is not UNSET:
                yield from _not_among(part, part.to, asked, "ask")
    looked = {part.to for part in placed_in(scenario) if isinstance(part, AnswerShown)}
    for step in scenario.steps:
        if step.ask is not UNSET and step.ask.label not in looked:
            yield step.ask.error(f"no condition `answer` looks at {step.ask.label!r}")


def _replies(scenario: Scenario) -> Iterator[ScriptError]:
    """Replies to commands that no probe or hook executes."""
    changes = changes_of_pods(scenario.steps)
    for key, pod in scenario.pods.items():
        commands = set(_commands([pod.manifest(key), *changes.get(key, [])]))
        for container, runs in pod.behaviors.items():
            for behavior in (each for one in runs for each in one.behaviors):
                if not isinstance(behavior, replies) or behavior.command is None:
                    continue
                if tuple(behavior.command) not in commands:
                    words = " ".join(behavior.command)
                    yield pod.error(
                        f"does.{container}.replies: no probe or hook executes {words!r}"
                    )


def changes_of_pods(steps: Iterable[Step]) -> dict[str, list[Any]]:
    """What steps change of pods, in their order, by the keys of the pods."""
    changes: dict[str, list[Any]] = {}
    for argument in (step.argument for step in steps):
        change = getattr(argument, "set", UNSET)
        if change is not UNSET and (key := getattr(argument, "pod", "")):
            changes.setdefault(key, []).append(change)
    return changes


def _commands(value: Any) -> Iterator[tuple[str, ...]]:
    """All commands behind `exec` at any depth."""
    if isinstance(value, Mapping):
        executed = value.get("exec")
        if isinstance(executed, Mapping) and isinstance(executed.get("command"), list):
            yield tuple(map(str, executed["command"]))
        for part in value.values():
            yield from _commands(part)
    elif isinstance(value, list):
        for part in value:
            yield from _commands(part)
