"""What is written to a Node that is there already."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.model.quantity import NANO
from refkubelet.node.patches import (
    adoption_patch,
    sent,
    with_devices,
    without_devices,
    without_heartbeat,
)
from refkubelet.node.status import NodeFacts, default_labels

LABELS = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": "n1",
    "kubernetes.io/os": "linux",
}
ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"
FACTS = NodeFacts(
    name="n1", internal_ip="10.0.0.1", labels=LABELS | {"zone": "a"}, attach_detach=True
)


def test_every_node_has_five_labels_NODE_003() -> None:
    assert default_labels("n1", "amd64") == LABELS


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({"labels": LABELS, "annotations": {ATTACH_DETACH: "true"}}, {}),
        ({}, {"labels": LABELS, "annotations": {ATTACH_DETACH: "true"}}),
        (
            {"labels": LABELS | {"kubernetes.io/os": "odd"}, "annotations": {ATTACH_DETACH: "no"}},
            {"labels": {"kubernetes.io/os": "linux"}, "annotations": {ATTACH_DETACH: "true"}},
        ),
        ({"labels": LABELS, "annotations": {"a": "b"}}, {"annotations": {ATTACH_DETACH: "true"}}),
    ],
)
def test_an_adopted_node_gets_what_is_wrong_or_missing_NODE_004(
    metadata: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert adoption_patch(FACTS, metadata) == wanted


def test_a_kubelet_without_attach_and_detach_leaves_the_annotation_NODE_004() -> None:
    facts = NodeFacts(name="n1", internal_ip="", labels={}, attach_detach=False)
    assert adoption_patch(facts, {}) == {}


def test_addresses_are_replaced_NODE_011() -> None:
    status = {"addresses": [{"type": "Hostname", "address": "n1"}], "phase": "x"}
    assert sent(status, {}) == {
        "addresses": [{"type": "Hostname", "address": "n1"}, {"$patch": "replace"}],
        "phase": "x",
    }


def test_devices_are_beside_what_the_machine_has_CG_084() -> None:
    facts = NodeFacts(
        name="n1",
        internal_ip="",
        labels={},
        capacity={"cpu": 4 * NANO, "example.com/gpu": 9 * NANO},
        allocatable={"cpu": 3 * NANO},
    )
    found = with_devices(facts, Amounts({"example.com/gpu": 2}, {"example.com/gpu": 1}))
    assert found.capacity == {"cpu": 4 * NANO, "example.com/gpu": 2 * NANO}
    assert found.allocatable == {"cpu": 3 * NANO, "example.com/gpu": NANO}


def test_devices_of_an_earlier_machine_count_nothing_CG_084() -> None:
    status = {
        "capacity": {"cpu": "4", "example.com/new": "1"},
        "allocatable": {"cpu": "3"},
        "phase": "x",
    }
    before = {"capacity": {"cpu": "8", "memory": "1", "example.com/old": "2"}}
    assert without_devices(status, before) == {
        "capacity": {"cpu": "4", "example.com/new": "1", "example.com/old": "0"},
        "allocatable": {"cpu": "3", "example.com/old": "0"},
        "phase": "x",
    }
    assert without_devices(status, {}) == status


def test_a_status_is_compared_without_the_time_of_its_report_NODE_010() -> None:
    rows = [{"type": "Ready", "lastHeartbeatTime": "1", "lastTransitionTime": "2"}, {"type": "x"}]
    assert without_heartbeat({"conditions": rows, "phase": "x"}) == {
        "conditions": [{"type": "Ready", "lastTransitionTime": "2"}, {"type": "x"}],
        "phase": "x",
    }
    assert without_heartbeat({"phase": "x"}) == {"conditions": [], "phase": "x"}
