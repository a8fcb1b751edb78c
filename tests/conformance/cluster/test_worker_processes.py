"""Processes of a worker: each task has one to itself, and what goes wrong in it is told."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kubelet_conformance.cluster import worker
from kubelet_conformance.cluster.likeness import Package, own_package
from kubelet_conformance.cluster.worker import ClusterProblem, TaskLost, do, leave
from kubelet_conformance.harness.runs.choice import Choice


@pytest.fixture(autouse=True)
def _left() -> Iterator[None]:
    yield
    leave()
    assert not any(worker._IDLE.values())


def test_tasks_follow_each_other_in_a_process_that_is_not_this_one() -> None:
    first = do(own_package(), None, os.getpid)
    assert first != os.getpid()
    assert do(own_package(), None, os.getpid) == first
    assert do(own_package(), os.getppid, os.getpid) != first  # it has begun otherwise


def test_what_a_task_raises_is_told_and_a_kubelet_that_cannot_be_used_in_a_sentence() -> None:
    with pytest.raises(RuntimeError, match="No such file or directory: '/nowhere'"):
        do(own_package(), None, os.listdir, "/nowhere")
    with pytest.raises(ClusterProblem, match="--kubelet /nowhere: no such program"):
        do(own_package(), None, Choice(kubelet="/nowhere").check)


def test_a_process_that_ends_loses_its_task_alone() -> None:
    with pytest.raises(TaskLost, match="the process that did it has ended, with 3"):
        do(own_package(), None, os._exit, 3)
    assert do(own_package(), None, os.getpid) != os.getpid()


def test_another_package_than_the_clients_does_nothing() -> None:
    with pytest.raises(ClusterProblem) as told:
        do(Package("0.9", "abcdef0123"), None, os._exit, 3)
    (line,) = str(told.value).splitlines()
    assert f"it has refkubelet {own_package()}, the client 0.9 (files abcdef01)" in line
