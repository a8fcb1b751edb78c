"""`--beside`: a world that ends otherwise on another kubelet breaks the law `as-beside`; what is a
matter of the moment does not."""

from __future__ import annotations

from typing import Any

import pytest

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.cli import main
from kubelet_conformance.harness.runs.case_run import Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.laws.history import There
from kubelet_conformance.search import play, playing, world_of
from kubelet_conformance.search.beside import differing
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.ends import ContainerEnd, End, PodEnd, end_of
from kubelet_conformance.search.playing import Breach, Verdict
from kubelet_conformance.search.shrinking import shrink, sized
from kubeobjects.structs import replace
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.status import generate
from refkubelet.sync_loop.housekeeping import Housekeeping

NAMES = ("this", "that")
WORLD = World(
    1,
    (),
    {
        "pods": {"a": {}, "b": {}},
        "steps": [{"create": "a"}, {"kill": {"pod": "a", "container": "main"}}, {"remove": "b"}],
    },
)
RUNS = ContainerEnd(kind="running", for_s=600.0, ready=True)
POD = PodEnd(
    phase="Running",
    reason="",
    policy="Always",
    deleted=False,
    conditions={"Ready": True},
    containers={"main": RUNS},
)


def end(pod: PodEnd | None = POD, **other: Any) -> End:
    pods = {} if pod is None else {"a": pod}
    boxes = dict.fromkeys(pods, 1)
    parts = {"at_api": pods, "mirrors": {}, "listed": pods, "sandboxes": boxes, "running": ()}
    return End(**{**parts, "left_out": (), **other})


def of_main(**changed: Any) -> End:
    return end(replace(POD, containers={"main": replace(RUNS, **changed)}))


def told(*pairs: tuple[End, End]) -> list[str]:
    return list(differing(pairs, WORLD, NAMES).values())


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (end(replace(POD, phase="Failed")), "its phase is Running on this, Failed on that"),
        (of_main(ready=False), "container main is ready on this, running, not ready on that"),
        (of_main(for_s=3.0), "container main is ready on this, ending again and again on that"),
        (end(replace(POD, conditions={})), "condition Ready is True on this, not there on that"),
        (end(sandboxes={"a": 2}), "the number of its ready sandboxes is 1 on this, 2 on that"),
        (end(running=[("a", "main")]), "what runs of it is nothing on this, main on that"),
        (end(None), "it is a pod of the API server on this, not there on that"),
        (end(listed={}), "its place in /pods is there on this, not there on that"),
    ],
)
def test_what_is_wanted_in_the_end_is_compared(other: End, says: str) -> None:
    (what,) = told((end(), other))
    assert what.startswith("pod a: ")
    assert says in what


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (of_main(restarts=3), of_main(restarts=5)),
        (of_main(for_s=3.0), of_main(kind="waiting", reason="CrashLoopBackOff", ready=False)),
        (end(), end(replace(POD, phase="Failed"), left_out=(1,))),
        (
            end(replace(POD, phase="Failed", reason="OutOfpods")),
            end(replace(POD, phase="Failed", reason="Preempting")),
        ),
    ],
    ids=["restarts", "a moment of a back-off", "a step that was left out", "too few places"],
)
def test_what_is_a_matter_of_the_moment_is_not(one: End, two: End) -> None:
    assert told((one, two)) == []


def test_volumes_of_drivers_are_compared_where_all_pods_are_as_they_stay() -> None:
    here, there = {"d/data": "published 1 times, staged"}, {"d/data": "published 0 times, staged"}
    assert told((end(volumes=here), end(volumes=there))) == [
        "volume d/data: its places is published 1 times, staged on this, "
        "published 0 times, staged on that"
    ]
    assert told((end(volumes=here), end())) == [
        "volume d/data: its places is published 1 times, staged on this, not there on that"
    ]
    assert told((end(volumes=here), end(volumes=here))) == []
    again = of_main(for_s=3.0)
    assert told((replace(again, volumes=here), replace(again, volumes=there))) == []
    killed = {"left_out": (1,)}  # on one of them only
    assert told((end(volumes=here, **killed), end(volumes=there))) == []


def test_where_volumes_are_is_what_their_drivers_have() -> None:
    driver = FakeCsiDriver("d")
    driver.staged.update({"one": "x", "two": "y"})
    driver.published.update({"/a": "one", "/b": "one", "/c": "csi-9", "/d": "csi-8"})
    nothing = There()
    assert end_of(nothing, 0.0, (), [driver]).volumes == {
        "d/inline volumes": "published 2 times",
        "d/one": "published 2 times, staged",
        "d/two": "published 0 times, staged",
    }


