"""compute_pod_actions, rule by rule (LIFE-100..124, BACK-101..106)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import DELETED, IMAGE, make_pod
from runtime_doubles import Probes, record, sandbox, status

from refkubelet.cri.records import NetworkMode, RuntimePodStatus
from refkubelet.kuberuntime.decisions.actions import compute_pod_actions
from refkubelet.kuberuntime.decisions.pod_actions import KillReason, PodActions
from refkubelet.kuberuntime.decisions.restart_policy import restarts_after_exit
from refkubelet.model.probe_results import ProbeResult

FAILURE, SUCCESS = ProbeResult.FAILURE, ProbeResult.SUCCESS
NOTHING = Probes()
I1, I2 = {"name": "i1"}, {"name": "i2"}
S1, S2 = ({"name": n, "restartPolicy": "Always"} for n in ("s1", "s2"))
EPHEMERAL = [{"name": "debug", "image": IMAGE}]


def decide(pod: Any, state: RuntimePodStatus, probes: Probes = NOTHING) -> PodActions:
    return compute_pod_actions(pod, state, probes)


def starts(actions: PodActions) -> tuple[list[str], list[str], list[str]]:
    """Names to start: ephemeral, init, regular."""
    groups = (actions.ephemeral_to_start, actions.init_to_start, actions.containers_to_start)
    ephemeral, init, regular = ([c.name for c in group] for group in groups)
    return ephemeral, init, regular


# -- sandbox -------------------------------------------------------------------------------------


def test_no_sandbox_creates_attempt_0_LIFE_100() -> None:
    actions = decide(make_pod(), status(sandboxes=()))
    assert actions.create_sandbox
    assert actions.kill_pod
    assert actions.attempt == 0
    assert not actions.sandbox_changed_event
    assert starts(actions) == ([], [], ["main"])


@pytest.mark.parametrize(
    ("boxes", "create", "attempt", "event"),
    [
        pytest.param((sandbox(0), sandbox(1)), True, 2, True, id="two ready LIFE-101"),
        pytest.param((sandbox(3, ready=False),), True, 4, True, id="not ready LIFE-101"),
        pytest.param(
            (sandbox(0, network_mode=NetworkMode.NODE),), True, 1, False, id="mode LIFE-102"
        ),
        pytest.param((sandbox(0, ips=()),), True, 1, True, id="no ip LIFE-103"),
        pytest.param((sandbox(0),), False, 0, False, id="keep LIFE-104"),
        pytest.param((sandbox(1), sandbox(0, ready=False)), False, 1, False, id="old dead"),
    ],
)
def test_sandbox(boxes: tuple[Any, ...], create: bool, attempt: int, event: bool) -> None:
    actions = decide(make_pod(), status(sandboxes=boxes))
    assert (actions.create_sandbox, actions.attempt) == (create, attempt)
    assert actions.sandbox_changed_event is event


def test_sandbox_without_network_status_is_kept_LIFE_104() -> None:
    box = sandbox(0, ips=())
    box = type(box)(**{f: getattr(box, f) for f in box.__slots__} | {"has_network": False})
    assert not decide(make_pod(), status(sandboxes=(box,))).create_sandbox


@pytest.mark.parametrize(
    ("policy", "records", "create"),
    [
        pytest.param("Never", [("main", "exited", 1)], False, id="(a) Never with records"),
        pytest.param("Never", [], True, id="Never without containers starts again"),
        pytest.param("OnFailure", [("main", "exited", 0)], False, id="(b) all done"),
        pytest.param("OnFailure", [("main", "exited", 1)], True, id="OnFailure failed"),
        pytest.param("Always", [("main", "exited", 0)], True, id="Always"),
    ],
)
def test_new_sandbox_only_for_work_left_LIFE_111(
    policy: str, records: list[tuple[str, str, int]], create: bool
) -> None:
    pod = make_pod(restartPolicy=policy)
    lost = (sandbox(0, ready=False),)
    actions = decide(pod, status(*(record(pod, *r) for r in records), sandboxes=lost))
    assert actions.kill_pod
    assert actions.create_sandbox is create
    assert bool(actions.containers_to_start) is create


def test_new_sandbox_starts_the_first_init_container_only_LIFE_111_BACK_105() -> None:
    pod = make_pod(init=(I1, I2), ephemeralContainers=EPHEMERAL)
    lost = (sandbox(0, ready=False),)
    actions = decide(pod, status(record(pod, "main", "exited"), sandboxes=lost))
    assert starts(actions) == ([], ["i1"], [])


def test_new_sandbox_leaves_succeeded_on_failure_containers_LIFE_111() -> None:
    pod = make_pod("a", "b", restartPolicy="OnFailure")
    lost = (sandbox(0, ready=False),)
    state = status(record(pod, "a", "exited", 0), record(pod, "b", "exited", 2), sandboxes=lost)
    assert starts(decide(pod, state)) == ([], [], ["b"])


# -- regular containers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "own", "state", "code", "started"),
    [
        ("Always", {}, "exited", 0, True),
        ("OnFailure", {}, "exited", 0, False),
        ("OnFailure", {}, "exited", 3, True),
        ("Never", {}, "exited", 3, False),
        ("Never", {}, "created", 0, True),
        ("Never", {}, "unknown", 0, True),
        ("Never", {"restartPolicy": "Always"}, "exited", 0, True),
        ("Always", {"restartPolicy": "Never"}, "exited", 1, False),
        ("Always", {"restartPolicy": "OnFailure"}, "exited", 0, False),
    ],
)
def test_not_running_LIFE_114_LIFE_124(
    policy: str, own: dict[str, Any], state: str, code: int, started: bool
) -> None:
    pod = make_pod({"name": "main", **own}, "other", restartPolicy=policy)
    state_now = status(record(pod, "main", state, code), record(pod, "other"))
    actions = decide(pod, state_now)
    assert ("main" in starts(actions)[2]) is started
    text = 'Container is in "unknown" state, try killing it before restart'
    kills = [(k.name, k.message) for k in actions.kills]
    assert kills == ([("main", text)] if state == "unknown" else [])


@pytest.mark.parametrize(
    ("operator", "values", "code", "started"),
    [("In", [42], 42, True), ("In", [42], 1, False), ("NotIn", [42], 1, True)],
)
def test_restart_rules_by_exit_code_LIFE_124_BACK_102(
    operator: str, values: list[int], code: int, started: bool
) -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": operator, "values": values}}
    main = {"name": "main", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    pod = make_pod(main, "other")
    actions = decide(pod, status(record(pod, "main", "exited", code), record(pod, "other")))
    assert bool(actions.containers_to_start) is started


@pytest.mark.parametrize(
    ("rules", "started"),
    [
        ([("Restart", [1]), ("Restart", [2])], True),
        ([("Restart", None), ("Restart", [2])], True),
        ([("RestartAllContainers", [2])], True),
        ([("SomethingNew", [2]), ("Restart", [2])], False),
        ([("Restart", [])], False),
    ],
)
def test_the_first_rule_that_matches_decides_LIFE_124(
    rules: list[tuple[str, list[int] | None]], started: bool
) -> None:
    made = [
        {"action": action}
        | ({"exitCodes": {"operator": "In", "values": values}} if values is not None else {})
        for action, values in rules
    ]
    main = {"name": "main", "restartPolicy": "Never", "restartPolicyRules": made}
    pod = make_pod(main, "other")
    assert restarts_after_exit(pod.spec.containers[0], pod, 2) is started


def test_rules_count_only_beside_an_own_policy_LIFE_124() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [2]}}
    pod = make_pod({"name": "main", "restartPolicyRules": [rule]}, restartPolicy="Never")
    assert not restarts_after_exit(pod.spec.containers[0], pod, 2)


def test_deleted_pod_starts_nothing_LIFE_114_BACK_101() -> None:
    pod = make_pod("a", "b", meta=DELETED)
    assert starts(decide(pod, status(record(pod, "b")))) == ([], [], [])


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_changed_definition_kills_and_restarts_under_any_policy_LIFE_115_BACK_019(
    policy: str,
) -> None:
    pod = make_pod(restartPolicy=policy)
    actions = decide(pod, status(record(pod, "main", hash="old")))
    assert [k.message for k in actions.kills] == [
        "Container main definition changed, will be restarted"
    ]
    assert starts(actions)[2] == ["main"]


@pytest.mark.parametrize("probe", ["liveness", "startup"])
@pytest.mark.parametrize(("policy", "restarts"), [("OnFailure", True), ("Never", False)])
def test_failed_probe_kills_LIFE_115_BACK_103(probe: str, policy: str, restarts: bool) -> None:
    pod = make_pod("main", "other", restartPolicy=policy)
    probes = Probes(**{probe: {"main-0": FAILURE}})
    actions = decide(pod, status(record(pod, "main"), record(pod, "other")), probes)
    suffix = ", will be restarted" if restarts else ""
    assert [k.message for k in actions.kills] == [f"Container main failed {probe} probe{suffix}"]
    assert bool(actions.containers_to_start) is restarts
    assert not actions.kill_pod


def test_nothing_kept_and_nothing_to_start_kills_the_pod_LIFE_117() -> None:
    pod = make_pod("a", "b", restartPolicy="Never")
    state = status(record(pod, "a", "exited", 0), record(pod, "b", "exited", 1))
    assert decide(pod, state).kill_pod


def test_hash_ignores_everything_but_name_and_image_LIFE_116() -> None:
    before = make_pod({"name": "main", "args": ["1"]})
    after = make_pod({"name": "main", "args": ["2"]})
    assert decide(after, status(record(before, "main"))).kills == ()


def test_ephemeral_containers_start_once_and_before_init_LIFE_112_BACK_016() -> None:
    pod = make_pod(init=(I1,), ephemeralContainers=EPHEMERAL)
    assert starts(decide(pod, status()))[:2] == (["debug"], ["i1"])
    died = record(pod, "debug", "exited", 1)
    assert starts(decide(pod, status(died)))[0] == []


# -- init containers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "init", "regular"),
    [
        pytest.param([], ["i1"], [], id="nothing yet: the first LIFE-121"),
        pytest.param([("i1", "created")], ["i1"], [], id="created: start"),
        pytest.param([("i1", "running")], [], [], id="running: wait"),
        pytest.param([("i1", "exited")], ["i2"], [], id="done: the next"),
        pytest.param([("i2", "exited")], [], ["main"], id="last done: initialized LIFE-113"),
        pytest.param([("i1", "exited"), ("i2", "running")], [], [], id="second runs"),
        pytest.param([("main", "running")], [], [], id="a regular one runs: initialized"),
        pytest.param([("main", "exited")], ["i1"], [], id="exited regular proves nothing BACK-104"),
    ],
)
def test_plain_init_order_LIFE_120(
    records: list[tuple[str, str]], init: list[str], regular: list[str]
) -> None:
    pod = make_pod(init=(I1, I2))
    actions = decide(pod, status(*(record(pod, *r) for r in records)))
    assert starts(actions) == ([], init, regular)
    assert not actions.kill_pod


@pytest.mark.parametrize(
    ("inits", "left", "state", "wanted"),
    [
        pytest.param((I1, I2), "i2", "exited", ([], [], []), id="succeeded: i1 still runs"),
        pytest.param((I1, S1), "s1", "exited", ([], [], []), id="a sidecar waits for i1"),
        pytest.param((I1, I2), "i2", "created", ([], [], []), id="never started"),
        pytest.param((I1, I2), "main", "exited", ([], [], []), id="a regular one"),
        pytest.param((I1, I2), "i2", "running", ([], [], []), id="it runs"),
    ],
)
def test_what_an_earlier_sandbox_has_left_is_no_progress_LIFE_120_BACK_105(
    inits: Any, left: str, state: str, wanted: Any
) -> None:
    pod = make_pod(init=inits)
    boxes = (sandbox(1), sandbox(0, ready=False))
    before = record(pod, left, state, sandbox_id="s0")
    runs = record(pod, "i1", "running", sandbox_id="s1", attempt=1)
    assert starts(decide(pod, status(runs, before, sandboxes=boxes))) == wanted
    done = record(pod, "i1", "exited", sandbox_id="s1", attempt=1)
    goes_on = ([], [inits[1]["name"]] if state != "running" else [], [])
    assert starts(decide(pod, status(done, before, sandboxes=boxes))) == goes_on


@pytest.mark.parametrize(
    ("policy", "code", "reason", "restart"),
    [
        ("Always", 1, "Error", True),
        ("OnFailure", 1, "Error", True),
        ("Never", 1, "Error", False),
        ("Always", 0, "OOMKilled", True),
    ],
)
def test_failed_init_restarts_or_kills_the_pod_LIFE_120_BACK_104(
    policy: str, code: int, reason: str, restart: bool
) -> None:
    pod = make_pod(init=(I1, I2), restartPolicy=policy)
    actions = decide(pod, status(record(pod, "i1", "exited", code, reason=reason)))
    assert (starts(actions)[1] == ["i1"], actions.kill_pod) == (restart, not restart)


def test_unknown_init_is_killed_first_LIFE_120() -> None:
    pod = make_pod(init=(I1,))
    actions = decide(pod, status(record(pod, "i1", "unknown")))
    assert [k.name for k in actions.kills] == ["i1"]
    assert starts(actions)[1] == ["i1"]
    text = 'Init container is in "unknown" state, try killing it before restart'
    assert [k.message for k in actions.kills] == [text]
    once = make_pod(init=(I1,), restartPolicy="Never")
    assert decide(once, status(record(pod, "i1", "unknown"))).kill_pod
    again = make_pod(init=({**I1, "restartPolicy": "OnFailure"},), restartPolicy="Never")
    assert not decide(again, status(record(pod, "i1", "unknown"))).kill_pod


def test_unknown_sidecar_is_killed_and_started_LIFE_120() -> None:
    pod = make_pod(init=(S1, I1), restartPolicy="Never")
    actions = decide(pod, status(record(pod, "s1", "unknown"), record(pod, "main")))
    assert [(k.name, k.reason) for k in actions.kills] == [("s1", KillReason.UNKNOWN_STATE)]
    assert starts(actions) == ([], ["s1"], [])


def test_of_three_init_containers_the_very_next_starts_LIFE_120() -> None:
    last = {"name": "i3"}
    pod = make_pod(init=(I1, I2, last))
    for done, wanted in (("i1", ["i2"]), ("i2", ["i3"])):
        assert starts(decide(pod, status(record(pod, done, "exited")))) == ([], wanted, [])


@pytest.mark.parametrize(
    ("probe", "result", "init", "regular"),
    [
        pytest.param(None, None, ["s2"], [], id="no probe: at once"),
        pytest.param({}, None, [], [], id="no result: wait"),
        pytest.param({}, ProbeResult.UNKNOWN, [], [], id="unknown: wait"),
        pytest.param({}, SUCCESS, ["s2"], [], id="passed: next"),
        pytest.param({}, FAILURE, ["s1"], [], id="failed: kill and start"),
    ],
)
def test_sidecar_starts_the_next_when_started_LIFE_120(
    probe: dict[str, Any] | None, result: ProbeResult | None, init: list[str], regular: list[str]
) -> None:
    first = S1 if probe is None else {**S1, "startupProbe": {"exec": {"command": ["true"]}}}
    pod = make_pod(init=(first, S2))
    probes = Probes(startup={"s1-0": result} if result else {})
    actions = decide(pod, status(record(pod, "s1")), probes)
    assert starts(actions) == ([], init, regular)
    assert bool(actions.kills) is (result is FAILURE)


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_dead_sidecar_restarts_whatever_the_policy_LIFE_120(policy: str) -> None:
    pod = make_pod(init=(S1, I1), restartPolicy=policy)
    state = status(record(pod, "s1", "exited", 0), record(pod, "main"))
    assert starts(decide(pod, state)) == ([], ["s1"], [])


def test_sidecar_without_record_starts_late_LIFE_120() -> None:
    pod = make_pod(init=(S1, S2))
    state = status(record(pod, "s1"), record(pod, "main"))
    assert starts(decide(pod, state)) == ([], ["s2"], [])


def test_liveness_and_hash_of_sidecars_LIFE_121_BACK_019() -> None:
    pod = make_pod(init=(S1, S2 | {"livenessProbe": {"exec": {"command": ["true"]}}}))
    state = status(record(pod, "s1", hash="old"), record(pod, "s2"), record(pod, "main"))
    actions = decide(pod, state, Probes(liveness={"s2-0": FAILURE}))
    assert sorted(k.message for k in actions.kills) == [
        "Init container s1 definition changed",
        "Init container s2 failed liveness probe",
    ]
    assert starts(actions) == ([], ["s1", "s2"], [])


# -- RestartAllContainers -------------------------------------------------------------------------

ALL = {
    "restartPolicy": "Never",
    "restartPolicyRules": [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    ],
}


def test_reset_takes_every_record_and_the_trigger_last_LIFE_125_BACK_110() -> None:
    pod = make_pod("a", {"name": "b", **ALL}, "c", init=({"name": "i1", **ALL}, S1))
    state = status(
        record(pod, "i1", "exited", 0),
        record(pod, "s1"),
        record(pod, "a"),
        record(pod, "b", "exited", 42, attempt=1),
        record(pod, "b", "exited", 1, attempt=0),
        record(pod, "c", "exited", 0),
    )
    actions = compute_pod_actions(pod, state, NOTHING, restarting_all=True)
    assert [r.id for r in actions.resets] == ["a-0", "b-0", "c-0", "i1-0", "s1-0", "b-1"]
    assert starts(actions) == ([], [], [])
    assert not actions.kill_pod


def test_the_condition_alone_resets_what_is_left_LIFE_110_LIFE_125() -> None:
    """A reset that was cut short goes on after the record that asked for it has gone."""
    pod = make_pod({"name": "b", **ALL}, "c")
    state = status(record(pod, "c", "exited", 0))
    actions = compute_pod_actions(pod, state, NOTHING, restarting_all=True)
    assert [r.id for r in actions.resets] == ["c-0"]
    assert starts(actions) == ([], [], [])


def test_a_reset_in_a_pod_without_sandbox_makes_one_first_LIFE_110() -> None:
    pod = make_pod({"name": "b", **ALL}, "c")
    state = status(record(pod, "c"), sandboxes=(sandbox(1, ready=False),))
    actions = compute_pod_actions(pod, state, NOTHING, restarting_all=True)
    assert (actions.kill_pod, actions.create_sandbox, actions.attempt) == (True, True, 2)
    assert [r.id for r in actions.resets] == ["c-0"]
    assert starts(actions) == ([], [], [])


def test_an_init_container_may_reset_the_pod_LIFE_125() -> None:
    pod = make_pod("a", init=({"name": "i1", **ALL}, S1))
    state = status(record(pod, "i1", "exited", 42), record(pod, "s1"))
    actions = compute_pod_actions(pod, state, NOTHING, restarting_all=True)
    assert [r.id for r in actions.resets] == ["s1-0", "i1-0"]


def test_no_reset_without_the_condition_LIFE_125() -> None:
    pod = make_pod({"name": "b", **ALL}, "c")
    now = status(record(pod, "b", "exited", 42), record(pod, "c"))
    assert decide(pod, now).resets == ()


# -- laws ----------------------------------------------------------------------------------------

states = st.sampled_from(["created", "running", "exited", "unknown", "absent"])
codes = st.sampled_from([0, 1, 137])


@given(st.lists(st.tuples(states, codes), min_size=2, max_size=4), st.booleans())
def test_never_restarts_a_completed_container(cases: list[tuple[str, int]], lost: bool) -> None:
    """Under policy Never no exited container starts again, and a pod that has records and lost
    its sandbox gets no other (LIFE-111, LIFE-124)."""
    names = [f"c{n}" for n in range(len(cases))]
    pod = make_pod(*names, restartPolicy="Never")
    records = [
        record(pod, n, s, code) for n, (s, code) in zip(names, cases, strict=True) if s != "absent"
    ]
    state = status(*records, sandboxes=(sandbox(0, ready=not lost),))
    actions = decide(pod, state)
    exited = {r.name for r in records if r.state.value == "exited"}
    assert exited.isdisjoint(c.name for c in actions.containers_to_start)
    assert not (lost and records and actions.create_sandbox)


@given(st.lists(st.tuples(states, codes), min_size=1, max_size=5))
def test_init_order_is_strict(cases: list[tuple[str, int]]) -> None:
    """Before initialization at most one plain init container starts, and none after it has ever
    been made; no regular container starts with it (LIFE-113, LIFE-120)."""
    names = [f"i{n}" for n in range(len(cases))]
    pod = make_pod(init=tuple({"name": n} for n in names))
    records = [
        record(pod, n, s, code) for n, (s, code) in zip(names, cases, strict=True) if s != "absent"
    ]
    actions = decide(pod, status(*records))
    started = [c.name for c in actions.init_to_start]
    assert len(started) <= 1
    assert not (started and actions.containers_to_start)
    if started:
        later = names[names.index(started[0]) + 1 :]
        assert all(status(*records).newest(n) is None for n in later)
