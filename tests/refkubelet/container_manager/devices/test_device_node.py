"""Devices on the Node object (CG-084)."""

from __future__ import annotations

from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.model.quantity import NANO
from refkubelet.node.patches import with_devices, without_devices
from refkubelet.node.status import NodeFacts, node_status

FACTS = NodeFacts("n", capacity={"cpu": 2 * NANO}, allocatable={"cpu": NANO})


def test_capacity_counts_all_devices_and_allocatable_the_healthy_ones_CG_084() -> None:
    status = node_status(with_devices(FACTS, Amounts({"v/gpu": 3}, {"v/gpu": 2})), [])
    assert status["capacity"] == {"cpu": "2", "v/gpu": "3"}
    assert status["allocatable"] == {"cpu": "1", "v/gpu": "2"}


def test_a_node_without_devices_is_shown_as_it_is() -> None:
    assert with_devices(FACTS, Amounts({}, {})) == FACTS


def test_what_a_node_of_that_name_had_before_is_0_until_plugins_come_CG_084() -> None:
    status = node_status(with_devices(FACTS, Amounts({"v/new": 1}, {"v/new": 1})), [])
    before = {"capacity": {"cpu": "64", "v/gpu": "8", "v/new": "9", "hugepages-2Mi": "0"}}
    shown = without_devices(status, before)
    assert shown["capacity"] == {"cpu": "2", "v/gpu": "0", "v/new": "1"}
    assert shown["allocatable"] == {"cpu": "1", "v/gpu": "0", "v/new": "1"}
    assert without_devices(status, {}) == status
