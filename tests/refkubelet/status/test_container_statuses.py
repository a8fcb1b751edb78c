"""Container statuses, readiness and the normal form, rule by rule."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import DELETED, container, make_pod, sidecar
from status_world import NOW, exited, generate, only, record, running

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePodStatus,
    RuntimeUser,
)
from refkubelet.kuberuntime.decisions.restart_policy import starts_at_next_sync
from refkubelet.model.objects import ContainerState as KnownState
from refkubelet.model.objects import (
    ContainerStateTerminated,
    Pod,
    PodCondition,
    PodStatus,
    to_dict,
)
from refkubelet.model.probe_results import ProbeResult
from refkubelet.status.generate import ForcedFailure, StatusInputs, generate_pod_status


def shown(value: Any) -> dict[str, Any]:
    return to_dict(value)


def crashed(reason: str = "CrashLoopBackOff") -> dict[str, Any]:
    return {"reason_of": lambda name: (reason, "why")}


def test_a_container_never_created_waits_LIFE_170() -> None:
    assert shown(only(generate(make_pod())).state) == {"waiting": {"reason": "ContainerCreating"}}
    with_init = make_pod(init=["i"])
    assert shown(only(generate(with_init)).state) == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(("groups", "wanted"), [((), {}), ((6, 7), {"supplementalGroups": [6, 7]})])
def test_the_user_is_the_one_that_the_runtime_tells_LIFE_170(
    groups: tuple[int, ...], wanted: dict[str, Any]
) -> None:
    told = record(ContainerState.RUNNING, user=RuntimeUser(5, 6, groups))
    assert shown(only(generate(make_pod(), told)).user) == {"linux": {"uid": 5, "gid": 6} | wanted}
    assert only(generate(make_pod(), running())).user is None


def test_created_container_waits_without_reason_LIFE_170() -> None:
    assert shown(only(generate(make_pod(), record(ContainerState.CREATED))).state) == {
        "waiting": {}
    }


def test_state_is_the_newest_and_last_state_the_second_record_LIFE_170() -> None:
    found = only(generate(make_pod(), running(2), exited(1), exited(0)))
    assert found.state
    assert found.state.running
    assert found.restartCount == 2
    assert found.containerID == "containerd://id2"
    assert found.lastState
    assert found.lastState.terminated
    assert found.lastState.terminated.containerID == "containerd://id1"


def test_last_state_is_kept_when_its_record_is_gone_LIFE_170() -> None:
    first = generate(make_pod(), running(1), exited(0))
    second = generate(make_pod(), running(1), previous=first)
    assert only(second).lastState == only(first).lastState


def test_reason_cache_turns_an_exit_into_waiting_LIFE_171() -> None:
    found = only(generate(make_pod(), exited(), **crashed()))
    assert shown(found.state) == {"waiting": {"reason": "CrashLoopBackOff", "message": "why"}}
    assert found.lastState
    assert found.lastState.terminated
    assert found.lastState.terminated.exitCode == 1


def test_without_an_entry_an_exit_stays_terminated_LIFE_171() -> None:
    found = only(generate(make_pod(), exited()))
    assert found.state
    assert found.state.terminated


def test_a_container_that_will_not_restart_ignores_the_reason_cache_LIFE_171() -> None:
    found = only(generate(make_pod(restartPolicy="Never"), exited(), **crashed()))
    assert found.state
    assert found.state.terminated


def test_a_failed_pull_is_shown_before_any_record_LIFE_171() -> None:
    found = only(generate(make_pod(), **crashed("ErrImagePull")))
    assert shown(found.state) == {"waiting": {"reason": "ErrImagePull", "message": "why"}}


def test_a_record_that_vanished_counts_as_a_lost_container_LIFE_172() -> None:
    before = generate(make_pod(), running())
    found = only(generate(make_pod(), previous=before))
    assert found.state
    assert found.state.waiting
    assert found.restartCount == 1
    assert shown(found.lastState)["terminated"] == {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was deleted.  "
        "The container used to be Running",
    }


def test_a_lost_container_of_a_deleted_pod_is_no_restart_LIFE_172() -> None:
    before = generate(make_pod(), running())
    assert only(generate(make_pod(meta=DELETED), previous=before)).restartCount == 0


def test_unknown_state_after_running_is_terminated_LIFE_172() -> None:
    before = generate(make_pod(), running())
    found = only(generate(make_pod(), record(ContainerState.UNKNOWN), previous=before))
    assert found.state
    assert found.state.terminated
    assert found.restartCount == 1
    assert found.state.terminated.reason == "ContainerStatusUnknown"
    assert found.state.terminated.message == (
        "The container could not be located when the pod was terminated"
    )


def test_an_exit_is_not_forgotten_with_its_record_LIFE_173() -> None:
    before = generate(make_pod(restartPolicy="Never"), exited())
    assert only(generate(make_pod(restartPolicy="Never"), previous=before)) == only(before)


def test_pruned_init_container_counts_as_completed_LIFE_173() -> None:
    pod = make_pod(init=["i"])
    status = generate(pod, running())
    (init,) = status.initContainerStatuses or ()
    assert init.state
    assert init.state.terminated
    assert init.ready
    assert (init.state.terminated.exitCode, init.state.terminated.reason) == (0, "Completed")


STATES = st.sampled_from(list(ContainerState))


def as_records(rows: Any) -> list[ContainerRecord]:
    return [record(s, number, id=f"{number}{i}") for i, (s, number) in enumerate(rows)]


HISTORIES = st.lists(st.lists(st.tuples(STATES, st.integers(0, 5)), max_size=3), max_size=6)


@given(HISTORIES)
def test_restart_count_never_decreases_LIFE_173(history: Any) -> None:
    previous: PodStatus | None = None
    count = 0
    for rows in history:
        records = [
            record(state, number, id=f"{number}{i}") for i, (state, number) in enumerate(rows)
        ]
        previous = generate(make_pod(), *records, previous=previous)
        assert only(previous).restartCount >= count
        count = only(previous).restartCount


@given(HISTORIES, st.booleans())
def test_phase_never_leaves_a_terminal_one_LIFE_166(history: Any, never: bool) -> None:
    pod = make_pod(restartPolicy="Never" if never else "Always")
    previous: PodStatus | None = None
    for rows in history:
        records = [
            record(state, number, id=f"{number}{i}") for i, (state, number) in enumerate(rows)
        ]
        status = generate(pod, *records, previous=previous)
        if previous is not None and previous.phase in ("Succeeded", "Failed"):
            assert status.phase in ("Succeeded", "Failed")
        previous = status


def test_order_regular_by_name_init_by_spec_LIFE_174() -> None:
    names = [{"name": "z", "image": "i"}, {"name": "a", "image": "i"}]
    status = generate(make_pod(init=names, containers=names))
    assert [s.name for s in status.containerStatuses or ()] == ["a", "z"]
    assert [s.name for s in status.initContainerStatuses or ()] == ["z", "a"]


def test_forced_failure_wins_over_a_running_pod_LIFE_204() -> None:
    status = generate(make_pod(), running(), forced=ForcedFailure("DeadlineExceeded", "late"))
    assert (status.phase, status.reason, status.message) == ("Failed", "DeadlineExceeded", "late")


def test_reason_is_kept_with_its_phase_and_cleared_with_it_LIFE_166() -> None:
    failed = generate(make_pod(), running(), forced=ForcedFailure("Evicted", "m"))
    kept = generate(make_pod(), running(), previous=failed)
    assert (kept.phase, kept.reason, kept.message) == ("Failed", "Evicted", "m")
    done = generate(make_pod(), exited(code=0), previous=failed, pod_is_terminal=True)
    assert (done.phase, done.reason, done.message) == ("Succeeded", None, None)


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize("code", [0, 1])
def test_forced_failure_wins_over_what_the_containers_stand_for_LIFE_204(
    policy: str, code: int
) -> None:
    """At its end too: containers that exit 0 when they are stopped do not make it a success."""
    late = ForcedFailure("DeadlineExceeded", "late")
    status = generate(
        make_pod(restartPolicy=policy), exited(code=code), forced=late, pod_is_terminal=True
    )
    assert (status.phase, status.reason, status.message) == ("Failed", "DeadlineExceeded", "late")


def test_a_forced_failure_does_not_change_the_phase_of_the_api_LIFE_166_STAT_029() -> None:
    pod = msgspec.structs.replace(make_pod(), status=PodStatus(phase="Succeeded"))
    status = generate(pod, running(), forced=ForcedFailure("DeadlineExceeded", "late"))
    assert status.phase == "Succeeded"


def test_the_reason_of_the_api_is_kept_where_the_last_status_has_none_LIFE_166() -> None:
    known = PodStatus(phase="Running", reason="Old", message="why")
    pod = msgspec.structs.replace(make_pod(), status=known)
    status = generate(pod, running(), previous=PodStatus(phase="Running"))
    assert (status.reason, status.message) == ("Old", "why")


@pytest.mark.parametrize(("was_started", "phase"), [(None, "Pending"), (True, "Running")])
def test_the_phase_is_older_than_the_probes_LIFE_161(was_started: bool | None, phase: str) -> None:
    """A sidecar counts as started from the status after the one that says so."""
    pod = make_pod(init=[sidecar("s")])
    side = record(ContainerState.RUNNING, name="s", id="s")
    earlier = generate(pod, side)
    for told in earlier.initContainerStatuses or ():
        told.started = was_started
    ended = KnownState(terminated=ContainerStateTerminated(exitCode=1))
    only(earlier).state = ended  # so that the pod does not wait for it
    status = generate(pod, side, previous=earlier)
    assert status.phase == phase
    assert (status.initContainerStatuses or [])[0].started


@pytest.mark.parametrize(
    ("runtime", "node", "wanted"),
    [
        ((), ("10.0.0.1", "fd00::1"), ["10.0.0.1", "fd00::1"]),
        (("10.9.0.1",), ("10.0.0.1",), ["10.9.0.1"]),
        (("10.9.0.1",), ("10.0.0.1", "fd00::1"), ["10.9.0.1", "fd00::1"]),
        (("fd00::9",), ("10.0.0.1", "fd00::1"), ["fd00::9"]),
        (("fd00::9", "10.9.0.1"), ("10.0.0.1", "fd00::1"), ["10.9.0.1", "fd00::9"]),
    ],
)
def test_what_the_runtime_tells_of_a_host_network_pod_comes_first_LIFE_176(
    runtime: tuple[str, ...], node: tuple[str, ...], wanted: list[str]
) -> None:
    told = RuntimePodStatus("u", ips=runtime)
    inputs = StatusInputs(NOW, host_ips=node)
    status = generate_pod_status(make_pod(hostNetwork=True), told, None, inputs)
    assert [p.ip for p in status.podIPs or ()] == wanted


def test_host_network_pods_have_the_nodes_addresses_LIFE_176() -> None:
    status = generate(make_pod(hostNetwork=True), running(), host_ips=("10.0.0.1", "fd00::1"))
    assert [p.ip for p in status.podIPs or ()] == ["10.0.0.1", "fd00::1"]
    assert (status.hostIP, status.podIP) == ("10.0.0.1", "10.0.0.1")


class Facts:
    """Scripted probe facts for one container."""

    def __init__(self, startup: Any, readiness: Any, old: bool = False) -> None:
        self.results = (startup, readiness)
        self.old = old

    def startup_result(self, container_id: str) -> ProbeResult | None:
        return self.results[0]  # type: ignore[no-any-return]

    def readiness_result(self, container_id: str) -> ProbeResult | None:
        return self.results[1]  # type: ignore[no-any-return]

    def predates_kubelet(self, started_at: datetime | None) -> bool:
        return self.old


S, F, U = ProbeResult.SUCCESS, ProbeResult.FAILURE, ProbeResult.UNKNOWN
PROBE: Any = {"exec": {"command": ["x"]}}
PROBED = make_pod(container(readinessProbe=PROBE))
STARTING = make_pod(container(readinessProbe=PROBE, startupProbe=PROBE))


@pytest.mark.parametrize(
    ("pod", "facts", "wanted"),
    [
        (make_pod(), Facts(None, None), (True, True)),
        (PROBED, Facts(None, None), (True, False)),
        (STARTING, Facts(None, None), (False, False)),
        (STARTING, Facts(U, None), (False, False)),
        (STARTING, Facts(F, S), (False, False)),
        (STARTING, Facts(S, F), (True, False)),
        (PROBED, Facts(S, F), (True, False)),
        (PROBED, Facts(S, S), (True, True)),
        (STARTING, Facts(None, S), (False, False)),
    ],
)
def test_started_and_ready_PROBE_041_PROBE_042(
    pod: Pod, facts: Facts, wanted: tuple[bool, bool]
) -> None:
    """LIFE-175."""
    found = only(generate(pod, running(), probes=facts))
    assert (found.started, found.ready) == wanted


@pytest.mark.parametrize(("attempt", "wanted"), [(0, True), (1, False)])
def test_started_is_kept_for_the_same_instance_PROBE_044(attempt: int, wanted: bool) -> None:
    before = generate(STARTING, running(0), probes=Facts(S, S))
    facts = Facts(None, None)
    found = only(generate(STARTING, running(attempt), previous=before, probes=facts))
    assert found.started is wanted


@pytest.mark.parametrize(("old", "known", "started"), [(True, False, True), (False, False, False),
                                                       (True, True, False)])  # fmt: skip
def test_an_older_container_of_which_nothing_is_known_has_started_PROBE_041(
    old: bool, known: bool, started: bool
) -> None:
    """A static pod has no status when its kubelet starts; a pod of the API server has one."""
    before = generate(STARTING, running(), probes=Facts(F, F)) if known else None
    facts = Facts(None, None, old=old)
    status = only(generate(STARTING, running(), previous=before, probes=facts))
    assert status.started is started


@pytest.mark.parametrize("was_ready", [True, False])
def test_readiness_survives_a_kubelet_restart_PROBE_052(was_ready: bool) -> None:
    """What counts is the condition of the object; the last status may say what it wants."""
    ready = PodCondition(type="Ready", status=str(was_ready))
    pod = msgspec.structs.replace(PROBED, status=PodStatus(conditions=[ready]))
    before = generate(PROBED, running(), probes=Facts(None, F if was_ready else S))
    after = generate(pod, running(), previous=before, probes=Facts(None, None, old=True))
    assert only(after).ready is was_ready


@pytest.mark.parametrize(
    ("policy", "code", "wanted"),
    [
        ("Always", 0, True),
        ("OnFailure", 0, False),
        ("OnFailure", 3, True),
        ("Never", 3, False),
    ],
)
def test_pod_policy_decides_about_exits_LIFE_124(policy: str, code: int, wanted: bool) -> None:
    pod = make_pod(restartPolicy=policy)
    assert starts_at_next_sync(pod.spec.containers[0], pod, exited(code=code)) is wanted


@pytest.mark.parametrize(
    ("operator", "code", "wanted"),
    [("In", 42, True), ("In", 7, False), ("NotIn", 42, False), ("NotIn", 7, True)],
)
def test_container_rules_come_first_LIFE_124(operator: str, code: int, wanted: bool) -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": operator, "values": [42]}}
    spec = {"name": "main", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    pod = make_pod(spec)
    assert starts_at_next_sync(pod.spec.containers[0], pod, exited(code=code)) is wanted


def test_nothing_restarts_in_a_deleted_pod_LIFE_114() -> None:
    pod = make_pod(meta=DELETED)
    assert not starts_at_next_sync(pod.spec.containers[0], pod, None)
