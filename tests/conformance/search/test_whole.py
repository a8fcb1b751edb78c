"""Small worlds whole: every fault and a kill at every call, pairs of them, and the command."""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import pytest

from kubelet_conformance.cli import main
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.search import play
from kubelet_conformance.search import whole_options as whole
from kubelet_conformance.search.campaign import Summary
from kubelet_conformance.search.records import Met, SearchError, read_lines
from kubelet_conformance.search.sources import world_of
from kubelet_conformance.search.tasks import meet
from kubelet_conformance.search.whole import whole_world as worlds
from kubelet_conformance.search.whole.bases import BASES
from kubelet_conformance.search.whole.points import (
    CHANGING,
    LOOKING,
    count_of_pairs,
    pair_of,
    points_of,
)
from kubelet_conformance.search.whole.whole_world import CannotCount, WholeWorld, whole_world
from refkubelet.pod_workers.workers import PodWorkers

METHODS = ("RunPodSandbox", "ListContainers", "StartContainer", "StartContainer", "PullImage")
SMALL = WholeWorld("small", {**BASES["two"]}, tuple(points_of(METHODS)))


def number_of(world: WholeWorld, word: str, nth: int = 1) -> int:
    """The number of the world in which that is done to the n-th call."""
    wanted = (word, nth)
    return 1 + [(point.word, point.nth) for point in world.points].index(wanted)


def test_each_call_meets_all_that_can_be_done_to_it() -> None:
    points = points_of(METHODS)
    done = {
        place: [point.kind for point in points if point.place == place]
        for place in range(len(METHODS))
    }
    assert done[0] == done[3] == list(CHANGING)
    assert done[1] == list(LOOKING)
    assert done[4] == [kind for kind in CHANGING if kind != "half"]  # it has no middle
    assert {(point.place, point.nth) for point in points if point.method == "StartContainer"} == {
        (2, 1),
        (3, 2),
    }
    assert set(LOOKING) <= CHANGING.keys()


def test_calls_to_a_driver_meet_what_can_be_done_to_them() -> None:
    points = points_of(("NodeStageVolume", "GetPluginInfo"))
    assert [point.kind for point in points if point.place == 0] == [
        kind for kind in CHANGING if kind != "half"
    ]
    assert [point.kind for point in points if point.place == 1] == list(LOOKING)
    where = {"on": "NodeStageVolume", "nth": 1, "maybe": True, "driver": "disks.example"}
    steps = {point.kind: point.step("x") for point in points if point.place == 0}
    assert steps["lost"] == {"csi_fault": {**where, "loses_answer": {"times": 1}, "label": "x"}}
    assert steps["killed after"] == {"dies_at": {**where, "answered": True}}
    world = whole_world("volume")
    words = {point.word for point in world.points}
    assert {"failing NodeStageVolume", "lost NodeUnpublishVolume"} <= words
    number = 1 + [point.word for point in world.points].index("lost NodeStageVolume")
    assert meet(number, "whole volume", Choice()).struck == ("lost NodeStageVolume",)


@pytest.mark.parametrize("points", [2, 3, 10, 41])
def test_each_pair_has_a_number(points: int) -> None:
    count = count_of_pairs(points)
    assert {pair_of(number, points) for number in range(count)} == set(
        combinations(range(points), 2)
    )


def test_the_worlds_of_a_small_one_have_numbers() -> None:
    points = len(SMALL.points)
    assert SMALL.points_at(0) == ()
    assert [SMALL.points_at(number) for number in range(1, points + 1)] == [
        (point,) for point in SMALL.points
    ]
    pairs = {SMALL.points_at(points + 1 + number) for number in range(SMALL.pairs)}
    assert len(pairs) == SMALL.pairs == points * (points - 1) // 2
    assert SMALL.world(0).kinds == ("undisturbed",)
    one = SMALL.world(1)
    assert one.name == "whole-small-1"
    assert one.kinds == ("failing RunPodSandbox",)
    (first, *rest) = one.document["steps"]
    assert first["fault"]["on"] == "RunPodSandbox"
    assert rest == BASES["two"]["steps"]
    both = SMALL.world(points + 1)
    assert len(both.document["steps"]) == 2 + len(BASES["two"]["steps"])
    for number in range(points + SMALL.pairs + 1):
        SMALL.world(number).case()  # it is a scenario


