"""Devices on the Node object (CG-084)."""

from __future__ import annotations

from kubeobjects.quantity import NANO
from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.node.patches import adopted_node
from refkubelet.node.status import NodeFacts
from refkubelet.node.updated import NodeReport, updated_status

FACTS = NodeFacts("n", capacity={"cpu": 2 * NANO}, allocatable={"cpu": NANO})


def test_capacity_counts_all_devices_and_allocatable_the_healthy_ones_CG_084() -> None:
    report = NodeReport(FACTS, "t1", devices=Amounts({"v/gpu": 3}, {"v/gpu": 2}))
    status = updated_status(None, report)
    assert status["capacity"] == {"cpu": "2", "v/gpu": "3"}
    assert status["allocatable"] == {"cpu": "1", "v/gpu": "2"}


def test_a_resource_that_was_dropped_is_shown_as_0_CG_084() -> None:
    before = {"capacity": {"v/gpu": "3"}, "allocatable": {"v/gpu": "2"}}
    report = NodeReport(FACTS, "t1", devices=Amounts({"v/gpu": 0}, {"v/gpu": 0}))
    status = updated_status(before, report)
    assert (status["capacity"]["v/gpu"], status["allocatable"]["v/gpu"]) == ("0", "0")


def test_what_a_node_of_that_name_had_before_is_0_until_plugins_come_CG_084() -> None:
    before = {"capacity": {"cpu": "64", "v/gpu": "8", "v/new": "9"}}
    report = NodeReport(FACTS, "t1", devices=Amounts({"v/new": 1}, {"v/new": 1}))
    initial = {"status": updated_status(None, report)}
    adopted = adopted_node({"status": before}, initial, devices_are_lost=True)["status"]
    assert adopted["capacity"] == {"cpu": "64", "v/gpu": "0", "v/new": "0"}
    shown = updated_status(adopted, report)
    assert shown["capacity"] == {"cpu": "2", "v/gpu": "0", "v/new": "1"}
    assert shown["allocatable"] == {"cpu": "1", "v/gpu": "0", "v/new": "1"}


def test_a_machine_that_knows_its_devices_leaves_those_of_others_CG_084() -> None:
    before = {"capacity": {"v/gpu": "8"}, "allocatable": {"v/gpu": "7"}}
    adopted = adopted_node({"status": before}, {}, devices_are_lost=False)
    assert adopted["status"] == before
