"""The checks of one probe run, the counters and the small helpers, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import DELETED, container, make_pod, sidecar

from refkubelet.model.objects import PodCondition, PodStatus
from refkubelet.model.pod import PortError, resolve_port
from refkubelet.model.probe_results import ProbeResult, ProbeType
from refkubelet.probes.decide import (
    INITIAL,
    ProbeTarget,
    ProbeVerdict,
    WorkerState,
    count_outcome,
    decide_probe_run,
    find_status,
    probe_targets,
)
from refkubelet.probes.prober import expanded

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
L, R, S = ProbeType.LIVENESS, ProbeType.READINESS, ProbeType.STARTUP
OK, BAD, UNSURE = ProbeResult.SUCCESS, ProbeResult.FAILURE, ProbeResult.UNKNOWN
EXEC = {"exec": {"command": ["x"]}}
FIELD = {L: "livenessProbe", R: "readinessProbe", S: "startupProbe"}


def target(
    probe_type: ProbeType = L, *, policy: str = "Always", deleting: bool = False, **probe: Any
) -> ProbeTarget:
    probed = {"name": "c", FIELD[probe_type]: EXEC | probe}
    pod = make_pod(probed, meta=DELETED if deleting else {}, restartPolicy=policy)
    return probe_targets(pod)[0]


def status(
    state: str = "running",
    *,
    started: bool = True,
    phase: str = "Running",
    age_s: float = 60,
    container_id: str = "containerd://id1",
    exit_code: int = 1,
) -> PodStatus:
    at = (NOW - timedelta(seconds=age_s)).isoformat()
    states: dict[str, Any] = {
        "running": {"startedAt": at},
        "waiting": {},
        "terminated": {"exitCode": exit_code},
    }
    row = {
        "name": "c",
        "image": "",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "containerID": container_id,
        "started": started,
        "state": {state: states[state]},
    }
    found = make_pod(phase=phase, status={"containerStatuses": [row]}).status
    assert found is not None
    return found


KNOWN = WorkerState("id1")


def test_first_match_ends_or_waits_PROBE_011() -> None:
    for given_status, wanted in (
        (None, ProbeVerdict.WAIT),
        (status(phase="Failed"), ProbeVerdict.END),
        (status(phase="Succeeded"), ProbeVerdict.END),
        (PodStatus(phase="Pending"), ProbeVerdict.WAIT),
        (status(container_id=""), ProbeVerdict.WAIT),
    ):
        step = decide_probe_run(target(), WorkerState(), given_status, NOW)
        assert (step.verdict, step.stores) == (wanted, ())


@pytest.mark.parametrize("probe_type", [L, R, S])
def test_a_new_container_starts_from_the_initial_value_PROBE_012(probe_type: ProbeType) -> None:
    state = WorkerState("old", on_hold=True, last=BAD, run_length=2)
    step = decide_probe_run(target(probe_type), state, status(started=probe_type is not S), NOW)
    assert (step.forget, step.stores) == ("old", (INITIAL[probe_type],))
    assert step.state == WorkerState("id1", on_hold=False, last=BAD, run_length=2)  # PROBE-027
    assert INITIAL == {L: OK, R: BAD, S: UNSURE}


@pytest.mark.parametrize("probe_type", [L, R, S])
@pytest.mark.parametrize("state", ["waiting", "terminated"])
def test_a_container_that_does_not_run_has_not_failed_PROBE_014(
    probe_type: ProbeType, state: str
) -> None:
    """PROBE-014.1, PROBE-014.5: created and not started, or ended: its probe has not run."""
    step = decide_probe_run(target(probe_type), KNOWN, status(state, started=False), NOW)
    assert (step.verdict, step.stores) == (ProbeVerdict.WAIT, (INITIAL[probe_type],))


def test_no_initial_value_for_a_container_found_running_PROBE_051() -> None:
    step = decide_probe_run(
        target=target(R), state=WorkerState(), status=status(), now=NOW, predates_kubelet=True
    )
    assert (step.verdict, step.stores) == (ProbeVerdict.RUN, ())


@pytest.mark.parametrize(("predates", "wanted"), [(True, (OK,)), (False, (OK, UNSURE))])
def test_a_started_sidecar_found_running_keeps_its_startup_PROBE_051(
    predates: bool, wanted: tuple[ProbeResult, ...]
) -> None:
    (probe,) = probe_targets(make_pod(init=[sidecar("c", startupProbe=EXEC)]))
    step = decide_probe_run(
        target=probe, state=WorkerState(), status=status(), now=NOW, predates_kubelet=predates
    )
    assert step.stores == wanted


def test_on_hold_nothing_runs_PROBE_013() -> None:
    step = decide_probe_run(target(), WorkerState("id1", on_hold=True), status(), NOW)
    assert (step.verdict, step.stores) == (ProbeVerdict.WAIT, ())


@pytest.mark.parametrize(
    ("state", "policy", "code", "wanted"),
    [
        ("waiting", "Never", 1, ProbeVerdict.WAIT),
        ("terminated", "Always", 0, ProbeVerdict.WAIT),
        ("terminated", "OnFailure", 1, ProbeVerdict.WAIT),
        ("terminated", "OnFailure", 0, ProbeVerdict.END),
        ("terminated", "Never", 1, ProbeVerdict.END),
    ],
)
def test_what_does_not_run_has_failed_PROBE_014(
    state: str, policy: str, code: int, wanted: ProbeVerdict
) -> None:
    found = status(state, exit_code=code)
    step = decide_probe_run(target(R, policy=policy), KNOWN, found, NOW)
    assert (step.verdict, step.stores) == (wanted, (BAD,))


@pytest.mark.parametrize(
    ("probe_type", "wanted"), [(L, ProbeVerdict.END), (S, ProbeVerdict.END), (R, ProbeVerdict.RUN)]
)
def test_a_pod_deleted_before_the_worker_PROBE_015(probe_type: Any, wanted: ProbeVerdict) -> None:
    step = decide_probe_run(target(probe_type, deleting=True), KNOWN, status(), NOW)
    assert step.verdict is wanted
    assert step.stores == ((OK,) if wanted is ProbeVerdict.END else ())


@pytest.mark.parametrize(("age_s", "wanted"), [(29.9, ProbeVerdict.WAIT), (30, ProbeVerdict.RUN)])
def test_initial_delay_counts_whole_seconds_PROBE_016(age_s: float, wanted: ProbeVerdict) -> None:
    found = status(age_s=age_s)
    assert decide_probe_run(target(initialDelaySeconds=30), KNOWN, found, NOW).verdict is wanted


@pytest.mark.parametrize(
    ("probe_type", "started", "wanted"),
    [
        (S, False, ProbeVerdict.RUN),
        (S, True, ProbeVerdict.WAIT),
        (L, False, ProbeVerdict.WAIT),
        (L, True, ProbeVerdict.RUN),
        (R, False, ProbeVerdict.WAIT),
        (R, True, ProbeVerdict.RUN),
    ],
)
def test_startup_gates_the_others_PROBE_017(
    probe_type: ProbeType, started: bool, wanted: ProbeVerdict
) -> None:
    found = status(started=started)
    assert decide_probe_run(target(probe_type), KNOWN, found, NOW).verdict is wanted


def stored(probe: ProbeTarget, *answers: ProbeResult) -> list[ProbeResult | None]:
    state, results = KNOWN, []
    for answer in answers:
        state, result = count_outcome(probe, state, answer)
        results.append(result)
    return results


def test_thresholds_count_equal_answers_in_a_row_PROBE_019_PROBE_026() -> None:
    probe = target(R, failureThreshold=3, successThreshold=2)
    assert stored(probe, BAD, BAD, OK, BAD, BAD, BAD, OK, OK) == [
        None,
        None,
        None,
        None,
        None,
        BAD,
        None,
        OK,
    ]


def test_a_period_is_never_less_than_a_second_PROBE_003() -> None:
    assert target(R, periodSeconds=-5).period_s == 1


def test_defaults_of_the_api_PROBE_003() -> None:
    probe = target(R)
    assert (probe.period_s, probe.timeout_s) == (10, 1)
    assert probe.threshold == {OK: 1, BAD: 3}


@pytest.mark.parametrize(
    ("probe_type", "answer", "held"),
    [(L, BAD, True), (L, OK, False), (S, OK, True), (S, BAD, True), (R, BAD, False)],
)
def test_hold_after_a_stored_result_PROBE_020(
    probe_type: ProbeType, answer: ProbeResult, held: bool
) -> None:
    state, result = count_outcome(target(probe_type, failureThreshold=1), KNOWN, answer)
    assert (state.on_hold, result) == (held, answer)
    assert state.run_length == (0 if held else 1)


@given(st.lists(st.sampled_from([OK, BAD])), st.integers(1, 4), st.integers(1, 4))
def test_a_stored_result_always_ends_a_long_enough_run_PROBE_019(
    answers: list[ProbeResult], failures: int, successes: int
) -> None:
    probe = target(R, failureThreshold=failures, successThreshold=successes)
    for index, result in enumerate(stored(probe, *answers)):
        need = probe.threshold[answers[index]]
        run = answers[max(0, index - need + 1) : index + 1]
        assert (result is not None) == (len(run) == need and len(set(run)) == 1)


def test_who_is_probed_and_in_which_order_PROBE_001_PROBE_002() -> None:
    probes = dict.fromkeys(FIELD.values(), EXEC)
    init = [container("plain", **probes), sidecar(**probes)]
    pod = make_pod(container(**probes), init=init)
    found = [(t.container.name, t.probe_type, t.field_path) for t in probe_targets(pod)]
    main, side = "spec.containers{main}", "spec.initContainers{side}"
    assert found == [
        ("main", S, main),
        ("main", R, main),
        ("main", L, main),
        ("side", S, side),
        ("side", R, side),
        ("side", L, side),
    ]


ENV = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
PORTS = [{"name": "web", "containerPort": 8080}]
CONTAINER = make_pod(container(env=ENV, ports=PORTS)).spec.containers[0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("$(A)x", "1x"),
        ("$(B)", ""),  # valueFrom is not looked at
        ("$(C)", "$(C)"),
        ("$$(A)", "$(A)"),
        ("$A", "$A"),
    ],
)
def test_variables_are_expanded_as_they_are_written_PROBE_062(word: str, wanted: str) -> None:
    assert expanded([word], CONTAINER) == [wanted]


@pytest.mark.parametrize(("port", "wanted"), [("web", 8080), ("81", 81), (82, 82), ("+83", 83)])
def test_ports_by_name_or_number_PROBE_061(port: Any, wanted: int) -> None:
    assert resolve_port(port, CONTAINER) == wanted


@pytest.mark.parametrize(
    ("port", "text"),
    [
        ("nope", 'strconv.Atoi: parsing "nope": invalid syntax'),
        ("8 0", 'strconv.Atoi: parsing "8 0": invalid syntax'),
        (0, "invalid port number: 0"),
        (65536, "invalid port number: 65536"),
        ("-1", "invalid port number: -1"),
    ],
)
def test_a_wrong_port_is_an_error_PROBE_061(port: Any, text: str) -> None:
    with pytest.raises(PortError) as error:
        resolve_port(port, CONTAINER)
    assert str(error.value) == text


def reset_pod(exit_code: int) -> Any:
    """Two containers of policy Never; the exit code 42 of the second restarts all."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    probed = container("c", readinessProbe=EXEC)
    other = container("d", restartPolicy="Never", restartPolicyRules=[rule])
    ended = {"terminated": {"exitCode": exit_code}}
    rows = [
        {"name": name, "containerID": f"containerd://{name}", "state": ended, "image": "",
         "imageID": "", "ready": False, "restartCount": 0}
        for name in ("c", "d")
    ]  # fmt: skip
    status = {"phase": "Running", "containerStatuses": rows}
    return make_pod(probed, other, restartPolicy="Never", status=status)


