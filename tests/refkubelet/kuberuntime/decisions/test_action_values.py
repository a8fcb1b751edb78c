"""Every value that the decisions about containers give back, not only their drift."""

from __future__ import annotations

from typing import Any

import pytest
from pods import DELETED, make_pod
from runtime_doubles import Probes, record, sandbox, status

from refkubelet.cri.records import NetworkMode
from refkubelet.kuberuntime.decisions.actions import compute_pod_actions, sandbox_decision
from refkubelet.kuberuntime.decisions.backoff import restart_key
from refkubelet.kuberuntime.decisions.grace import container_grace_s, rest_after, stop_timeout_s
from refkubelet.kuberuntime.decisions.pod_actions import (
    ContainerKill,
    KillReason,
    PodActions,
    SandboxDecision,
)
from refkubelet.model.probe_results import ProbeResult

SIDE = {"name": "s", "restartPolicy": "Always"}
UNKNOWN_INIT = 'Init container is in "unknown" state, try killing it before restart'
UNKNOWN = 'Container is in "unknown" state, try killing it before restart'


def test_a_sidecar_in_an_unknown_state_is_killed_and_started_again_LIFE_120() -> None:
    pod = make_pod(init=(SIDE,))
    actions = compute_pod_actions(pod, status(record(pod, "s", "unknown")), Probes())
    wanted = ContainerKill("s-0", "s", KillReason.UNKNOWN_STATE, UNKNOWN_INIT)
    assert actions.kills == (wanted,)
    assert [c.name for c in actions.init_to_start] == ["s"]
    assert (actions.kill_pod, actions.containers_to_start) == (False, ())


@pytest.mark.parametrize(
    ("policy", "killed_pod"), [("Always", False), ("OnFailure", False), ("Never", True)]
)
def test_a_plain_init_container_in_an_unknown_state_LIFE_120(policy: str, killed_pod: bool) -> None:
    pod = make_pod(init=({"name": "i"},), restartPolicy=policy)
    actions = compute_pod_actions(pod, status(record(pod, "i", "unknown")), Probes())
    assert actions.kill_pod is killed_pod
    if not killed_pod:
        wanted = ContainerKill("i-0", "i", KillReason.UNKNOWN_STATE, UNKNOWN_INIT)
        assert actions.kills == (wanted,)
        assert [c.name for c in actions.init_to_start] == ["i"]


def test_an_init_container_that_ends_the_pod_is_killed_with_it_alone_LIFE_120() -> None:
    pod = make_pod(init=({"name": "i"},), restartPolicy="Never")
    actions = compute_pod_actions(pod, status(record(pod, "i", "unknown")), Probes())
    assert actions == PodActions(sandbox_id="s0", attempt=0, kill_pod=True)


def test_a_failed_init_container_ends_a_deleted_pod_LIFE_114_LIFE_120() -> None:
    pod = make_pod(init=({"name": "i"},), meta=DELETED)
    actions = compute_pod_actions(pod, status(record(pod, "i", "exited", 1)), Probes())
    assert actions == PodActions(sandbox_id="s0", attempt=0, kill_pod=True)


def test_a_liveness_result_without_a_probe_kills_no_sidecar_LIFE_120() -> None:
    pod = make_pod("a", init=(SIDE,))
    probes = Probes(liveness={"s-0": ProbeResult.FAILURE})
    state = status(record(pod, "s"), record(pod, "a"))
    assert compute_pod_actions(pod, state, probes) == PodActions(sandbox_id="s0", attempt=0)


def test_a_pod_killed_whole_keeps_its_lists_but_starts_no_init_container_LIFE_117() -> None:
    """What is done with them is another matter: nothing (docs/gaps.md)."""
    debug = [{"name": "debug", "image": "i"}]
    pod = make_pod("a", restartPolicy="Never", init=(SIDE,), ephemeralContainers=debug)
    state = status(record(pod, "s", hash="other"), record(pod, "a", "exited"))
    actions = compute_pod_actions(pod, state, Probes())
    assert (actions.kill_pod, actions.init_to_start) == (True, ())
    assert [c.name for c in actions.ephemeral_to_start] == ["debug"]
    assert [k.container_id for k in actions.kills] == ["s-0"]


