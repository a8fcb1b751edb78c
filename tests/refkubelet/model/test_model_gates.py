"""Switched-off feature gates: what is left of a pod (LIFE-124, LIFE-125)."""

from __future__ import annotations

from typing import Any

import pytest
from pods import container, make_pod, sidecar

from refkubelet.kuberuntime.decisions.restart_policy import restarts_after_exit
from refkubelet.model.gates import gated_fields
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers

REFUSED = {"RestartAllContainersOnContainerExits": False}
ALL_OFF = REFUSED | {"NodeDeclaredFeatures": False}
RULES_OFF = {"ContainerRestartRules": False}


def rule(action: str, code: int) -> dict[str, Any]:
    return {"action": action, "exitCodes": {"operator": "In", "values": [code]}}


RULES = [rule("Restart", 1), rule("RestartAllContainers", 2), rule("Restart", 2)]


def web() -> Pod:
    own = {"restartPolicy": "Never", "restartPolicyRules": RULES}
    return make_pod(
        container(**own),
        "plain",
        init=[container("setup", **own), sidecar()],
        restartPolicy="OnFailure",
    )


def by_name(pod: Pod) -> dict[str, Container]:
    return {c.name: c for c in containers(pod)}


@pytest.mark.parametrize("gates", [{}, {"EventedPLEG": True}, {"ContainerRestartRules": True}])
def test_gates_that_are_on_change_nothing_LIFE_124(gates: dict[str, bool]) -> None:
    given = web()
    assert gated_fields(gates)(given) is given


def test_without_restart_rules_the_pods_policy_counts_LIFE_124() -> None:
    made = gated_fields(RULES_OFF)(web())
    found = by_name(made)
    for name in ("main", "plain", "setup"):
        assert (found[name].restartPolicy, found[name].restartPolicyRules) == (None, None)
        assert restarts_after_exit(found[name], made, 5)
        assert not restarts_after_exit(found[name], made, 0)
    assert found["side"].restartPolicy == "Always"


@pytest.mark.parametrize(("code", "restarts"), [(1, True), (2, False), (3, False)])
def test_without_restart_all_its_rules_leave_it_to_the_policy_LIFE_125(
    code: int, restarts: bool
) -> None:
    """Also where a later rule would match: the first that matches is the one."""
    made = gated_fields(ALL_OFF)(web())
    for name in ("main", "setup"):
        main = by_name(made)[name]
        assert restarts_after_exit(main, made, code) is restarts
        actions = [r.action for r in main.restartPolicyRules or ()]
        assert actions == ["Restart", "", "Restart"]


def test_pods_that_admission_refuses_stay_as_they_are_LIFE_228() -> None:
    given = web()
    assert gated_fields(REFUSED)(given) is given
    other = make_pod()
    assert gated_fields(REFUSED | RULES_OFF)(other) is not other
