"""Switched-off feature gates: what is left of a pod (LIFE-124, LIFE-125)."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.kuberuntime.decisions.restart_policy import restarts_after_exit
from refkubelet.model.gates import gated_fields
from refkubelet.model.objects import Container, Pod, decode_pod

REFUSED = {"RestartAllContainersOnContainerExits": False}
ALL_OFF = REFUSED | {"NodeDeclaredFeatures": False}
RULES_OFF = {"ContainerRestartRules": False}


def rule(action: str, code: int) -> dict[str, Any]:
    return {"action": action, "exitCodes": {"operator": "In", "values": [code]}}


RULES = [rule("Restart", 1), rule("RestartAllContainers", 2), rule("Restart", 2)]


def pod() -> Pod:
    own = {"restartPolicy": "Never", "restartPolicyRules": RULES}
    return decode_pod(
        {
            "metadata": {"name": "p"},
            "spec": {
                "restartPolicy": "OnFailure",
                "containers": [{"name": "main", **own}, {"name": "plain"}],
                "initContainers": [
                    {"name": "setup", **own},
                    {"name": "side", "restartPolicy": "Always"},
                ],
            },
        }
    )


def containers(made: Pod) -> dict[str, Container]:
    assert made.spec is not None
    return {c.name: c for c in (*made.spec.containers, *(made.spec.initContainers or ()))}


@pytest.mark.parametrize("gates", [{}, {"EventedPLEG": True}, {"ContainerRestartRules": True}])
def test_gates_that_are_on_change_nothing_LIFE_124(gates: dict[str, bool]) -> None:
    given = pod()
    assert gated_fields(gates)(given) is given


def test_without_restart_rules_the_pods_policy_counts_LIFE_124() -> None:
    made = gated_fields(RULES_OFF)(pod())
    found = containers(made)
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
    made = gated_fields(ALL_OFF)(pod())
    for name in ("main", "setup"):
        container = containers(made)[name]
        assert restarts_after_exit(container, made, code) is restarts
        actions = [r.action for r in container.restartPolicyRules or ()]
        assert actions == ["Restart", "", "Restart"]


def test_pods_that_admission_refuses_stay_as_they_are_LIFE_228() -> None:
    given = pod()
    assert gated_fields(REFUSED)(given) is given
    other = decode_pod({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}]}})
    assert gated_fields(REFUSED | RULES_OFF)(other) is not other
