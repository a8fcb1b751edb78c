"""The one form of statuses, the times that are stamped, and equality (STAT-003..007)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from lightkube.models.core_v1 import ResourceRequirements
from pods import make_pod
from status_world import NOW, exited, generate, only, running

from refkubelet.cri.records import (
    RuntimePodStatus,
)
from refkubelet.model.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from refkubelet.status.generate import StatusInputs, generate_pod_status
from refkubelet.status.normalize import (
    TERMINATION_MESSAGE_BYTES,
    newer_generation,
    normalize_status,
    stamp_times,
    statuses_equal,
)


def test_start_time_is_set_once_STAT_003() -> None:
    first = generate(make_pod())
    later = stamp_times(generate(make_pod()), first, NOW + timedelta(hours=1))
    assert first.startTime == later.startTime == NOW


def test_transition_times_move_with_the_status_only_STAT_004() -> None:
    later = NOW + timedelta(minutes=5)
    first = generate(make_pod())
    second = stamp_times(generate(make_pod(), running()), first, later)
    times = {c.type: c.lastTransitionTime for c in second.conditions or ()}
    assert times["Ready"] == later
    assert times["PodScheduled"] == NOW


def test_observed_generation_never_falls_STAT_005() -> None:
    assert newer_generation(2, PodStatus(observedGeneration=3)) == 3
    assert newer_generation(4, PodStatus(observedGeneration=3)) == 4
    assert newer_generation(None, None) is None


def test_normal_form_STAT_006() -> None:
    long = exited(message="x" * 20000)
    pod = make_pod("main", "other", restartPolicy="Never")
    fraction = NOW + timedelta(milliseconds=700)
    runtime = RuntimePodStatus("u", containers=(long,))
    status = generate_pod_status(pod, runtime, None, StatusInputs(fraction))
    normal = normalize_status(pod, status)
    assert normal.startTime == NOW
    assert {c.lastTransitionTime for c in normal.conditions or ()} == {NOW}
    (first, _) = normal.containerStatuses or ()
    assert first.state
    assert first.state.terminated
    assert first.state.terminated.message
    assert len(first.state.terminated.message) == TERMINATION_MESSAGE_BYTES // 2
    assert normalize_status(pod, normal) == normal


def test_message_is_cut_between_characters_STAT_006() -> None:
    pod = make_pod(restartPolicy="Never")
    status = normalize_status(pod, generate(pod, exited(message="ä" * 9000)))
    found = only(status)
    assert found.state
    assert found.state.terminated
    assert found.state.terminated.message == "ä" * 6144


def test_equality_ignores_times_and_foreign_conditions_STAT_007() -> None:
    first = generate(make_pod(), running())
    later = stamp_times(first, None, NOW + timedelta(hours=1))
    moved = msgspec.structs.replace(later, startTime=first.startTime)
    assert statuses_equal(first, moved)
    assert not statuses_equal(first, generate(make_pod(), exited()))
    assert not statuses_equal(None, first)


def asked(cpu: str, field: str) -> PodStatus:
    """A status with that much CPU in one of the fields that hold amounts."""
    amounts = {"cpu": cpu}
    if field == "pod":
        return PodStatus(resources=ResourceRequirements(requests=amounts))
    if field == "allocated":
        return PodStatus(allocatedResources=amounts)
    resources = ResourceRequirements(limits=amounts)
    main = ContainerStatus(
        image="i", imageID="", name="main", ready=False, restartCount=0, resources=resources
    )
    fields: dict[str, Any] = {field: [main]}
    return PodStatus(**fields)


@pytest.mark.parametrize(
    "field",
    [
        "pod",
        "allocated",
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ],
)
def test_amounts_are_equal_by_value_STAT_021(field: str) -> None:
    assert statuses_equal(asked("1000m", field), asked("1", field))
    assert not statuses_equal(asked("1001m", field), asked("1", field))
    assert not statuses_equal(asked("odd", field), asked("0", field))
    assert statuses_equal(asked("odd", field), asked("odd", field))


def changed(of: PodStatus, kind: str, **fields: Any) -> PodStatus:
    """A copy with these fields in the condition of that kind."""
    conditions = [
        msgspec.structs.replace(c, **fields) if c.type == kind else c for c in of.conditions or ()
    ]
    return msgspec.structs.replace(of, conditions=conditions)


def test_equality_asks_for_status_reason_and_message_of_own_conditions_STAT_007() -> None:
    first = generate(make_pod(), running())
    backwards = msgspec.structs.replace(first, conditions=[*reversed(first.conditions or ())])
    assert statuses_equal(first, backwards)
    for fields in ({"status": "Unknown"}, {"reason": "why"}, {"message": "why"}):
        assert not statuses_equal(first, changed(first, "Ready", **fields)), fields
    for fields in ({"lastTransitionTime": NOW}, {"observedGeneration": 7}):
        assert statuses_equal(first, changed(first, "Ready", **fields)), fields
    foreign = PodCondition(type="example.com/x", status="True")
    more = msgspec.structs.replace(first, conditions=[*(first.conditions or ()), foreign])
    assert statuses_equal(first, more)
    assert statuses_equal(PodStatus(conditions=None), PodStatus(conditions=[foreign]))
    assert not statuses_equal(PodStatus(conditions=None), first)


def test_times_of_containers_are_whole_seconds_STAT_006() -> None:
    fraction = NOW + timedelta(milliseconds=700)
    times = {"startedAt": fraction, "finishedAt": fraction + timedelta(seconds=1)}
    ended = ContainerStateTerminated(exitCode=1, message="\N{EURO SIGN}" * 9000, **times)
    container = ContainerStatus(
        name="main",
        image="i",
        imageID="",
        ready=False,
        restartCount=1,
        state=ContainerState(running=ContainerStateRunning(startedAt=fraction)),
        lastState=ContainerState(terminated=ended),
    )
    bare = ContainerStatus(name="bare", image="i", imageID="", ready=False, restartCount=0)
    status = PodStatus(containerStatuses=[container, bare])
    first, second = normalize_status(make_pod("bare", "main"), status).containerStatuses or ()
    assert (first.name, first.state, first.lastState) == ("bare", None, None)
    assert second.state == ContainerState(running=ContainerStateRunning(startedAt=NOW))
    assert second.lastState is not None
    shown = second.lastState.terminated
    assert shown is not None
    assert (shown.startedAt, shown.finishedAt) == (NOW, NOW + timedelta(seconds=1))
    limit = TERMINATION_MESSAGE_BYTES // 2
    assert shown.message == "\N{EURO SIGN}" * (limit // 3)


def test_containers_of_every_kind_have_an_order_and_whole_times_STAT_006() -> None:
    fraction = NOW + timedelta(milliseconds=700)

    def rows(*names: str) -> list[ContainerStatus]:
        state = ContainerState(running=ContainerStateRunning(startedAt=fraction))
        return [
            ContainerStatus(
                name=name, image="i", imageID="", ready=True, restartCount=0, state=state
            )
            for name in names
        ]

    probed = PodCondition(type="x", status="True", lastProbeTime=fraction)
    status = PodStatus(
        conditions=[probed],
        initContainerStatuses=rows("a", "c", "b"),
        ephemeralContainerStatuses=rows("f", "e"),
        containerStatuses=rows("z", "y"),
    )
    normal = normalize_status(make_pod("y", "z", init=["c", "b", "a"]), status)
    groups = (
        normal.initContainerStatuses,
        normal.ephemeralContainerStatuses,
        normal.containerStatuses,
    )
    assert ["".join(row.name for row in group or ()) for group in groups] == ["cba", "ef", "yz"]
    running = ContainerState(running=ContainerStateRunning(startedAt=NOW))
    assert all(row.state == running for group in groups for row in group or ())
    assert [c.lastProbeTime for c in normal.conditions or ()] == [NOW]
    assert normalize_status(make_pod(), PodStatus()).initContainerStatuses is None