@pytest.mark.parametrize(("exit_code", "wanted"), [(42, ProbeVerdict.WAIT), (1, ProbeVerdict.END)])
def test_a_pod_that_starts_over_keeps_its_workers_PROBE_014(exit_code: int, wanted: Any) -> None:
    pod = reset_pod(exit_code)
    step = decide_probe_run(probe_targets(pod)[0], WorkerState("c"), pod.status, NOW)
    assert step.verdict is wanted


def test_a_pod_whose_condition_says_so_starts_over_PROBE_014() -> None:
    pod = reset_pod(1)
    condition = PodCondition(type="AllContainersRestarting", status="True")
    found = msgspec.structs.replace(pod.status, conditions=[condition])
    step = decide_probe_run(probe_targets(pod)[0], WorkerState("c"), found, NOW)
    assert (step.verdict, step.stores) == (ProbeVerdict.WAIT, (BAD,))


def test_regular_statuses_are_looked_at_first_PROBE_011() -> None:
    row = {"image": "", "imageID": "", "ready": False, "restartCount": 0, "name": "c"}
    status = {
        "containerStatuses": [{**row, "containerID": "x://1"}],
        "initContainerStatuses": [
            {**row, "containerID": "x://2"},
            {**row, "name": "i", "containerID": "x://3"},
        ],
    }
    pod = make_pod(status=status)
    assert pod.status is not None
    found = [find_status(pod.status, name) for name in ("c", "i", "z")]
    assert [s.containerID if s else None for s in found] == ["x://1", "x://3", None]


