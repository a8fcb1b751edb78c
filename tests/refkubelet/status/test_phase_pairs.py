"""The phase over every pair of container states (LIFE-160..166)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
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

from refkubelet.model.objects import ContainerStatus
from refkubelet.model.pod import (
    is_terminal_phase,
)
from refkubelet.status.phase import (
    pod_phase,
)

EMPTY: dict[str, Any] = {"state": {}}
STATES = {
    "running": RUNNING,
    "unstarted": UNSTARTED,
    "ok": OK,
    "bad": BAD,
    "new": NEW,
    "backoff": BACKOFF,
    "backoff ok": BACKOFF_OK,
    "empty": EMPTY,
    "none": None,
}


def statuses(**told: Mapping[str, Any] | None) -> list[ContainerStatus]:
    return statuses_in(status_of(**told))


def expected(policy: str, first: str, second: str, *, sidecar: bool, terminal: bool) -> str:
    """LIFE-160..165 said another way, for a pod of two regular containers, or one and a sidecar."""
    pair = (first, second)
    alive = ("running", "unstarted")
    if "new" in pair:
        return "Pending"
    unknown = ("empty", "none")
    if any(state in unknown for state in pair):
        return "Pending"
    if any(state in alive for state in pair):
        return "Running"
    ended = (second,) if sidecar else pair
    if not terminal and any(_again(policy, state) for state in ended):
        return "Running"
    return "Succeeded" if all(state == "ok" for state in ended) else "Failed"


def _again(policy: str, state: str) -> bool:
    failed = state in ("bad", "backoff")
    return policy == "Always" or (policy == "OnFailure" and failed)


def test_a_pod_that_may_go_on_is_not_over_unless_said_so_LIFE_164() -> None:
    told = statuses(b=BAD)
    assert pod_phase(pod_of("b"), told) == "Running"
    assert pod_phase(pod_of("b"), told, pod_is_terminal=True) == "Failed"


def test_which_phases_are_terminal_LIFE_166() -> None:
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown", None)
    assert [phase for phase in phases if is_terminal_phase(phase)] == ["Succeeded", "Failed"]


@pytest.mark.parametrize("sidecar", [False, True])
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_the_phase_of_every_pair_of_states_LIFE_160_to_165(
    policy: str, terminal: bool, sidecar: bool
) -> None:
    """LIFE-161..165."""
    names = ("s", "b") if sidecar else ("a", "b")
    for first, second in product(STATES, repeat=2):
        told = {names[0]: STATES[first], names[1]: STATES[second]}
        found = pod_phase(pod_of(*names, policy=policy), statuses(**told), pod_is_terminal=terminal)
        wanted = expected(policy, first, second, sidecar=sidecar, terminal=terminal)
        assert found == wanted, (first, second)


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("running", "Running"),
        ("ok", "Failed"),
        ("unstarted", "Pending"),
        ("new", "Pending"),
        ("empty", "Pending"),
        ("none", "Pending"),
        ("backoff", "Failed"),
    ],
)
def test_a_sidecar_that_has_not_started_holds_the_pod_back_LIFE_161(
    state: str, wanted: str
) -> None:
    """Only as long as no regular container was created in this sandbox."""
    told = statuses(s=STATES[state], b=BAD)
    found = pod_phase(pod_of("s", "b", policy="Never"), told, has_regular_record=False)
    assert found == wanted


def test_one_sidecar_of_two_that_has_not_started_is_enough_LIFE_161() -> None:
    for first, second in ((RUNNING, UNSTARTED), (UNSTARTED, RUNNING)):
        told = statuses(s1=first, s2=second, b=BAD)
        assert pod_phase(pod_of("s1", "s2", "b"), told, has_regular_record=False) == "Pending"
        assert pod_phase(pod_of("s1", "s2", "b"), told) == "Running"


@pytest.mark.parametrize(
    ("policy", "state", "wanted"),
    [
        ("Never", "bad", "Failed"),
        ("Never", "backoff", "Failed"),
        ("Never", "ok", "Running"),
        ("Never", "backoff ok", "Running"),
        ("OnFailure", "bad", "Running"),
        ("Always", "bad", "Running"),
        ("Never", "running", "Pending"),
        ("Never", "new", "Pending"),
        ("Never", "empty", "Pending"),
        ("Never", "none", "Pending"),
    ],
)
def test_a_plain_init_container_beside_a_running_one_LIFE_160_LIFE_161(
    policy: str, state: str, wanted: str
) -> None:
    told = statuses(i=STATES[state], b=RUNNING)
    assert pod_phase(pod_of("i", "b", policy=policy), told) == wanted
