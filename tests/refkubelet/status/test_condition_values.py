"""Phase and conditions, value by value: what is kept, what is set anew, what is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from lightkube.models.core_v1 import ContainerRestartRule
from status_world import pod_of

from refkubelet.cri.records import RuntimePodStatus, SandboxRecord, SandboxState
from refkubelet.model.objects import (
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
    to_dict,
)
from refkubelet.status.conditions import (
    containers_ready_condition,
    generate_conditions,
    initialized_condition,
    is_true,
    readiness_is_outdated,
    ready_condition,
    with_readiness,
)
from refkubelet.status.ended import ended_status
from refkubelet.status.phase import (
    pod_phase,
)

THEN = datetime(2026, 1, 1, tzinfo=UTC)


def one(name: str, *, ready: bool = True) -> ContainerStatus:
    return ContainerStatus(name=name, ready=ready, image="", imageID="", restartCount=0)


def condition(kind: str, status: str, generation: int | None = None) -> PodCondition:
    return PodCondition(
        type=kind, status=status, observedGeneration=generation, lastTransitionTime=THEN
    )


@pytest.mark.parametrize(
    ("before", "ready", "kept"),
    [("True", True, THEN), ("False", True, None), ("True", False, None), ("False", False, THEN)],
)
def test_a_probe_result_keeps_the_time_of_an_equal_condition_STAT_009_PROBE_033(
    before: str, ready: bool, kept: datetime | None
) -> None:
    old = [condition("Mine", "True", 1), condition("Ready", before, 7)]
    status = PodStatus(conditions=old, containerStatuses=[one("a", ready=ready)])
    pod = pod_of("a", meta={"generation": 8})
    mine, fresh, added = with_readiness(pod, status).conditions or ()
    assert mine is old[0]
    word = "True" if ready else "False"
    assert (fresh.type, fresh.status, fresh.lastTransitionTime) == ("Ready", word, kept)
    assert fresh.observedGeneration == added.observedGeneration == 8
    assert (added.type, added.status, added.lastTransitionTime) == ("ContainersReady", word, None)


def test_a_probe_result_does_not_pass_a_closed_gate_LIFE_182() -> None:
    def ready(gate: str) -> PodCondition:
        old = [condition("Ready", "False"), condition("ContainersReady", "False")]
        status = PodStatus(
            conditions=[*old, condition("my/gate", gate)], containerStatuses=[one("a")]
        )
        return (with_readiness(pod_of("a", gates=("my/gate",)), status).conditions or [])[0]

    assert ready("True").status == "True"
    assert (ready("False").status, ready("False").reason) == ("False", "ReadinessGatesNotReady")
    assert ready("Unknown").message == (
        'the status of pod readiness gate "my/gate" is not "True", but Unknown'
    )


@pytest.mark.parametrize(("status", "wanted"), [("True", True), ("False", False), ("true", False)])
def test_whether_a_condition_holds(status: str, wanted: bool) -> None:
    told = PodStatus(conditions=[condition("Other", "Unknown"), condition("Ready", status)])
    assert is_true(told, "Ready") is wanted
    assert is_true(told, "Missing") is False
    assert is_true(None, "Ready") is False


def generated(of: Pod, previous: PodStatus | None = None, *, ready: bool = True) -> dict[str, Any]:
    """Type -> (status, reason, generation), in order."""
    state = SandboxState.READY if ready else SandboxState.NOTREADY
    box = SandboxRecord("s", state, ips=("10.0.0.1",), has_network=True)
    status = PodStatus(phase="Running", containerStatuses=[one("a")])
    found = generate_conditions(of, status, RuntimePodStatus("u", sandboxes=(box,)), previous)
    return {c.type: (c.status, c.reason, c.observedGeneration) for c in found}


def test_the_conditions_of_a_healthy_pod_LIFE_180_to_184() -> None:
    """LIFE-180..184."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    healthy = dict.fromkeys(kinds, ("True", None, None))
    assert generated(pod_of("a")) == healthy
    assert list(generated(pod_of("a"))) == list(healthy)
    lost = generated(pod_of("a"), ready=False)
    assert lost == healthy | {"PodReadyToStartContainers": ("False", None, None)}


def test_the_restart_of_all_tells_no_generation_LIFE_185() -> None:
    target = pod_of("a", meta={"generation": 3})
    target.spec.containers[0].restartPolicyRules = [
        ContainerRestartRule(action="RestartAllContainers")
    ]
    found = generated(target)
    assert found["AllContainersRestarting"] == ("False", None, None)
    assert found["PodScheduled"] == ("True", None, 3)


