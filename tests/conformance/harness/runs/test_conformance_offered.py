"""Which features a pair of kubelet and runtime offers."""

from __future__ import annotations

import os

import pytest

from conformance.harness.machines import disks
from conformance.harness.machines.disks import why_no_disk
from conformance.harness.runs.choice import Choice
from conformance.registry import Feature


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
