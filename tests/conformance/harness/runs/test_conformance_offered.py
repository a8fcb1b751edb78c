"""Which features a pair of kubelet and runtime offers."""

from __future__ import annotations

import os

import pytest

from kubelet_conformance.harness.machines import disks
from kubelet_conformance.harness.machines.disks import why_no_disk
from kubelet_conformance.harness.machines.given import machine
from kubelet_conformance.harness.runs import offered
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.registry import Feature


def test_without_room_for_it_cases_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_no_disk() == "needs root"
    assert (
        Feature.OWN_DISK not in Choice(kubelet="refkubelet-process", runtime="fake-socket").features
    )
    assert Feature.OWN_DISK in Choice().features
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(disks.shutil, "which", lambda name: None if name == "mount" else name)
    assert why_no_disk() in ("has no mount", "has no loop devices")


def test_memory_of_the_node_is_taken_by_real_containers_and_by_the_fakes_node() -> None:
    socket = Choice(kubelet="refkubelet-process", runtime="fake-socket")
    assert Feature.MEMORY_USE not in socket.features
    assert Feature.MEMORY_USE in Choice().features


def test_a_kubelet_program_on_the_fake_has_a_machine_of_numbers_if_this_one_can_give_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "why_no_machine", lambda: "")
    monkeypatch.setattr(machine, "why_no_cgroup_v1", lambda: "none is mounted")
    found = Choice(kubelet="/usr/bin/kubelet", runtime="fake-socket").features
    assert {Feature.NODE_RESOURCES, Feature.CGROUP_V2} <= found
    assert Feature.SPLIT_DISK not in found
    others = [("/usr/bin/kubelet", "containerd"), ("refkubelet-process", "fake-socket")]
    for kubelet, runtime in others:
        assert Feature.NODE_RESOURCES not in Choice(kubelet=kubelet, runtime=runtime).features
    monkeypatch.setattr(machine, "why_no_machine", lambda: "needs root")
    found = Choice(kubelet="/usr/bin/kubelet", runtime="fake-socket").features
    assert Feature.NODE_RESOURCES not in found


def test_a_skipped_case_says_why_there_is_no_such_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "why_no_machine", lambda: "needs root")
    run = Choice(kubelet="/usr/bin/kubelet", runtime="fake-socket")
    assert run.why_no_machine([Feature.NODE_RESOURCES]) == "needs root"
    assert run.why_no_machine([Feature.SPLIT_DISK]) == ""
    assert Choice().why_no_machine([Feature.NODE_RESOURCES]) == ""


def test_cases_get_the_cgroups_that_they_ask_for() -> None:
    both, v1, v2 = {Feature.CGROUPS}, Feature.CGROUP_V1, Feature.CGROUP_V2
    assert not offered.wants_given_machine(both, 1)
    assert offered.wants_given_machine(both, None)
    assert not offered.wants_given_machine({*both, v1}, 1)
    assert offered.wants_given_machine({*both, v2}, 1)
    assert offered.wants_given_machine({v2}, 1)
    assert offered.wants_given_machine({Feature.NODE_RESOURCES}, 2)
    assert not offered.wants_given_machine({Feature.API}, 2)
