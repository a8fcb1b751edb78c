"""QoS classes of pods."""

from __future__ import annotations

from typing import Any

import pytest
from pods import container, make_pod

from refkubelet.model.objects import Pod
from refkubelet.model.qos import computed_qos_class, qos_class

BOTH = {"cpu": "1", "memory": "1Gi"}
ZERO = {"cpu": "0", "memory": "0"}
SURE = container(cpu="1/1", memory="1Gi/1Gi")


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        (make_pod(container()), "BestEffort"),
        (make_pod(container(resources={})), "BestEffort"),
        (make_pod(container(requests=ZERO, limits=ZERO)), "BestEffort"),
        (
            make_pod(
                container(requests={"ephemeral-storage": "1Gi"}, limits={"nvidia.com/gpu": "1"})
            ),
            "BestEffort",
        ),
        (make_pod(SURE), "Guaranteed"),
        (make_pod(container(cpu="/1", memory="/1Gi")), "Guaranteed"),
        (make_pod(container(cpu="1000m/1", memory="/1Gi")), "Guaranteed"),
        (make_pod(container(cpu="1/1", memory="1Gi/1Gi", storage="1Gi")), "Guaranteed"),
        (make_pod(SURE, SURE), "Guaranteed"),
        (make_pod(SURE, init=[SURE]), "Guaranteed"),
        (make_pod(SURE, ephemeralContainers=[container()]), "Guaranteed"),
        (make_pod(container(cpu="1")), "Burstable"),
        (make_pod(container(cpu="/1")), "Burstable"),
        (make_pod(container(cpu="500m/1", memory="/1Gi")), "Burstable"),
        (make_pod(container(cpu="/1", memory="1/1Gi")), "Burstable"),
        (make_pod(container(cpu="0/1", memory="/1Gi")), "Burstable"),  # a request of 0 is one
        (make_pod(SURE, container()), "Burstable"),
        (make_pod(SURE, init=[container()]), "Burstable"),
        (make_pod(container(), init=[container(memory="1")]), "Burstable"),
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
@pytest.mark.parametrize("inside", [container(), SURE, container(cpu="1")])
def test_the_pod_s_own_resources_decide_alone_CG_002(
    resources: Any, wanted: str, inside: dict[str, Any]
) -> None:
    assert computed_qos_class(make_pod(inside, resources=resources)) == wanted


def test_a_pod_without_spec_is_besteffort_CG_001() -> None:
    assert computed_qos_class(Pod()) == "BestEffort"


@pytest.mark.parametrize("known", ["Guaranteed", "Burstable", "BestEffort"])
def test_the_class_in_the_status_never_changes_CG_003(known: str) -> None:
    """CG-003.1, CG-003.2."""
    assert qos_class(make_pod(container(cpu="1"), status={"qosClass": known})) == known


def test_without_a_class_in_the_status_the_spec_decides_CG_003() -> None:
    assert qos_class(make_pod(container(cpu="1"))) == "Burstable"
    assert qos_class(make_pod(container(), status={"qosClass": "Other"})) == "BestEffort"
