"""`kubelet-conformance search`: what it plays, writes down, goes on with, and says of mistakes."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from kubelet_conformance.cli import main
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem
from kubelet_conformance.registry import Case
from kubelet_conformance.search import playing, tasks
from kubelet_conformance.search.drawing import world_of
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.records import Head, Met, line_of, read_lines
from refkubelet.status.manager import StatusManager

ONE = ("--jobs", "1", "--tries", "0")


def search(*words: str) -> int:
    return main(["search", *words])


def test_worlds_are_played_once_and_what_is_missing_is_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "worlds.jsonl"
    assert search("--seeds", "1:3", "--results", str(file), *ONE) == 0
    told = capsys.readouterr().out
    head, lines = read_lines(file)
    assert isinstance(head, Head)
    assert sorted(line.seed for line in lines) == [1, 2, 3]
    assert all(line.verdict == "holds" and line.world_s > 600 for line in lines)
    assert all(0.05 < line.cpu_s < 60 for line in lines)
    assert re.search(r"^3 worlds in \d+ s \(0\.\d h of theirs, 0\.00 CPU hours\)$", told, re.M)
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])  # as if it had been stopped while it wrote
    assert search("--seeds", "1:4", "--resume", str(file), *ONE) == 0
    _, again = read_lines(file)
    assert sorted(line.seed for line in again) == [1, 2, 3, 4]
    assert file.read_bytes().startswith(whole[: whole[:-20].rfind(b"\n") + 1])


def test_the_parts_of_a_search_have_each_world_once(tmp_path: Path) -> None:
    seeds = []
    for part in ("1/2", "2/2"):
        file = tmp_path / part.replace("/", "-")
        assert search("--seeds", "3:5", "--shard", part, "--results", str(file), *ONE) == 0
        seeds += [line.seed for line in read_lines(file)[1]]
    assert sorted(seeds) == [3, 4, 5]


def test_a_broken_law_is_told_and_becomes_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(StatusManager, "terminate_pod", lambda self, pod: None)
    words = ("--seeds", "3", "--found", str(tmp_path / "found"), "--jobs", "1", "--tries", "15")
    assert search(*words) == 1
    told = capsys.readouterr().out
    assert "law nothing-left" in told
    (file,) = (tmp_path / "found").glob("nothing-left-*.yaml")
    assert f"{file}: law nothing-left, broken in 10 of 10 plays" in told
    assert "calm: 600" in file.read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--seeds", "x"), "--seeds x: wanted seeds"),
        (("--seeds", "9:1"), "--seeds 9:1: wanted seeds"),
        (("--shard", "3/2"), "--shard 3/2: wanted one such as 2/8"),
        (("--jobs", "0"), "--jobs 0: wanted 1 or more"),
        (("--kubelet", "/nowhere/kubelet"), "--kubelet /nowhere/kubelet: no such program"),
        (("--resume", "/nowhere/file"), "--resume /nowhere/file: No such file"),
        (("--results", "/nowhere/file"), "--results /nowhere/file: No such file"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(*words) == 2
    told = capsys.readouterr().err.strip()
    assert says in told
    assert len(told.splitlines()) == 1


def test_a_kubelet_that_does_not_start_is_one_sentence_and_ends_nothing_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def require(choice: Choice) -> None:
        raise EnvironmentProblem("--kubelet /k: wanted a kubelet that runs\nUsage:\n no such flag")

    monkeypatch.setattr(tasks, "require_warped_kubelet", require)
    monkeypatch.setattr(Choice, "check", lambda choice: None)
    file = tmp_path / "worlds.jsonl"
    file.write_text("of an earlier search")
    assert search("--kubelet", "/k", "--results", str(file)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.endswith("search: --kubelet /k: wanted a kubelet that runs (no such flag)")
    assert file.read_text() == "of an earlier search"


def test_only_the_laws_that_are_asked_for_fail_a_world(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(StatusManager, "terminate_pod", lambda self, pod: None)
    assert search("--seeds", "3", "--law", "one-running", *ONE) == 0
    assert search("--seeds", "3", "--law", "one-running", "--law", "nothing-left", *ONE) == 1
    assert "law nothing-left: broken in 1 worlds" in capsys.readouterr().out


def test_what_ends_a_world_is_told_when_other_laws_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(case: Case, choice: Choice, **_: object) -> Result:
        return Result(case, Outcome.FAILED, "expected: a running kubelet\nseen:     it has ended")

    monkeypatch.setattr(playing, "run_virtual_case", ends)
    assert search("--seeds", "3", "--law", "one-running", *ONE) == 0
    assert "law kubelet-lives, not asked for: broken in 1 worlds" in capsys.readouterr().out
    assert search("--seeds", "3", *ONE) == 1


def test_results_of_something_else_are_not_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"kind": "run"}\n')
    assert search("--resume", str(other)) == 2
    assert "other.jsonl:1: no line of a search" in capsys.readouterr().err
    assert search("--seeds", "1", "--results", str(other), *ONE) == 0
    assert search("--size", "large", "--resume", str(other)) == 2
    assert "worlds of size small on refkubelet" in capsys.readouterr().err
    assert search("--law", "one-running", "--resume", str(other)) == 2
    assert "worlds of size small on refkubelet" in capsys.readouterr().err


def test_a_world_is_shown_without_playing_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert search("--show", "7") == 0
    assert capsys.readouterr().out == world_of(7).text()


def test_a_world_that_cannot_be_played_is_an_error_of_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def play(*_: object, **__: object) -> None:
        raise RuntimeError("no kubelet at all")

    monkeypatch.setattr(tasks, "play", play)
    met = tasks.meet(1, "small", Choice())
    assert isinstance(met, Met)
    assert met.verdict == "error"
    assert "no kubelet at all" in met.error


def test_worlds_of_a_process_that_ended_are_played_by_the_next_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, play = tmp_path / "worlds.jsonl", tasks.play

    def end_at_two(world: World, *arguments: object, **named: object) -> object:
        if world.seed == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return play(world, *arguments, **named)  # type: ignore[arg-type]  # as they came

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "play", end_at_two)
        assert search("--seeds", "1:3", "--results", str(file), *ONE) == 1
    assert "a process has ended: go on with --resume" in capsys.readouterr().err
    assert search("--seeds", "1:3", "--resume", str(file), *ONE) == 0
    lines = [line for line in file.read_text().splitlines() if '"kind":"world"' in line]
    assert sorted(line.seed for line in read_lines(file)[1]) == [1, 2, 3]
    assert len(lines) == 3


def test_worlds_that_could_not_be_played_are_played_again(tmp_path: Path) -> None:
    file = tmp_path / "worlds.jsonl"
    head = Head(suite="x", kubelet="refkubelet", size="small", began="then")
    failed = Met(seed=1, kinds=(), verdict="error", error="no memory")
    file.write_bytes(line_of(head) + line_of(failed))
    assert search("--seeds", "1", "--resume", str(file), *ONE) == 0
    (line,) = read_lines(file)[1]
    assert line.verdict == "holds"
