"""QoS classes of pods."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.model.objects import Pod, decode_pod
from refkubelet.model.qos import computed_qos_class, qos_class

BOTH = {"cpu": "1", "memory": "1Gi"}
ZERO = {"cpu": "0", "memory": "0"}


def container(requests: Any = None, limits: Any = None) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}


def pod(*containers: dict[str, Any], qos: str | None = None, **spec: Any) -> Pod:
    status = {"qosClass": qos} if qos else {}
    return decode_pod(
        {"metadata": {"uid": "1"}, "spec": {"containers": containers, **spec}, "status": status}
    )


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        (pod(container()), "BestEffort"),
        (pod({"name": "c"}), "BestEffort"),
        (pod(container(ZERO, ZERO)), "BestEffort"),
        (pod(container({"ephemeral-storage": "1Gi"}, {"nvidia.com/gpu": "1"})), "BestEffort"),
        (pod(container(BOTH, BOTH)), "Guaranteed"),
        (pod(container(None, BOTH)), "Guaranteed"),
        (pod(container({"cpu": "1000m"}, BOTH)), "Guaranteed"),
        (pod(container({**BOTH, "ephemeral-storage": "1Gi"}, BOTH)), "Guaranteed"),
        (pod(container(BOTH, BOTH), container(BOTH, BOTH)), "Guaranteed"),
        (pod(container(BOTH, BOTH), initContainers=[container(BOTH, BOTH)]), "Guaranteed"),
        (pod(container(BOTH, BOTH), ephemeralContainers=[container()]), "Guaranteed"),
        (pod(container({"cpu": "1"})), "Burstable"),
        (pod(container({}, {"cpu": "1"})), "Burstable"),
        (pod(container({"cpu": "500m"}, BOTH)), "Burstable"),
        (pod(container({"memory": "1"}, BOTH)), "Burstable"),
        (pod(container({"cpu": "0"}, BOTH)), "Burstable"),  # a request of 0 is one
        (pod(container(BOTH, BOTH), container()), "Burstable"),
        (pod(container(BOTH, BOTH), initContainers=[container()]), "Burstable"),
        (pod(container(), initContainers=[container({"memory": "1"})]), "Burstable"),
    ],
)
def test_containers_decide_CG_001(built: Pod, wanted: str) -> None:
    assert computed_qos_class(built) == wanted


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({}, "BestEffort"),
        ({"requests": {"hugepages-2Mi": "2Mi"}}, "BestEffort"),
        ({"requests": ZERO}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": BOTH, "requests": BOTH}, "Guaranteed"),
        ({"limits": BOTH, "requests": {**BOTH, "memory": "1Mi"}}, "Burstable"),
    ],
)
@pytest.mark.parametrize("inside", [container(), container(BOTH, BOTH), container({"cpu": "1"})])
def test_the_pod_s_own_resources_decide_alone_CG_002(
    resources: Any, wanted: str, inside: dict[str, Any]
) -> None:
    assert computed_qos_class(pod(inside, resources=resources)) == wanted


def test_a_pod_without_spec_is_besteffort_CG_001() -> None:
    assert computed_qos_class(decode_pod({"metadata": {"uid": "1"}})) == "BestEffort"


@pytest.mark.parametrize("known", ["Guaranteed", "Burstable", "BestEffort"])
def test_the_class_in_the_status_never_changes_CG_003(known: str) -> None:
    assert qos_class(pod(container({"cpu": "1"}), qos=known)) == known


def test_without_a_class_in_the_status_the_spec_decides_CG_003() -> None:
    assert qos_class(pod(container({"cpu": "1"}))) == "Burstable"
    assert qos_class(pod(container(), qos="Other")) == "BestEffort"