def test_pods_that_both_have_refused_are_compared() -> None:
    refused = replace(POD, phase="Failed", reason="OutOfpods")
    assert told((end(refused), end(refused, sandboxes={"a": 2}))) != []


def test_a_pod_that_one_has_refused_is_not_compared() -> None:
    refused = end(replace(POD, phase="Failed", reason="OutOfcpu", containers={}))
    assert told((end(), refused)) == told((refused, end())) == []
    shown = end(replace(POD, phase="Failed", reason="OutOfcpu"))
    assert told((shown, refused)) == []  # whether its containers had run before
    assert told((end(), end(replace(POD, phase="Failed", reason="Error")))) != []


@pytest.mark.parametrize(("reason", "differs"), [("Evicted", 0), ("Terminated", 0), ("", 1)])
def test_what_containers_end_with_that_are_ended_early_is_not_compared(
    reason: str, differs: int
) -> None:
    ended = [
        end(replace(POD, phase="Failed", reason=reason, containers={"main": replace(RUNS, **code)}))
        for code in ({"kind": "terminated"}, {"kind": "terminated", "exit_code": 143})
    ]
    assert len(told((ended[0], ended[1]))) == differs


def test_a_pod_may_have_ended_before_it_was_evicted() -> None:
    evicted = end(replace(POD, phase="Failed", reason="Evicted"))
    assert told((evicted, end(replace(POD, phase="Succeeded")))) == []
    assert told((evicted, end())) != []


def test_a_step_that_one_has_left_out_is_about_its_pod_alone() -> None:
    assert told((end(), end(replace(POD, phase="Failed"), left_out=(2,)))) != []


def test_what_one_of_more_plays_ends_with_is_no_difference() -> None:
    failed = end(replace(POD, phase="Failed"))
    assert told((end(), failed), (end(), failed)) != []
    assert told((end(), failed), (end(), end())) == []


WRONG = Choice(latency=0.5)
"""Stands for a wrong kubelet: `wrong` patches refkubelet for it alone."""


def wrong(monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, instead: Any) -> None:
    """Let the kubelet of WRONG do something else instead of a step."""
    run, right = playing.run_virtual_case, getattr(owner, step)

    def chosen(case: Any, choice: Choice, **named: Any) -> Result:
        setattr(owner, step, instead if choice.latency == WRONG.latency else right)
        try:
            return run(case, choice, **named)
        finally:
            setattr(owner, step, right)

    monkeypatch.setattr(playing, "run_virtual_case", chosen)


async def nothing(*_: Any) -> None:
    """Stands for a step that is left out."""


def beside(world: World) -> Verdict:
    return play(world, WRONG, laws=("as-beside",), beside=Choice())


@pytest.mark.parametrize(
    ("owner", "step", "instead", "seed", "says"),
    [
        (Housekeeping, "_delete_orphan_mirrors", nothing, 10, "it is a mirror on"),
        (PodWorkers, "_requeue", lambda *_: None, 23, "its phase is Pending on"),
        (generate, "settled_phase", lambda computed, *_: computed, 23, "its phase is Running on"),
    ],
)
def test_a_wrong_kubelet_ends_otherwise_than_the_right_one(
    monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, instead: Any, seed: int, says: str
) -> None:
    assert beside(world_of(seed)).breaches == ()
    wrong(monkeypatch, owner, step, instead)
    assert says in " ".join(breach.what for breach in beside(world_of(seed)).breaches)


def test_a_world_that_ends_otherwise_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, Housekeeping, "_delete_orphan_mirrors", nothing)
    small = shrink(world_of(10), "as-beside", beside, tries=3)
    assert sized(small) < sized(world_of(10))
    assert beside(small).laws == {"as-beside"}


def test_a_world_without_an_end_on_the_other_one_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = playing._ended

    def without(world: World, choice: Choice, *arguments: Any, **named: Any) -> Any:
        if choice.latency == WRONG.latency:
            return Verdict(1, (Breach("kubelet-lives", "it has ended"),)), None
        return ended(world, choice, *arguments, **named)

    monkeypatch.setattr(playing, "_ended", without)
    (breach,) = play(world_of(3), beside=WRONG).breaches
    assert breach.law == "as-beside"
    assert breach.what == "on refkubelet the world has no end: it has ended"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--law", "one-runing"), "--law one-runing: no such law; did you mean one-running?"),
        (("--law", "as-beside"), "--law as-beside: it needs --beside, the other kubelet"),
        (("--beside", "/nowhere"), "--beside /nowhere: no such program"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "--seeds", "1", "--jobs", "1", *words]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert says in line