@pytest.mark.parametrize(
    ("names", "gates", "ready", "message", "outdated"),
    [
        ("a", ("my/gate",), "True", None, False),
        ("a", ("my/gate",), "False", None, True),
        ("a", ("my/gate",), "True", "old", True),
        ("a", (), "False", None, False),  # without gates nothing else decides
        ("a", ("my/gate",), None, None, False),
        ("sa", ("my/gate",), "True", None, True),
    ],
)
def test_whether_ready_is_outdated_LIFE_014(
    names: str, gates: tuple[str, ...], ready: str | None, message: str | None, outdated: bool
) -> None:
    told = [condition("my/gate", "True")]
    if ready is not None:
        told.append(PodCondition(type="Ready", status=ready, message=message))
    target = pod_of(*names, gates=gates)
    target.status = PodStatus(
        phase="Running",
        conditions=told,
        initContainerStatuses=[one("s")],
        containerStatuses=[one("a")],
    )
    assert readiness_is_outdated(target) is outdated


def test_a_disruption_keeps_its_place_in_the_api_LIFE_187() -> None:
    """Else it comes behind what others own."""
    told = [condition("DisruptionTarget", "False"), condition("Mine", "True")]
    at_api = pod_of("a", status={"conditions": [to_dict(c) for c in told]})
    cached = PodStatus(conditions=[condition("DisruptionTarget", "True", 3)])
    found = generated(at_api, cached)
    assert list(found)[:2] == ["DisruptionTarget", "Mine"]
    assert found["DisruptionTarget"] == ("True", None, 3)
    assert next(iter(generated(pod_of("a"), cached))) == "DisruptionTarget"


def test_an_ended_pod_gets_its_disruption_behind_the_others_LIFE_230() -> None:
    mine = condition("Mine", "True")
    ended = ended_status(pod_of("a", meta={"generation": 2}), "Evicted", "why", disruption="text")
    found = ended(PodStatus(phase="Running", conditions=[mine])).conditions or []
    assert [(c.type, c.observedGeneration) for c in found] == [
        ("Mine", None),
        ("DisruptionTarget", 2),
    ]
    again = ended(PodStatus(conditions=[found[1], mine])).conditions or []
    assert [c.type for c in again] == ["DisruptionTarget", "Mine"]


def test_a_gate_may_be_a_condition_of_the_kubelets_own_LIFE_182() -> None:
    gates = ("PodReadyToStartContainers", "Initialized")
    assert generated(pod_of("a", gates=gates))["Ready"] == ("True", None, None)
    lost = generated(pod_of("a", gates=gates), ready=False)
    assert lost["Ready"] == ("False", "ReadinessGatesNotReady", None)


def test_a_disruption_is_kept_from_the_cache_else_from_the_api_LIFE_187() -> None:
    told = [condition("Mine", "True", 1), condition("DisruptionTarget", "True", 2)]
    at_api = pod_of("a", status={"conditions": [to_dict(c) for c in told]})
    found = generated(at_api)
    assert list(found)[:2] == ["Mine", "DisruptionTarget"]
    assert found["DisruptionTarget"] == ("True", None, 2)
    cached = PodStatus(conditions=[condition("DisruptionTarget", "False", 3)])
    assert generated(at_api, cached)["DisruptionTarget"] == ("False", None, 3)
    assert generated(pod_of("a"), cached)["DisruptionTarget"] == ("False", None, 3)
    assert "DisruptionTarget" not in generated(pod_of("a"))


def test_initialized_is_never_taken_back_LIFE_181() -> None:
    waiting = pod_of("i", "b")
    was = PodStatus(conditions=[condition("Initialized", "True")])
    was_not = PodStatus(conditions=[condition("Initialized", "False")])
    status = PodStatus(
        phase="Pending", initContainerStatuses=[one("i", ready=False)], containerStatuses=[]
    )
    runtime = RuntimePodStatus("u")
    for previous, wanted in ((was, "True"), (was_not, "False"), (None, "False")):
        found = generate_conditions(waiting, status, runtime, previous)
        assert {c.type: c.status for c in found}["Initialized"] == wanted


INIT, CONTAINERS = "Initialized", "ContainersReady"


def no(kind: str, reason: str, message: str | None = None) -> PodCondition:
    return PodCondition(type=kind, status="False", reason=reason, message=message)


def yes(kind: str, reason: str | None = None) -> PodCondition:
    return PodCondition(type=kind, status="True", reason=reason)