@pytest.mark.parametrize(
    ("where", "started"), [("s0", ["second"]), ("s1", []), ("", [])], ids=["old", "same", "untold"]
)
def test_what_was_only_created_in_an_earlier_sandbox_proves_nothing_BACK_105(
    where: str, started: list[str]
) -> None:
    pod = make_pod("a", init=({"name": "first"}, {"name": "second"}))
    left = record(pod, "a", "created", sandbox_id=where)
    ended = record(pod, "first", "exited", attempt=1, sandbox_id="s1")
    state = status(left, ended, sandboxes=(sandbox(1), sandbox(0, ready=False)))
    actions = compute_pod_actions(pod, state, Probes())
    assert [c.name for c in actions.init_to_start] == started
    assert [c.name for c in actions.containers_to_start] == ([] if started else ["a"])


@pytest.mark.parametrize(("code", "again"), [(0, False), (3, True), (4, False)])
def test_a_failed_init_container_follows_its_own_rules_LIFE_124(code: int, again: bool) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}]
    pod = make_pod(
        "a", init=({"name": "i", "restartPolicy": "Never", "restartPolicyRules": rules},)
    )
    actions = compute_pod_actions(pod, status(record(pod, "i", "exited", code)), Probes())
    assert actions.kill_pod is (code == 4)
    assert [c.name for c in actions.init_to_start] == (["i"] if again else [])
    assert [c.name for c in actions.containers_to_start] == (["a"] if code == 0 else [])


def test_a_regular_container_in_an_unknown_state_LIFE_114() -> None:
    pod = make_pod("a")
    actions = compute_pod_actions(pod, status(record(pod, "a", "unknown")), Probes())
    assert actions.kills == (ContainerKill("a-0", "a", KillReason.UNKNOWN_STATE, UNKNOWN),)
    assert [c.name for c in actions.containers_to_start] == ["a"]


def test_every_unknown_container_is_killed_LIFE_114() -> None:
    pod = make_pod("a", "b")
    state = status(record(pod, "a", "unknown"), record(pod, "b", "unknown"))
    actions = compute_pod_actions(pod, state, Probes())
    assert [kill.container_id for kill in actions.kills] == ["a-0", "b-0"]
    assert [c.name for c in actions.containers_to_start] == ["a", "b"]


def test_a_rule_without_codes_matches_nothing_LIFE_124() -> None:
    codes = {"operator": "In", "values": [3]}
    rules = [{"action": "Restart"}, {"action": "Restart", "exitCodes": codes}]
    pod = make_pod({"name": "a", "restartPolicy": "Never", "restartPolicyRules": rules}, "b")
    for code, again in ((3, ["a"]), (4, [])):
        state = status(record(pod, "a", "exited", code), record(pod, "b"))
        actions = compute_pod_actions(pod, state, Probes())
        assert [c.name for c in actions.containers_to_start] == again


@pytest.mark.parametrize("kind", ["liveness", "startup"])
@pytest.mark.parametrize("state", ["running"])
def test_a_failed_sidecar_is_killed_with_its_own_words_PROBE_035(kind: str, state: str) -> None:
    pod = make_pod(init=(SIDE | {f"{kind}Probe": {"exec": {"command": ["true"]}}},))
    probes = Probes(**{kind: {"s-0": ProbeResult.FAILURE}})
    actions = compute_pod_actions(pod, status(record(pod, "s", state)), probes)
    reason = KillReason.LIVENESS if kind == "liveness" else KillReason.STARTUP
    told = f"Init container s failed {kind} probe"
    assert actions.kills == (ContainerKill("s-0", "s", reason, told),)
    assert "s" in [c.name for c in actions.init_to_start]


