"""Whether a pod that lost its cgroup, and was stopped for it, gets a new one."""

from __future__ import annotations

from typing import Any

import pytest
from pods import container, make_pod

from refkubelet.kuberuntime.decisions.restart_policy import pod_can_restart
from refkubelet.model.objects import Pod

IN_ONE = {"exitCodes": {"operator": "In", "values": [1]}}


@pytest.mark.parametrize(
    ("policy", "containers", "may"),
    [
        ("Always", [container()], True),
        (None, [container()], True),
        ("OnFailure", [container()], True),
        ("Never", [container()], False),
        ("Always", [container(restartPolicy="Never")], True),  # the pod's policy is asked first
        ("Never", [container(restartPolicy="Always")], True),
        ("Never", [container(restartPolicy="OnFailure")], True),
        ("Never", [container(restartPolicy="Never")], False),
        ("Never", [container(), container(restartPolicy="Always")], True),
        (
            "Never",
            [
                container(
                    restartPolicy="Never", restartPolicyRules=[{"action": "Restart", **IN_ONE}]
                )
            ],
            True,
        ),
        (
            "Never",
            [
                container(
                    restartPolicy="Never",
                    restartPolicyRules=[{"action": "RestartAllContainers", **IN_ONE}],
                )
            ],
            False,
        ),
        ("Never", [container(restartPolicyRules=[{"action": "Restart", **IN_ONE}])], False),
        ("Never", [], False),
    ],
)
def test_a_pod_that_could_run_again_CG_041(
    policy: str | None, containers: list[dict[str, Any]], may: bool
) -> None:
    assert pod_can_restart(make_pod(containers=containers, restartPolicy=policy)) == may


def test_a_pod_without_spec_could_run_again_CG_041() -> None:
    assert pod_can_restart(Pod())
