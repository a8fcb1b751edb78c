"""Shrinking: the smallest world that still breaks the law, within so many tries."""

from __future__ import annotations

from collections.abc import Callable

from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.playing import Breach, Verdict
from kubelet_conformance.search.shrinking import shrink, sized

LAW = "some-law"
WORLD = World(
    1,
    (),
    {
        "id": "world-1",
        "title": "A world",
        "needs": ["api"],
        "kubelet": {"maxPods": 5},
        "node": {},
        "pods": {
            key: {
                "spec": {"containers": [{"name": "main", "lifecycle": {}}, {"name": "second"}]},
                "does": {"main": [{"exits": {"code": 1}}, {"exits": {"code": 2}}]},
            }
            for key in ("a", "b", "c")
        },
        "steps": [
            {"create": "a"},
            {"create": "b"},
            {"create": "c"},
            {"advance": 3.0},
            {"kubelet": "kill"},
            {"advance": 40.0},
            {"exit": {"pod": "b", "container": "main", "code": 1}},
            {"kubelet": "start"},
            {"delete": {"pod": "a", "grace": 0}},
            {"advance": 1.0},
        ],
        "calm": 600,
    },
)


class Player:
    """Plays worlds: the law is broken where the condition holds."""

    def __init__(self, breaks: Callable[[World], bool]) -> None:
        self.plays = 0
        self._breaks = breaks

    def __call__(self, world: World) -> Verdict:
        self.plays += 1
        return Verdict(1, (Breach(LAW, "so"),) if self._breaks(world) else ())


def has_kill(world: World) -> bool:
    return {"kubelet": "kill"} in world.document["steps"]


def test_all_goes_that_the_law_does_not_need() -> None:
    small = shrink(WORLD, LAW, Player(has_kill))
    assert has_kill(small)
    assert len(small.document["pods"]) == 1
    assert not small.document["kubelet"]
    (pod,) = small.document["pods"].values()
    assert [sorted(one) for one in pod["spec"]["containers"]] == [["name"]]
    assert [next(iter(step)) for step in small.document["steps"]] == ["create", "kubelet"]
    assert sized(small) < sized(WORLD)


def test_what_the_law_needs_stays() -> None:
    def breaks(world: World) -> bool:
        steps = world.document["steps"]
        times = [step["advance"] for step in steps if "advance" in step]
        return "b" in world.document["pods"] and has_kill(world) and sum(times) >= 5.0

    small = shrink(WORLD, LAW, Player(breaks))
    assert breaks(small)
    assert list(small.document["pods"]) == ["b"]


def test_no_more_worlds_are_played_than_allowed() -> None:
    player = Player(has_kill)
    small = shrink(WORLD, LAW, player, tries=5)
    assert player.plays <= 5
    assert has_kill(small)


def test_a_world_that_breaks_another_law_only_is_no_smaller_one() -> None:
    def play(world: World) -> Verdict:
        law = LAW if world is WORLD else "another-law"
        return Verdict(1, (Breach(law, "so"),))

    assert shrink(WORLD, LAW, play) == WORLD
