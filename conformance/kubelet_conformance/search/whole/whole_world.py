"""A small world with all that can be done to its calls: `whole_world`."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import Struct

from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.whole.bases import BASES
from kubelet_conformance.search.whole.points import Point, count_of_pairs, pair_of, points_of
from kubeobjects.structs import replace

PLAYED_UNDER = 1
"""The seed under which all of them are played: what they have is not drawn."""
Document = dict[str, Any]


class CannotCount(RuntimeError):
    """The undisturbed world did not come to its end on refkubelet; the text says why."""


class WholeWorld(Struct, frozen=True):
    """A small world. Number 0 is the undisturbed one, then comes each of its points, then each pair
    of them."""

    name: str
    base: Document
    points: tuple[Point, ...]

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return count_of_pairs(len(self.points))

    def points_at(self, number: int) -> tuple[Point, ...]:
        """What is done in the world of that number."""
        if number == 0:
            return ()
        if number <= len(self.points):
            return (self.points[number - 1],)
        first, second = pair_of(number - 1 - len(self.points), len(self.points))
        return self.points[first], self.points[second]

    def world(self, number: int) -> World:
        """The world of that number."""
        points = self.points_at(number)
        disturbed = [point.step(f"f{place}") for place, point in enumerate(points)]
        document = {
            "id": f"whole-{self.name}-{number}",
            **self.base,
            "steps": [*disturbed, *self.base["steps"]],
        }
        kinds = tuple(dict.fromkeys(point.word for point in points)) or ("undisturbed",)
        return World(PLAYED_UNDER, kinds, document)


@cache
def whole_world(name: str) -> WholeWorld:
    """The world of that name (`BASES`). Its calls are those that refkubelet makes in virtual time,
    so it is the same for every kubelet. Raises KeyError, and CannotCount."""
    base = BASES[name]
    return WholeWorld(name, base, tuple(points_of(_methods(name, base))))


def _methods(name: str, base: Document) -> list[str]:
    """The methods of its calls, in order, up to the end of its steps."""
    world = World(PLAYED_UNDER, (), {"id": f"whole-{name}", **base})
    lasts_s = sum(step["advance"] for step in base["steps"] if "advance" in step)
    case = world.case()
    methods: list[str] = []

    async def body(node: Node) -> None:
        await case.body(node)
        calls = sorted([*node.calls(), *node.plugins.driver_calls()], key=lambda c: c.started_s)
        methods.extend(
            call.method
            for call in calls
            if node.time_s(call) <= lasts_s and call.method != "GetContainerEvents"
        )

    result = run_virtual_case(replace(case, body=body), Choice(seed=PLAYED_UNDER))
    if result.outcome is not Outcome.PASSED:
        raise CannotCount(f"the world {name} does not hold undisturbed: {result.detail}")
    return methods
