"""`--dask`: worlds and cases on a cluster of two workers, of which one is killed in between; and
what is said when it cannot be done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from kubelet_conformance.cli import main
from kubelet_conformance.cluster import client
from kubelet_conformance.cluster.likeness import Package
from kubelet_conformance.search import command, play, world_of
from kubelet_conformance.search.records import Met, read_lines

LOCAL = Path(__file__).with_name("local_cluster.py")


class LocalCluster:
    """A cluster in a process of its own."""

    def __init__(self, workers: int = 2) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(LOCAL), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.end()
            raise RuntimeError("the cluster does not start")
        self.address, self.workers = json.loads(line)

    def end(self) -> None:
        self.process.communicate("")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    started = LocalCluster()
    yield started
    started.end()


def search(cluster: LocalCluster, *words: str) -> int:
    return main(["search", "--dask", cluster.address, "--tries", "0", *words])


def after(count: int, do: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do that when so many worlds are told."""
    met, told = command._Told.met, []

    def also(self: Any, line: Met) -> None:
        met(self, line)
        told.append(line)
        if len(told) == count:
            do()

    monkeypatch.setattr(command._Told, "met", also)


def test_no_world_is_lost_or_told_twice_when_a_worker_is_killed(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "worlds.jsonl"
    after(2, lambda: os.kill(cluster.workers[0], signal.SIGKILL), monkeypatch)
    assert search(cluster, "--seeds", "1:6", "--results", str(file)) == 0
    told = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    assert sorted(line["seed"] for line in told) == list(range(1, 7))
    (third,) = (line for line in read_lines(file)[1] if line.seed == 3)
    assert third.world_s == play(world_of(3)).world_s


def test_cases_run_under_several_seeds(cluster: LocalCluster, tmp_path: Path) -> None:
    scenario, file = tmp_path / "own.yaml", tmp_path / "run.jsonl"
    scenario.write_text(world_of(3).text())
    words = ["run", "--dask", cluster.address, "--seeds", "1:2", "--results", str(file), "-q"]
    program = [sys.executable, "-m", "kubelet_conformance"]
    done = subprocess.run([*program, *words, str(scenario)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    told = [(line["id"], line["seed"]) for line in lines if line["kind"] == "case"]
    assert sorted(told) == [("world-3", 1), ("world-3", 2)]


def one_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_a_kubelet_that_a_worker_does_not_have_is_named_with_the_worker(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "worlds.jsonl"
    file.write_text("of an earlier search")
    assert search(cluster, "--kubelet", "/nowhere/kubelet", "--results", str(file)) == 2
    line = one_sentence(capsys)
    assert f"search: --dask {cluster.address}: worker tcp://" in line
    assert ": --kubelet /nowhere/kubelet: no such program" in line
    assert file.read_text() == "of an earlier search"


def test_workers_with_another_package_play_nothing(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "own_package", lambda: Package("0.9", "abc"))
    assert search(cluster, "--seeds", "1") == 2
    assert "the client 0.9 (files abc): install the same" in one_sentence(capsys)


def test_what_was_done_is_kept_when_the_cluster_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, own = tmp_path / "worlds.jsonl", LocalCluster(1)
    after(1, own.process.kill, monkeypatch)
    monkeypatch.setattr(client, "ANSWER_S", 1.0)
    assert search(own, "--seeds", "1:40", "--results", str(file)) == 2
    assert "it answers no more" in one_sentence(capsys)
    assert 1 <= len(read_lines(file)[1]) < 40
    own.process.communicate()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("nonsense", "no scheduler answers there (missing port number in address 'nonsense')"),
        ("tcp://127.0.0.1:1", "no scheduler answers there (within 0.5 s)"),
    ],
)
def test_an_address_that_nobody_answers_at_is_one_sentence(
    address: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "ANSWER_S", 0.5)
    assert main(["search", "--dask", address]) == 2
    assert one_sentence(capsys) == f"kubelet-conformance search: --dask {address}: {says}"


def test_the_extra_is_named_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["search", "--dask", "tcp://127.0.0.1:1"]) == 2
    told = capsys.readouterr().err
    assert "--dask: the library distributed is not installed" in told
    assert "pip install 'refkubelet[cluster]'" in told
