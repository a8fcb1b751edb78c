"""What the API may be told of a status, which updates are refused, and the patch that is sent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from lightkube.models.core_v1 import PodExtendedResourceClaimStatus
from pods import container, make_pod

from kubeobjects.structs import replace
from refkubelet.model.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
)
from refkubelet.status.generate import past_active_deadline
from refkubelet.status.merge import illegal_transition, merge_pod_status, terminated_status
from refkubelet.status.patch import status_patch

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
RUNNING = ContainerState(running=ContainerStateRunning())
WAITING = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))


def ended(code: int) -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(exitCode=code))


def container_status(
    name: str, state: ContainerState, last: ContainerState | None = None, **fields: Any
) -> ContainerStatus:
    values: dict[str, Any] = {"image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return ContainerStatus(name=name, state=state, lastState=last, **(values | fields))


def condition(kind: str, status: str = "True", **fields: Any) -> PodCondition:
    return PodCondition(type=kind, status=status, **fields)


def test_conditions_of_others_stay_and_own_ones_are_replaced_STAT_026() -> None:
    live = PodStatus(conditions=[condition("Mine"), condition("Ready", "False")])
    new = PodStatus(conditions=[condition("Ready")])
    merged = merge_pod_status(live, new, could_run=True, now=NOW)
    assert [(c.type, c.status) for c in merged.conditions or ()] == [
        ("Mine", "True"),
        ("Ready", "True"),
    ]


def test_a_terminal_phase_waits_for_the_containers_STAT_027_LIFE_187_LIFE_190() -> None:
    live = PodStatus(phase="Running", reason="old", message="text")
    new = PodStatus(
        phase="Failed", reason="Evicted", message="m", conditions=[condition("DisruptionTarget")]
    )
    early = merge_pod_status(live, new, could_run=True, now=NOW)
    assert (early.phase, early.reason, early.message) == ("Running", "old", "text")
    assert early.conditions == []
    late = merge_pod_status(live, new, could_run=False, now=NOW)
    assert (late.phase, late.reason, late.message) == ("Failed", "Evicted", "m")
    assert [c.type for c in late.conditions or ()] == ["DisruptionTarget"]


@pytest.mark.parametrize(
    ("phase", "reason"), [("Failed", "PodFailed"), ("Succeeded", "PodCompleted")]
)
def test_a_terminal_phase_is_never_ready_STAT_028(phase: str, reason: str) -> None:
    ready = [condition("Ready"), condition("ContainersReady"), condition("PodScheduled")]
    new = PodStatus(phase=phase, conditions=ready)
    merged = merge_pod_status(PodStatus(phase="Running"), new, could_run=False, now=NOW)
    assert [(c.type, c.status, c.reason) for c in merged.conditions or ()] == [
        ("Ready", "False", reason),
        ("ContainersReady", "False", reason),
        ("PodScheduled", "True", None),
    ]


def test_both_conditions_tell_of_the_end_if_one_was_true_STAT_028() -> None:
    earlier = datetime(2025, 1, 1, tzinfo=UTC)
    unready = condition("ContainersReady", "False", reason="ContainersNotReady", message="x")
    new = PodStatus(
        phase="Failed",
        conditions=[
            condition("Ready", lastTransitionTime=earlier),
            replace(unready, lastTransitionTime=earlier),
        ],
    )
    merged = merge_pod_status(PodStatus(phase="Running"), new, could_run=False, now=NOW)
    ready, containers = merged.conditions or []
    assert (ready.reason, ready.lastTransitionTime) == ("PodFailed", NOW)
    assert (containers.reason, containers.message) == ("PodFailed", None)
    assert containers.lastTransitionTime == earlier


def test_the_end_adds_the_condition_that_is_missing_STAT_028() -> None:
    new = PodStatus(phase="Succeeded", conditions=[condition("Ready")])
    live = PodStatus(phase="Running")
    merged = merge_pod_status(live, new, could_run=False, now=NOW, generation=4)
    found = [(c.type, c.status, c.reason, c.observedGeneration) for c in merged.conditions or ()]
    assert found == [
        ("Ready", "False", "PodCompleted", 4),
        ("ContainersReady", "False", "PodCompleted", 4),
    ]


def test_a_disruption_holds_since_it_is_told_STAT_027_LIFE_187() -> None:
    known = condition("DisruptionTarget", lastTransitionTime=datetime(2025, 1, 1, tzinfo=UTC))
    new = PodStatus(phase="Failed", conditions=[known])
    fresh = merge_pod_status(PodStatus(phase="Running"), new, could_run=False, now=NOW)
    assert [c.lastTransitionTime for c in fresh.conditions or ()] == [NOW]
    live = PodStatus(phase="Running", conditions=[known])
    again = merge_pod_status(live, new, could_run=False, now=NOW)
    assert again.conditions == [known]


def test_what_claims_were_made_is_left_to_others_STAT_026() -> None:
    claim = PodExtendedResourceClaimStatus(requestMappings=[], resourceClaimName="claim")
    live = PodStatus(phase="Running", extendedResourceClaimStatus=claim)
    merged = merge_pod_status(live, PodStatus(phase="Running"), could_run=True, now=NOW)
    assert merged.extendedResourceClaimStatus == claim


@pytest.mark.parametrize(
    ("policy", "old", "new", "expected"),
    [
        ("Never", ended(1), RUNNING, "main"),
        ("Never", ended(1), ended(1), None),
        ("Never", WAITING, RUNNING, None),
        ("OnFailure", ended(1), RUNNING, None),
        ("OnFailure", ended(0), WAITING, "main"),
        ("Always", ended(0), RUNNING, None),
    ],
)
def test_exited_containers_do_not_come_back_STAT_008_LIFE_191(
    policy: str, old: ContainerState, new: ContainerState, expected: str | None
) -> None:
    before = PodStatus(containerStatuses=[container_status("main", old)])
    after = PodStatus(containerStatuses=[container_status("main", new)])
    assert illegal_transition(before, after, make_pod(restartPolicy=policy)) == expected


@pytest.mark.parametrize(("policy", "expected"), [("OnFailure", None), ("Never", "main")])
def test_a_failure_under_on_failure_may_come_back_whatever_the_container_says_STAT_008(
    policy: str, expected: str | None
) -> None:
    before = PodStatus(containerStatuses=[container_status("main", ended(1))])
    after = PodStatus(containerStatuses=[container_status("main", RUNNING)])
    target = make_pod(container(restartPolicy="Never"), restartPolicy=policy)
    assert illegal_transition(before, after, target) == expected


@pytest.mark.parametrize(("restart", "expected"), [(None, "init"), ("Always", None)])
def test_plain_init_containers_do_not_come_back_but_sidecars_do_STAT_008(
    restart: str | None, expected: str | None
) -> None:
    before = PodStatus(initContainerStatuses=[container_status("init", ended(0))])
    after = PodStatus(initContainerStatuses=[container_status("init", RUNNING)])
    target = make_pod(init=[container("init", restartPolicy=restart)], restartPolicy="Never")
    assert illegal_transition(before, after, target) == expected


def test_end_of_termination_decides_what_is_open_STAT_010_LIFE_205() -> None:
    status = PodStatus(
        phase="Running",
        containerStatuses=[
            container_status("main", WAITING, last=ended(3)),
            container_status("done", ended(0)),
        ],
    )
    final = terminated_status(make_pod(), status)
    first, second = final.containerStatuses or []
    assert first.state is not None
    assert first.state.terminated is not None
    assert first.state.terminated.exitCode == 137
    assert first.state.terminated.reason == "ContainerStatusUnknown"
    assert second.state == ended(0)
    assert final.phase == "Failed"


@pytest.mark.parametrize(
    ("source", "phase", "expected"),
    [
        ("api", "Pending", "Failed"),
        ("api", "Succeeded", "Succeeded"),
        ("file", "Running", "Running"),
    ],
)
def test_final_phase_STAT_010_MIRR_010(source: str, phase: str, expected: str) -> None:
    pod = make_pod(static=source == "file")
    assert terminated_status(pod, PodStatus(phase=phase)).phase == expected


def test_containers_of_a_pod_that_never_initialised_stay_open_STAT_010() -> None:
    status = PodStatus(
        phase="Pending",
        containerStatuses=[container_status("main", WAITING)],
        initContainerStatuses=[
            container_status("a", WAITING),
            container_status("b", RUNNING),
            container_status("c", WAITING),
        ],
    )
    final = terminated_status(make_pod(init=["a", "b", "c"]), status)
    states = [s.state for s in final.initContainerStatuses or ()]
    assert [s is not None and s.terminated is not None for s in states] == [True, True, False]
    assert (final.containerStatuses or [])[0].state == WAITING


@pytest.mark.parametrize(("at_api", "lost"), [(RUNNING, True), (WAITING, False)])
def test_the_object_says_whether_the_pod_was_initialised_STAT_010(
    at_api: ContainerState, lost: bool
) -> None:
    """Not the last status of the kubelet, which the API server may not know yet."""
    target = make_pod(init=["a"])
    target.status = PodStatus(containerStatuses=[container_status("main", at_api)])
    status = PodStatus(
        phase="Running",
        containerStatuses=[container_status("main", WAITING)],
        initContainerStatuses=[container_status("a", ended(0))],
    )
    state = (terminated_status(target, status).containerStatuses or [])[0].state
    assert (state is not None and state.terminated is not None) is lost


def test_equal_statuses_send_nothing_STAT_022() -> None:
    status = PodStatus(phase="Running", conditions=[condition("Ready")])
    assert status_patch("u1", status, status) is None


def test_the_patch_holds_the_difference_and_the_uid_STAT_022() -> None:
    live = PodStatus(
        phase="Pending",
        conditions=[condition("Ready", "False", reason="R"), condition("PodScheduled")],
    )
    new = replace(
        live,
        phase="Running",
        conditions=[condition("Ready"), condition("PodScheduled")],
        podIPs=[PodIP(ip="10.0.0.1")],
    )
    assert status_patch("u1", live, new) == {
        "metadata": {"uid": "u1"},
        "status": {
            "phase": "Running",
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": None}],
            "podIPs": [{"ip": "10.0.0.1"}],
        },
    }


def test_a_condition_that_goes_is_deleted_STAT_022() -> None:
    live = PodStatus(conditions=[condition("Ready"), condition("PodResizePending")])
    patch = status_patch("u1", live, PodStatus(conditions=[condition("Ready")]))
    assert patch is not None
    assert patch["status"]["conditions"] == [{"$patch": "delete", "type": "PodResizePending"}]


@pytest.mark.parametrize(
    ("seconds", "age_s", "expected"),
    [(None, 99, False), (10, 9, False), (10, 10, True), (10**18, 99, False)],
)
def test_active_deadline_LIFE_204(seconds: int | None, age_s: int, expected: bool) -> None:
    target = Pod(spec=PodSpec(containers=[], activeDeadlineSeconds=seconds))
    status = PodStatus(startTime=datetime(2026, 1, 1, 11, 59, 60 - age_s % 60, tzinfo=UTC))
    if age_s >= 60:
        status = PodStatus(startTime=datetime(2026, 1, 1, 11, 58, tzinfo=UTC))
    assert past_active_deadline(target, status, NOW) is expected
    assert not past_active_deadline(target, PodStatus(), NOW)