@pytest.mark.parametrize(
    ("names", "phase", "inits", "wanted"),
    [
        ("a", "Pending", None, yes(INIT)),
        (
            "ia",
            "Pending",
            None,
            no(INIT, "ContainersNotInitialized", "containers with unknown status: [i]"),
        ),
        ("ia", "Pending", [one("i")], yes(INIT)),
        (
            "ia",
            "Pending",
            [one("i", ready=False)],
            no(INIT, "ContainersNotInitialized", "containers with incomplete status: [i]"),
        ),
        (
            "ia",
            "Pending",
            [one("x")],
            no(INIT, "ContainersNotInitialized", "containers with unknown status: [i]"),
        ),
        ("ia", "Succeeded", [one("i", ready=False)], yes(INIT, "PodCompleted")),
        (
            "ia",
            "Succeeded",
            [one("x")],
            no(INIT, "ContainersNotInitialized", "containers with unknown status: [i]"),
        ),
        (
            "sa",
            "Pending",
            [one("s")],
            no(INIT, "ContainersNotInitialized", "containers with incomplete status: [s]"),
        ),
    ],
)
def test_initialized_LIFE_181(
    names: str, phase: str, inits: list[ContainerStatus] | None, wanted: PodCondition
) -> None:
    status = PodStatus(phase=phase, initContainerStatuses=inits, containerStatuses=[])
    assert initialized_condition(pod_of(*names), status, was_true=False) == wanted


@pytest.mark.parametrize(
    ("phase", "statuses", "wanted"),
    [
        ("Running", None, no(CONTAINERS, "UnknownContainerStatuses")),
        ("Running", [one("a"), one("b")], yes(CONTAINERS)),
        (
            "Running",
            [one("a"), one("b", ready=False)],
            no(CONTAINERS, "ContainersNotReady", "containers with unready status: [b]"),
        ),
        (
            "Running",
            [one("a", ready=False)],
            no(
                CONTAINERS,
                "ContainersNotReady",
                "containers with unknown status: [b], containers with unready status: [a]",
            ),
        ),
        ("Succeeded", [one("a"), one("b")], no(CONTAINERS, "PodCompleted")),
        ("Failed", [one("a"), one("b")], no(CONTAINERS, "PodFailed")),
        (
            "Succeeded",
            [one("a")],
            no(CONTAINERS, "ContainersNotReady", "containers with unknown status: [b]"),
        ),
        ("Failed", [one("a")], no(CONTAINERS, "PodFailed")),
    ],
)
def test_containers_ready_LIFE_183(
    phase: str, statuses: list[ContainerStatus] | None, wanted: PodCondition
) -> None:
    status = PodStatus(phase=phase, containerStatuses=statuses)
    assert containers_ready_condition(pod_of("a", "b"), status) == wanted
    ready = ready_condition(pod_of("a", "b"), status, [])
    assert ready == msgspec.structs.replace(wanted, type="Ready")


def test_sidecars_count_plain_init_containers_do_not_PROBE_043() -> None:
    status = PodStatus(
        phase="Running",
        initContainerStatuses=[one("i", ready=False), one("s", ready=False)],
        containerStatuses=[one("a")],
    )
    told = "containers with unready status: [s]"
    found = containers_ready_condition(pod_of("i", "s", "a"), status)
    assert found == no(CONTAINERS, "ContainersNotReady", told)


def test_a_pod_without_spec_has_nothing_to_wait_for() -> None:
    nothing = Pod()
    status = PodStatus(phase="Running", containerStatuses=[])
    assert initialized_condition(nothing, status, was_true=False) == yes(INIT)
    assert containers_ready_condition(nothing, status) == yes(CONTAINERS)
    assert ready_condition(nothing, status, []) == yes("Ready")
    assert pod_phase(nothing, []) == "Pending"


def test_gates_are_told_together_LIFE_182() -> None:
    status = PodStatus(containerStatuses=[one("a")])
    found = ready_condition(
        pod_of("a", gates=("x", "y", "z")),
        status,
        [condition("y", "True"), condition("z", "False")],
    )
    assert found == PodCondition(
        type="Ready",
        status="False",
        reason="ReadinessGatesNotReady",
        message='corresponding condition of pod readiness gate "x" does not exist., '
        'the status of pod readiness gate "z" is not "True", but False',
    )


@pytest.mark.parametrize(("generation", "shown"), [(8, 7), (0, None), (None, None)])
def test_a_resize_tells_the_generation_it_was_made_for_LIFE_186(
    generation: int | None, shown: int | None
) -> None:
    pod = pod_of("a", meta={"generation": generation})
    resize = condition("PodResizePending", "True", 7)
    found, *own = generate_conditions(pod, PodStatus(), RuntimePodStatus("u"), None, [resize])
    assert (found.type, found.observedGeneration) == ("PodResizePending", shown)
    assert {c.observedGeneration for c in own} == {generation or None}