@given(
    st.sampled_from([L, R, S]),
    st.sampled_from(["running", "waiting", "terminated"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "id1", "old"]),
    st.floats(0, 100),
    st.sampled_from(["Always", "OnFailure", "Never"]),
)
def test_the_laws_of_one_run(
    probe_type: ProbeType,
    state: str,
    started: bool,
    held: bool,
    known: str,
    age_s: float,
    policy: str,
) -> None:
    """PROBE-012, PROBE-013, PROBE-016, PROBE-017: whatever happened before."""
    probe = target(probe_type, policy=policy, initialDelaySeconds=30)
    before = WorkerState(known, on_hold=held and bool(known), last=BAD, run_length=2)
    step = decide_probe_run(probe, before, status(state, started=started, age_s=age_s), NOW)
    new = known != "id1"
    if step.verdict is ProbeVerdict.RUN:
        assert state == "running"
        assert age_s >= 30 - 1e-6
        assert started != (probe_type is S)
        assert not step.state.on_hold
    assert step.state.container_id == "id1"
    assert (step.stores[:1] == (INITIAL[probe_type],)) >= new
    assert step.forget == (known if new else "")
    assert step.state.run_length == 2
    if before.on_hold and not new:
        assert (step.verdict, step.stores) == (ProbeVerdict.WAIT, ())
    if state != "running" and not (before.on_hold and not new):
        assert step.stores[-1] is INITIAL[probe_type], "not running is no verdict (PROBE-014.1)"


@given(st.lists(st.sampled_from([OK, BAD]), max_size=30), st.integers(1, 4))
def test_liveness_never_fails_before_its_threshold_PROBE_012(
    answers: list[ProbeResult], failures: int
) -> None:
    """A stored Failure has failureThreshold failures right before it, and then a hold."""
    probe = target(L, failureThreshold=failures)
    state = KNOWN
    for index, answer in enumerate(answers):
        if state.on_hold:
            return
        state, result = count_outcome(probe, state, answer)
        if result is BAD:
            assert answers[max(0, index - failures + 1) : index + 1] == [BAD] * failures
            assert state.on_hold
