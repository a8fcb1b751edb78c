"""Kubelets side by side, of one run or of several, never get the same port."""

import socket
from contextlib import closing

import pytest

from kubelet_conformance.harness.kubelets import ports
from kubelet_conformance.harness.kubelets.ports import Ports


@pytest.fixture(autouse=True)
def ports_of_these_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take other ports than suites and tests that run at the same time."""
    monkeypatch.setattr(ports, "FIRST", ports.FIRST + ports.BLOCK * ports.BLOCKS)
    monkeypatch.setattr(ports, "BLOCKS", 8)


def test_two_runs_at_once_get_different_ports_however_many_they_take() -> None:
    with closing(Ports()) as one, closing(Ports()) as other:
        taken = [run.take(3) for _ in range(2 * ports.BLOCK // 3) for run in (one, other)]

    each = [port for three in taken for port in three]
    assert len(set(each)) == len(each)


def test_a_port_in_use_is_passed_over() -> None:
    with closing(Ports()) as run:
        port = run.take(2)[1]
    with socket.socket() as taken:
        taken.bind((ports.HOST, port))
        with closing(Ports()) as run:
            assert port not in run.take(2)


def test_running_out_of_ports_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "BLOCKS", 1)
    with closing(Ports()) as run, pytest.raises(RuntimeError, match="no 300 free ports"):
        run.take(300)


def test_a_run_that_has_ended_leaves_its_ports_to_the_next() -> None:
    run = Ports()
    before = run.take(2)
    run.close()
    with closing(Ports()) as other:
        assert set(before) & set(other.take(ports.BLOCK))
