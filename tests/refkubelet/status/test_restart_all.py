"""RestartAllContainers in the status, and ephemeral containers: LIFE-125, LIFE-174, LIFE-185."""

from __future__ import annotations

from typing import Any

import pytest
from pods import make_pod
from status_world import NOW, NS, statuses_in

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.model.objects import ContainerStatus, Pod, PodStatus, to_dict
from refkubelet.status.generate import StatusInputs, generate_pod_status

RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
TRIGGER = {"name": "b", "restartPolicy": "Never", "restartPolicyRules": [RULE]}
WAITING = {
    "waiting": {
        "reason": "RestartingAllContainers",
        "message": "The container is removed because RestartAllContainers in place",
    }
}
ENDED = {
    "terminated": {
        "exitCode": 137,
        "reason": "RestartingAllContainers",
        "message": "The container is removed because RestartAllContainers in place",
    }
}


def web(**fields: Any) -> Pod:
    """A pod whose container `b` restarts all when it exits with 42."""
    return make_pod("a", TRIGGER, init=["setup"], restartPolicy="Never", **fields)


def record(name: str, state: str, code: int = 0, count: int = 0) -> ContainerRecord:
    return ContainerRecord(
        id=f"{name}{count}",
        name=name,
        state=ContainerState(state),
        exit_code=code,
        reason="Error" if code else "",
        restart_count=count,
        started_at_ns=NS,
        sandbox_id="s",
    )


def generate(
    known: PodStatus | None, *records: ContainerRecord, of: Pod | None = None
) -> PodStatus:
    boxes = (SandboxRecord("s", SandboxState.READY),)
    runtime = RuntimePodStatus("u", sandboxes=boxes, containers=records)
    return generate_pod_status(of or web(), runtime, known, StatusInputs(NOW))


def condition(status: PodStatus) -> dict[str, Any] | None:
    found = [c for c in status.conditions or () if c.type == "AllContainersRestarting"]
    shown = to_dict(found[0]) if found else None
    if shown is not None:
        del shown["type"], shown["lastTransitionTime"]
    return shown


def container(status: PodStatus, name: str) -> ContainerStatus:
    return next(c for c in statuses_in(status) if c.name == name)


BEFORE = (record("setup", "exited"), record("a", "running"), record("b", "running"))
DURING = (record("setup", "exited"), record("a", "running"), record("b", "exited", 42))
STARTED = {
    "status": "True",
    "reason": "RestartAllContainersStarted",
    "message": "container exited with restart policy rule",
}


def test_the_condition_is_there_for_pods_with_such_a_rule_only_LIFE_185() -> None:
    plain = make_pod("a", init=["setup"], restartPolicy="Never")
    assert condition(generate(None, record("a", "running"), of=plain)) is None
    assert condition(generate(None, *BEFORE)) == {"status": "False"}


def test_it_is_true_from_the_exit_until_the_last_record_is_gone_LIFE_185() -> None:
    running = generate(None, *BEFORE)
    exited = generate(running, *DURING)
    assert condition(exited) == STARTED
    half = generate(exited, record("b", "exited", 42))
    assert condition(half) == STARTED
    gone = generate(half)
    assert condition(gone) == {"status": "False"}


@pytest.mark.parametrize(("code", "wanted"), [(42, "True"), (41, "False")])
def test_only_a_matching_exit_counts_LIFE_185(code: int, wanted: str) -> None:
    status = generate(None, record("a", "running"), record("b", "exited", code))
    assert (condition(status) or {})["status"] == wanted


def test_a_finished_pod_says_so_LIFE_185() -> None:
    known = PodStatus(phase="Failed")
    status = generate(known, record("a", "exited", 1), record("b", "exited", 42))
    assert condition(status) == {"status": "False", "reason": "PodFailed"}
    known = PodStatus(phase="Succeeded")
    status = generate(known, record("a", "exited"), record("b", "exited"))
    assert condition(status) == {"status": "False", "reason": "PodCompleted"}


def test_removed_containers_wait_and_count_LIFE_125_BACK_111() -> None:
    exited = generate(generate(None, *BEFORE), *DURING)
    gone = generate(exited)
    for name in ("setup", "a", "b"):
        shown = container(gone, name)
        assert to_dict(shown.state) == WAITING
        assert to_dict(shown.lastState) == ENDED
        assert shown.restartCount == 1
    assert gone.phase == "Running"
    again = generate(gone, record("setup", "running", count=1))
    assert container(again, "setup").restartCount == 1
    assert container(again, "a").restartCount == 1
    assert to_dict(container(again, "setup").lastState) == ENDED


def test_initialized_stays_true_LIFE_181_BACK_111() -> None:
    gone = generate(generate(generate(None, *BEFORE), *DURING))
    kept = {c.type: c.status for c in gone.conditions or ()}
    assert kept["Initialized"] == "True"


def test_the_phase_does_not_fail_on_the_way_LIFE_160_LIFE_164() -> None:
    """Policy Never: neither the exit that asks for it nor the removed containers are an end."""
    exited = generate(generate(None, *BEFORE), record("a", "exited", 1), record("b", "exited", 42))
    assert exited.phase == "Running"
    gone = generate(exited, record("b", "exited", 42))
    assert gone.phase == "Running"


def test_a_lost_container_of_a_restarting_pod_has_that_reason_LIFE_172() -> None:
    running = generate(None, *BEFORE)
    status = generate(running, record("a", "unknown"), record("b", "exited", 42))
    ended = container(status, "a").state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.reason == "RestartingAllContainers"


def test_a_restart_that_lost_its_count_goes_on_counting_LIFE_173() -> None:
    exited = generate(None, record("a", "running"), record("b", "exited", 1, count=4))
    status = generate(exited, record("a", "running"), record("b", "running", count=0))
    assert container(status, "b").restartCount == 5


def test_ephemeral_containers_have_statuses_of_their_own_LIFE_174() -> None:
    debug = [{"name": "z", "image": "i"}, {"name": "e", "image": "i"}]
    made = web(ephemeralContainers=debug)
    first = generate(None, *BEFORE, of=made)
    names = [s.name for s in first.ephemeralContainerStatuses or ()]
    assert names == ["e", "z"]
    ended = generate(first, *BEFORE, record("e", "exited", 3), of=made)
    status = (ended.ephemeralContainerStatuses or [])[0]
    assert status.started is None
    assert not status.ready
    assert status.state is not None
    assert status.state.terminated is not None
    assert status.state.terminated.exitCode == 3
    assert ended.phase == "Running"
    assert generate(None, *BEFORE).ephemeralContainerStatuses is None
