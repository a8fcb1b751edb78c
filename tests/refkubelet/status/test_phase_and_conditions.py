"""Phase and conditions as tables over container statuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from status_world import (
    BACKOFF,
    BACKOFF_OK,
    BAD,
    NEW,
    OK,
    RUNNING,
    UNSTARTED,
    pod_of,
    status_of,
    statuses_in,
)

from refkubelet.cri.records import NetworkMode, RuntimePodStatus, SandboxRecord, SandboxState
from refkubelet.model.objects import PodCondition, PodStatus
from refkubelet.model.pod import TERMINAL_PHASES
from refkubelet.status.conditions import (
    containers_ready_condition,
    generate_conditions,
    has_ready_sandbox,
    initialized_condition,
    ready_condition,
    with_readiness,
)
from refkubelet.status.phase import pod_phase, settled_phase

NONE = None


def phase_of(
    policy: str,
    *,
    terminal: bool = False,
    static: bool = False,
    record: bool = True,
    **statuses: Any,
) -> str:
    pod = pod_of(*statuses, policy=policy, static=static)
    both = statuses_in(status_of(**statuses))
    return pod_phase(pod, both, pod_is_terminal=terminal, has_regular_record=record)


@pytest.mark.parametrize(
    ("rule", "policy", "statuses", "wanted"),
    [
        ("LIFE-160 failed init, Never", "Never", {"i": BAD, "a": NEW}, "Failed"),
        ("LIFE-160 waiting after a failure", "Never", {"i": BACKOFF, "a": NEW}, "Failed"),
        ("LIFE-160 restartable init", "Always", {"i": BAD, "a": NEW}, "Pending"),
        ("LIFE-160 OnFailure restarts", "OnFailure", {"i": BACKOFF, "a": NEW}, "Pending"),
        ("LIFE-161 init runs", "Always", {"i": RUNNING, "a": NEW}, "Pending"),
        ("LIFE-161 init unknown", "Always", {"i": NONE, "a": RUNNING}, "Pending"),
        ("LIFE-161 init waits", "Always", {"i": NEW, "a": RUNNING}, "Pending"),
        ("LIFE-161 regular waits", "Always", {"a": RUNNING, "b": NEW}, "Pending"),
        ("LIFE-161 sidecar waits", "Always", {"s": NEW, "a": RUNNING}, "Pending"),
        ("LIFE-162 one runs", "Always", {"a": RUNNING, "b": OK}, "Running"),
        ("LIFE-162 sidecar runs on", "Never", {"s": RUNNING, "a": OK}, "Running"),
        ("LIFE-162 unknown beside", "Always", {"a": RUNNING, "b": NONE}, "Pending"),
        ("LIFE-162 sidecar back-off", "Always", {"s": BACKOFF, "a": RUNNING}, "Running"),
        ("LIFE-164 Always", "Always", {"a": OK}, "Running"),
        ("LIFE-164 all succeeded", "Never", {"a": OK, "b": OK}, "Succeeded"),
        ("LIFE-164 one failed", "Never", {"a": OK, "b": BAD}, "Failed"),
        ("LIFE-164 OnFailure, failed", "OnFailure", {"a": OK, "b": BAD}, "Running"),
        ("LIFE-164 OnFailure, done", "OnFailure", {"a": OK}, "Succeeded"),
        ("LIFE-164 back-off", "OnFailure", {"a": BACKOFF}, "Running"),
        ("LIFE-165 nothing known", "Always", {"a": NONE}, "Pending"),
    ],
)
def test_phase_table(rule: str, policy: str, statuses: Any, wanted: str) -> None:
    """LIFE-160, LIFE-161, LIFE-162, LIFE-164, LIFE-165."""
    assert phase_of(policy, **statuses) == wanted, rule


def test_unstarted_sidecar_is_pending_only_before_the_first_regular_LIFE_161() -> None:
    assert phase_of("Always", record=False, s=UNSTARTED, a=BACKOFF) == "Pending"
    assert phase_of("Always", record=True, s=UNSTARTED, a=BACKOFF) == "Running"


@pytest.mark.parametrize(
    ("statuses", "wanted"),
    [({"a": OK}, "Succeeded"), ({"a": OK, "b": BAD}, "Failed"), ({"a": BACKOFF_OK}, "Failed")],
)
def test_terminal_pod_ends_whatever_its_policy_LIFE_163(statuses: Any, wanted: str) -> None:
    assert phase_of("Always", terminal=True, **statuses) == wanted


def test_static_pod_is_never_forced_to_a_terminal_phase_LIFE_163() -> None:
    assert phase_of("Always", terminal=True, static=True, a=OK) == "Running"


PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])


@given(PHASES, PHASES | st.none(), PHASES | st.none())
def test_a_terminal_phase_is_never_left_LIFE_166_STAT_029(
    computed: str, cached: str | None, api: str | None
) -> None:
    settled = settled_phase(computed, cached, api)
    ends = [phase for phase in (computed, cached, api) if phase in TERMINAL_PHASES]
    assert settled == (ends[0] if ends else computed)


def test_containers_ready_names_the_unready_in_spec_order_STAT_040() -> None:
    pod = pod_of("s", "b", "a", "c")
    status = status_of(s=RUNNING, b=RUNNING, a={**RUNNING, "ready": True})
    condition = containers_ready_condition(pod, status)
    assert (condition.status, condition.reason) == ("False", "ContainersNotReady")
    assert condition.message == (
        "containers with unknown status: [c], containers with unready status: [s b]"
    )


@pytest.mark.parametrize(
    ("phase", "reason"), [("Succeeded", "PodCompleted"), ("Failed", "PodFailed")]
)
def test_terminal_pods_are_not_ready_LIFE_183(phase: str, reason: str) -> None:
    condition = containers_ready_condition(pod_of("a", policy="Never"), status_of(phase, a=OK))
    assert (condition.status, condition.reason, condition.message) == ("False", reason, None)


def test_ready_needs_every_readiness_gate_STAT_041_LIFE_182() -> None:
    told = {"conditions": [{"type": "x/two", "status": "False"}]}
    pod = pod_of("a", gates=("x/one", "x/two"), status=told)
    assert pod.status is not None
    status = status_of(a={**RUNNING, "ready": True})
    condition = ready_condition(pod, status, pod.status.conditions or [])
    assert condition.reason == "ReadinessGatesNotReady"
    assert condition.message == (
        'corresponding condition of pod readiness gate "x/one" does not exist., '
        'the status of pod readiness gate "x/two" is not "True", but False'
    )
    assert containers_ready_condition(pod, status).status == "True"


@pytest.mark.parametrize(
    ("statuses", "was_true", "wanted"),
    [
        ({"i": {**OK, "ready": True}, "s": RUNNING, "a": NEW}, False, "True"),
        ({"i": {**OK, "ready": True}, "s": UNSTARTED, "a": NEW}, False, "False"),
        ({"i": NEW, "s": NEW, "a": NEW}, False, "False"),
        ({"i": NEW, "s": NEW, "a": NEW}, True, "True"),
        ({"i": NEW, "s": NEW, "a": BAD}, False, "True"),
    ],
)
def test_initialized_STAT_042_LIFE_181(statuses: Any, was_true: bool, wanted: str) -> None:
    status = status_of(**statuses)
    condition = initialized_condition(pod_of("i", "s", "a"), status, was_true=was_true)
    assert condition.status == wanted


def test_initialized_lists_incomplete_and_unknown_STAT_042() -> None:
    condition = initialized_condition(
        pod_of("i", "s", "a"), status_of(i=RUNNING, a=NEW), was_true=False
    )
    assert condition.reason == "ContainersNotInitialized"
    assert condition.message == (
        "containers with unknown status: [s], containers with incomplete status: [i]"
    )


def test_initialized_of_a_succeeded_pod_LIFE_181() -> None:
    status = status_of("Succeeded", i=OK, a=OK)
    condition = initialized_condition(pod_of("i", "a", policy="Never"), status, was_true=True)
    assert (condition.status, condition.reason) == ("True", "PodCompleted")


READY = SandboxState.READY
GONE = SandboxState.NOTREADY


@pytest.mark.parametrize(
    ("rule", "sandboxes", "wanted"),
    [
        ("LIFE-100", [], False),
        ("LIFE-101", [SandboxRecord("x", GONE)], False),
        ("LIFE-101", [SandboxRecord("x", READY), SandboxRecord("y", READY)], False),
        ("LIFE-101", [SandboxRecord("x", GONE, 1), SandboxRecord("y", READY, 0)], False),
        ("LIFE-102", [SandboxRecord("x", READY, network_mode=NetworkMode.NODE)], False),
        ("LIFE-103", [SandboxRecord("x", READY, has_network=True)], False),
        ("LIFE-104", [SandboxRecord("x", READY)], True),
        ("LIFE-104", [SandboxRecord("x", READY, has_network=True, ips=("1.2.3.4",))], True),
        ("LIFE-104", [SandboxRecord("x", READY, 1), SandboxRecord("y", GONE, 0)], True),
    ],
)
def test_ready_to_start_containers_STAT_043(rule: str, sandboxes: Any, wanted: bool) -> None:
    """LIFE-180."""
    status = RuntimePodStatus("u", sandboxes=tuple(sandboxes))
    assert has_ready_sandbox(pod_of("a"), status) is wanted, rule


def test_conditions_come_after_foreign_ones_LIFE_184() -> None:
    told = [{"type": "example.com/x", "status": "True"}, {"type": "Ready", "status": "True"}]
    pod = pod_of("a", meta={"generation": 3}, status={"conditions": told})
    previous = PodStatus(conditions=[PodCondition(type="DisruptionTarget", status="True")])
    conditions = generate_conditions(pod, status_of(a=NEW), RuntimePodStatus("u"), previous)
    assert [(c.type, c.status, c.observedGeneration) for c in conditions] == [
        ("example.com/x", "True", None),
        ("DisruptionTarget", "True", None),
        ("PodReadyToStartContainers", "False", 3),
        ("Initialized", "True", 3),
        ("Ready", "False", 3),
        ("ContainersReady", "False", 3),
        ("PodScheduled", "True", 3),
    ]


def test_readiness_alone_changes_two_conditions_in_place_PROBE_033() -> None:
    pod = pod_of("a")
    before = status_of(a={**RUNNING, "ready": True})
    before.conditions = generate_conditions(pod, before, RuntimePodStatus("u"), None)
    after = with_readiness(pod, make_unready(before))
    assert [c.type for c in after.conditions or ()] == [c.type for c in before.conditions]
    changed = [c.type for c in after.conditions or () if c not in before.conditions]
    assert changed == ["Ready", "ContainersReady"]


def make_unready(status: PodStatus) -> PodStatus:
    fresh = status_of(a={**RUNNING, "ready": False})
    fresh.conditions = status.conditions
    return fresh