@pytest.mark.parametrize("name", BASES)
def test_each_small_world_holds_undisturbed(name: str) -> None:
    world = whole_world(name)
    assert len(world.points) > 200
    assert {"killed before StartContainer", "half RunPodSandbox", "slow ListContainers"} <= {
        point.word for point in world.points
    }
    assert world_of(7, f"whole {name}") == world.world(7)


@pytest.mark.parametrize(
    "word",
    [
        *("failing CreateContainer", "lost StartContainer", "half RunPodSandbox"),
        *("killed before StartContainer", "killed after StartContainer", "hanging ListPodSandbox"),
    ],
)
def test_refkubelet_goes_on(word: str) -> None:
    world = whole_world("two")
    verdict = play(world.world(number_of(world, word)))
    assert (verdict.breaches, verdict.error) == ((), "")


def test_a_wrong_kubelet_is_found_at_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose sync is not tried again when it has failed."""
    world = whole_world("two")
    monkeypatch.setattr(PodWorkers, "_requeue", lambda *_: None)
    assert "wanted-pods-go-on" in play(world.world(number_of(world, "failing RunPodSandbox"))).laws
    assert not play(world.world(number_of(world, "failing ImageFsInfo"))).laws


def test_a_world_that_does_not_hold_undisturbed_has_no_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = {"steps": [{"create": "web"}, {"wait": {"pod": {"name": "web", "phase": "Failed"}}}]}
    monkeypatch.setitem(worlds.BASES, "wrong", {**BASES["two"], **wanted})  # type: ignore[arg-type]
    with pytest.raises(CannotCount, match="the world wrong does not hold"):
        whole_world("wrong")
    assert main(["search", "--whole", "wrong"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("kubelet-conformance search: --whole wrong: the world wrong does not")
    assert len(told.splitlines()) == 1


def test_its_worlds_are_played_shown_and_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "worlds.jsonl"
    words = ["search", "--whole", "two", "--jobs", "1"]
    assert main([*words, "--seeds", "0:1", "--results", str(file)]) == 0
    head, lines = read_lines(file)
    assert head.size == "whole two"
    assert [(line.seed, line.kinds[0]) for line in lines] == [
        (0, "undisturbed"),
        (1, whole_world("two").points[0].word),
    ]
    assert "of two: " in capsys.readouterr().out
    assert main([*words, "--seeds", "0:2", "--resume", str(file)]) == 0
    assert [line.seed for line in read_lines(file)[1]] == [0, 1, 2]
    assert main(["search", "--whole", "one", "--seeds", "0", "--resume", str(file)]) == 2
    assert "worlds of size whole two" in capsys.readouterr().err
    assert main(["search", "--whole", "two", "--show", "3"]) == 0
    assert capsys.readouterr().out == whole_world("two").world(3).text()


def test_which_small_worlds_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--whole"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(BASES)
    world = whole_world("two")
    assert f"{len(world.points)} worlds, {world.pairs} of pairs" in lines[1]


@pytest.mark.parametrize(
    ("pairs", "further"), [("0", 0), ("3", 3), ("999999999", None), ("all", None)]
)
def test_so_many_pairs_are_played(pairs: str, further: int | None) -> None:
    options = argparse.Namespace(whole="two", pairs=pairs, seeds=None, show=None)
    whole.take(options)
    world = whole_world("two")
    last = len(world.points) + (world.pairs if further is None else further)
    assert (options.seeds, options.size) == (f"0:{last}", "whole two")


@pytest.mark.parametrize(
    ("words", "says"),
    [(("two", "some"), "--pairs some: wanted"), (("x", "0"), "--whole x: wanted")],
)
def test_what_there_is_not(words: tuple[str, str], says: str) -> None:
    options = argparse.Namespace(whole=words[0], pairs=words[1], seeds=None, show=None)
    with pytest.raises(SearchError, match=says):
        whole.take(options)


def test_what_failed_is_told_by_what_was_done() -> None:
    summary = Summary()
    word = "failing StartContainer"
    summary.add(Met(seed=1, kinds=(word,), verdict="holds"))
    summary.add(Met(seed=2, kinds=(word, "lost StartContainer"), verdict="broken"))
    told = "\n".join(whole.words_of(summary, "two"))
    assert "failing: StartContainer 2\nlost: StartContainer 1" in told
    assert f"failed with {word}: 1 of 2" in told
    assert "never met: " in told
    assert summary.never == []
