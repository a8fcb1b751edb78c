"""Makes a conformance case of a scenario: what it needs of kubelet, runtime and node follows from
its words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from kubelet_conformance.features import Feature
from kubelet_conformance.packaged import area_of
from kubelet_conformance.registry import Case, Level
from kubelet_conformance.scenarios.config_checks import without_effect
from kubelet_conformance.scenarios.shape.conditions import Condition
from kubelet_conformance.scenarios.shape.faults import FAKE_ONLY
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.steps import Step
from kubelet_conformance.scenarios.shape.walk import conditions_of, lasts_s

if TYPE_CHECKING:
    from kubelet_conformance.harness.node import Node

AREA: Final = "bugs"
"""Of a scenario that is not of this package."""
LONG_S: Final = 100.0
"""A run that takes longer is one for virtual time, or `--long`."""
_API: Final = frozenset(
    {
        *("create", "delete", "patch", "vanish", "create_object", "delete_object", "patch_node"),
        *("delete_node", "api", "api_fault"),
    }
)
_STEP_NEEDS: Final = {
    **dict.fromkeys(_API, Feature.API),
    "kubelet": Feature.RESTART,
    "dies_at": Feature.RESTART,
    "fault": Feature.FAULTS,
    "behave": Feature.BEHAVIORS,
    "pulls": Feature.BEHAVIORS,
    "exit": Feature.BEHAVIORS,
    "kill": Feature.OUTSIDE_KILL,
    "drop": Feature.OUTSIDE_KILL,
    "stop_sandbox": Feature.OUTSIDE_KILL,
    "kill_sandbox": Feature.BEHAVIORS,
    "reboot": Feature.BEHAVIORS,
    "machine": Feature.NODE_RESOURCES,
    "disks": Feature.NODE_RESOURCES,
    "oom": Feature.NODE_RESOURCES,
    "kernel_says": Feature.NODE_RESOURCES,
    "shutdown": Feature.SHUTDOWN,
    **dict.fromkeys(("plug_in", "devices", "device_fault", "unplug"), Feature.DEVICE_PLUGINS),
    "logins": Feature.RESTART,
    **dict.fromkeys(("csi_driver", "csi_fault", "attach", "detach"), Feature.DEVICE_PLUGINS),
}
_CONDITION_NEEDS: Final = {
    "requests": Feature.API,
    "event": Feature.API,
    "node": Feature.API,
    "cgroup": Feature.CGROUPS,
    "shutdown": Feature.SHUTDOWN,
    **dict.fromkeys(("device_calls", "csi_calls", "csi_driver"), Feature.DEVICE_PLUGINS),
}


def case_of(scenario: Scenario, file: Path) -> Case:
    """The case that plays the scenario of that file."""

    async def body(node: Node) -> None:
        # Here, not above: cases are listed faster without what plays them.
        from kubelet_conformance.scenarios.play.playing import Player

        await Player(scenario, node).play()

    return Case(
        id=scenario.id,
        area=area_of(file) or AREA,
        title=scenario.title,
        rules=scenario.rules,
        level=Level[scenario.level.upper()],
        needs=needs_of(scenario),
        body=body,
        node_config={} if scenario.kubelet is UNSET else scenario.kubelet,
        machine={} if scenario.node is UNSET else scenario.node.words(),
        since=None if scenario.since is UNSET else scenario.since,
        bugs=scenario.bugs,
        module=str(file),
        asks_laws=scenario.calm is not UNSET,
        line=_line(scenario),
        file="" if area_of(file) else str(file),
    )


def _line(scenario: Scenario) -> int:
    place = scenario.__dict__.get("place")
    return place.node.line if place else 0


def needs_of(scenario: Scenario) -> frozenset[Feature]:
    """The features that the words of a scenario need, and those that it names."""
    features = set(scenario.needs)
    programmed = scenario.programmed
    if scenario.node is not UNSET:
        features.add(Feature.NODE_RESOURCES)
    if programmed.behaviors or programmed.registry is not UNSET:
        features.add(Feature.BEHAVIORS)
    if any(pod.needs_fake for pod in scenario.pods.values()):
        features.add(Feature.BEHAVIORS)
    if any(_mounts(pod.manifest(key)["spec"]) for key, pod in scenario.pods.items()):
        features.add(Feature.MOUNTS)
    if scenario.csi_drivers:
        features |= {Feature.DEVICE_PLUGINS, Feature.API}
    if without_effect(scenario):
        features.add(Feature.ALL_FIELDS)
    for step in scenario.steps:
        features |= _of_step(step)
    faults = [*programmed.faults, *(s.fault for s in scenario.steps if s.fault is not UNSET)]
    if faults:
        features.add(Feature.FAULTS)
    if any(fault.action in FAKE_ONLY for fault in faults):
        features.add(Feature.BEHAVIORS)
    for condition in conditions_of(scenario):
        features |= _of_condition(condition)
    if lasts_s(scenario) > LONG_S:
        features.add(Feature.VIRTUAL_TIME)
    return frozenset(features)


def _mounts(spec: Any) -> bool:
    """Whether it has volumes that only mounts make what they are: parts of volumes, and those in
    memory."""
    if isinstance(spec, Mapping):
        if spec.keys() & {"subPath", "subPathExpr"} or spec.get("medium"):
            return True
        return any(_mounts(part) for part in spec.values())
    return isinstance(spec, list) and any(_mounts(part) for part in spec)


def _of_step(step: Step) -> set[Feature]:
    features = {_STEP_NEEDS[step.word]} if step.word in _STEP_NEEDS else set()
    if step.word == "runtime":
        away = step.runtime in ("away", "back")
        features.add(Feature.FAULTS if away else Feature.BEHAVIORS)
    if step.word in ("reboot", "disks"):
        features.add(Feature.RESTART)
    if step.dies_at is not UNSET and step.dies_at.driver is UNSET:
        features.add(Feature.FAULTS)
    if step.patch is not UNSET and step.patch.subresource == "resize":
        features.add(Feature.CGROUPS)  # a kubelet without cgroups panics (137993)
    if getattr(step.argument, "at", "") == "links":
        features.add(Feature.NODE_RESOURCES)  # others make their links where all kubelets do
    if step.login is not UNSET and step.login.takes:
        features.add(Feature.PROGRAM_TIME)
    return features


def _of_condition(condition: Condition) -> set[Feature]:
    features = {_CONDITION_NEEDS[condition.kind]} if condition.kind in _CONDITION_NEEDS else set()
    if getattr(condition.what, "source", "") == "api":
        features.add(Feature.API)
    if getattr(condition.what, "at", "") == "links":
        features.add(Feature.NODE_RESOURCES)
    if condition.gap is not UNSET:
        ends = (condition.gap.start, condition.gap.end)
        if any(moment.request is not UNSET for moment in ends):
            features.add(Feature.API)
    return features