def test_a_changed_sidecar_is_killed_with_its_own_words_LIFE_121() -> None:
    pod = make_pod("a", init=(SIDE,))
    state = status(record(pod, "s", hash="other"), record(pod, "a"))
    actions = compute_pod_actions(pod, state, Probes())
    told = "Init container s definition changed"
    assert actions.kills == (ContainerKill("s-0", "s", KillReason.DEFINITION_CHANGED, told),)
    assert [c.name for c in actions.init_to_start] == ["s"]


@pytest.mark.parametrize(
    ("policy", "own", "suffix"),
    [
        ("Always", {}, ", will be restarted"),
        ("Never", {}, ""),
        ("Never", {"restartPolicy": "Always"}, ", will be restarted"),
        ("Always", {"restartPolicy": "Never"}, ""),
    ],
)
def test_a_container_with_a_failed_probe_LIFE_115_BACK_103(
    policy: str, own: dict[str, Any], suffix: str
) -> None:
    pod = make_pod({"name": "a"} | own, "b", restartPolicy=policy)
    probes = Probes(liveness={"a-0": ProbeResult.FAILURE})
    actions = compute_pod_actions(pod, status(record(pod, "a"), record(pod, "b")), probes)
    told = f"Container a failed liveness probe{suffix}"
    assert actions == PodActions(
        sandbox_id="s0",
        attempt=0,
        kills=(ContainerKill("a-0", "a", KillReason.LIVENESS, told),),
        containers_to_start=tuple(c for c in _containers(pod) if c.name == "a" and suffix),
    )


def test_a_healthy_pod_needs_nothing_LIFE_104() -> None:
    pod = make_pod("a", "b")
    state = status(record(pod, "a"), record(pod, "b"), sandboxes=(sandbox(2),))
    assert compute_pod_actions(pod, state, Probes()) == PodActions(sandbox_id="s2", attempt=2)


def test_a_pod_whose_work_is_done_is_killed_whole_LIFE_117() -> None:
    pod = make_pod("a", restartPolicy="Never", init=(SIDE,))
    state = status(record(pod, "s"), record(pod, "a", "exited"))
    actions = compute_pod_actions(pod, state, Probes())
    assert actions == PodActions(sandbox_id="s0", attempt=0, kill_pod=True)


def test_a_lost_sandbox_tells_its_id_and_the_next_attempt_LIFE_101() -> None:
    pod = make_pod("a")
    state = status(record(pod, "a", "exited", 1), sandboxes=(sandbox(4, ready=False),))
    assert compute_pod_actions(pod, state, Probes()) == PodActions(
        kill_pod=True,
        create_sandbox=True,
        sandbox_id="s4",
        attempt=5,
        sandbox_changed_event=True,
        containers_to_start=tuple(_containers(pod)),
    )


NODE = NetworkMode.NODE


@pytest.mark.parametrize(
    ("boxes", "host_network", "wanted"),
    [
        ((), False, SandboxDecision(create=True, attempt=0)),
        ((sandbox(2),), False, SandboxDecision(False, 2, "s2")),
        ((sandbox(2, network_mode=NODE),), True, SandboxDecision(False, 2, "s2")),
        ((sandbox(2, network_mode=NODE, ips=()),), True, SandboxDecision(False, 2, "s2")),
        ((sandbox(2, network_mode=NODE),), False, SandboxDecision(True, 3)),
        ((sandbox(2),), True, SandboxDecision(True, 3)),
        ((sandbox(2, ips=()),), False, SandboxDecision(True, 3, "s2", changed_event=True)),
        ((sandbox(2, ready=False),), False, SandboxDecision(True, 3, "s2", changed_event=True)),
        ((sandbox(1), sandbox(4)), False, SandboxDecision(True, 5, "s4", changed_event=True)),
        ((sandbox(4), sandbox(1, ready=False)), False, SandboxDecision(False, 4, "s4")),
    ],
)
def test_whether_a_sandbox_is_kept_LIFE_100_to_104(
    boxes: tuple[Any, ...], host_network: bool, wanted: SandboxDecision
) -> None:
    """LIFE-100..104."""
    pod = make_pod("a", hostNetwork=host_network)
    found = sandbox_decision(pod.spec, boxes)
    assert found == wanted
    assert found.create is wanted.create


def test_a_debug_container_starts_beside_an_unfinished_init_container_LIFE_112() -> None:
    pod = make_pod("a", init=({"name": "i"},), ephemeralContainers=[{"name": "debug"}])
    actions = compute_pod_actions(pod, status(record(pod, "i")), Probes())
    assert [c.name for c in actions.ephemeral_to_start] == ["debug"]
    ready = status(record(pod, "i", "exited"), record(pod, "a"))
    actions = compute_pod_actions(pod, ready, Probes())
    assert [c.name for c in actions.ephemeral_to_start] == ["debug"]


def _containers(pod: Any) -> list[Any]:
    return list(pod.spec.containers)


# Grace


PROBED = {
    "name": "a",
    "livenessProbe": {"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 11},
    "startupProbe": {"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 12},
}


@pytest.mark.parametrize(
    ("reason", "with_container", "wanted"),
    [
        (KillReason.LIVENESS, True, 11),
        (KillReason.STARTUP, True, 12),
        (KillReason.DEFINITION_CHANGED, True, 30),
        (KillReason.UNKNOWN_STATE, True, 30),
        (None, True, 30),
        (KillReason.LIVENESS, False, 30),
        (KillReason.STARTUP, False, 30),
    ],
)
def test_the_grace_of_a_kill_PROBE_037_LIFE_143(
    reason: KillReason | None, with_container: bool, wanted: int
) -> None:
    pod = make_pod(PROBED, terminationGracePeriodSeconds=30)
    container = _containers(pod)[0] if with_container else None
    assert container_grace_s(pod, container, reason) == wanted
    deleted = make_pod(PROBED, meta={"deletionGracePeriodSeconds": 7})
    assert container_grace_s(deleted, container, reason) == 7


@pytest.mark.parametrize("kind", ["livenessProbe", "startupProbe"])
def test_a_probe_without_its_own_grace_leaves_the_pods_PROBE_037(kind: str) -> None:
    reason = KillReason.LIVENESS if kind == "livenessProbe" else KillReason.STARTUP
    pod = make_pod({"name": "a", kind: {}}, terminationGracePeriodSeconds=9)
    assert container_grace_s(pod, _containers(pod)[0], reason) == 9
    assert container_grace_s(make_pod("a"), None, reason) == 2


@pytest.mark.parametrize(
    ("elapsed_s", "wanted"), [(0.0, 10), (0.999, 10), (1.0, 9), (1.9999999999, 8), (2.001, 8)]
)
def test_only_whole_seconds_are_taken_off_LIFE_143(elapsed_s: float, wanted: int) -> None:
    assert rest_after(10, elapsed_s) == wanted
    assert [stop_timeout_s(rest) for rest in (1, 2, 3)] == [2, 2, 3]


# Back-off keys


def test_what_a_restart_back_off_belongs_to_BACK_005() -> None:
    def key(meta: dict[str, Any] | None = None, **container: Any) -> str:
        pod = make_pod({"name": "a"} | container, meta=meta)
        return restart_key(pod, _containers(pod)[0])

    one = key()
    assert one == key()
    assert key(resources={"limits": {"cpu": "1"}}) == key(resources={"limits": {"cpu": "1"}})
    others = [
        key({"name": "other"}),
        key({"namespace": "other"}),
        key({"uid": "other"}),
        key(name="b"),
        key(image="other"),
        key(resources={"limits": {"cpu": "1"}}),
        key(resources={"limits": {"cpu": "2"}}),
    ]
    assert len({one, *others}) == len(others) + 1
