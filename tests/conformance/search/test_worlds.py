"""Worlds: drawn from seeds, the same everywhere, and scenarios without mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.registry import Feature
from kubelet_conformance.scenarios.shape.steps import sources_of
from kubelet_conformance.search import world_of
from kubelet_conformance.search.drawing.kinds import BOUNDS, EXCLUSIVE, KINDS, OF_STEPS
from kubelet_conformance.search.drawing.steps import DRAWS
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.tasks import meet

SEEDS = range(1, 201)
DIES = "killed at calls"
PRINT = """
import hashlib
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.search import world_of
from kubelet_conformance.search.tasks import meet
texts = "".join(world_of(seed).text() for seed in range(1, 21))
traces = [meet(seed, "small", Choice()).trace for seed in (1, 2, 5)]
print(hashlib.sha256(f"{texts}{traces}".encode()).hexdigest(), len(set(traces)))
"""


def test_the_same_seed_makes_and_plays_the_same_world_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert len(printed) == 1
    digest, traces = printed.pop().split()
    assert (len(digest), traces) == (64, "3")


@pytest.mark.parametrize("size", sorted(BOUNDS))
def test_every_world_is_a_scenario_without_mistakes_within_its_bounds(size: str) -> None:
    for seed in SEEDS if size == "small" else range(1, 21):
        world = world_of(seed, size)  # type: ignore[arg-type]  # is one
        scenario = world.scenario()
        low, high = BOUNDS[size].pods  # type: ignore[index]
        assert low <= len(scenario.pods) <= high
        assert world.case().asks_laws


def test_a_world_is_also_what_its_text_says() -> None:
    for seed in range(1, 21):
        world = world_of(seed)
        assert world.scenario().given().keys() == _read(world).given().keys()
        assert [s.word for s in world.scenario().steps] == [s.word for s in _read(world).steps]


def _read(world: World):  # type: ignore[no-untyped-def]
    from kubelet_conformance.scenarios.reading import read_scenario
    from kubeobjects.strict.values import parse_yaml

    return read_scenario(parse_yaml(world.text(), "world.yaml"))


def test_every_kind_is_met_and_no_world_has_them_all() -> None:
    worlds = [world_of(seed) for seed in SEEDS]
    met = Counter(kind for world in worlds for kind in world.kinds)
    assert set(met) == set(KINDS)
    assert max(len(world.kinds) for world in worlds) < len(KINDS)


def test_everything_that_can_happen_is_drawn() -> None:
    assert set(DRAWS) == set(OF_STEPS)


def test_weights_make_kinds_more_and_less_frequent() -> None:
    def count(weight: float) -> int:
        return sum("reboots" in world_of(s, weights={"reboots": weight}).kinds for s in SEEDS)

    assert count(0.0) == 0
    assert count(1.0) < count(5.0)


def test_a_world_without_a_server_has_static_pods_and_asks_no_server() -> None:
    worlds = [world for world in map(world_of, SEEDS) if "no server" in world.kinds]
    assert worlds
    for world in worlds:
        assert set(sources_of(world.scenario().steps).values()) <= {"static"}
        assert Feature.API not in world.case().needs


def test_what_is_aimed_meets_calls() -> None:
    line = meet(365, "small", Choice())
    assert {"priority changes", "killed at calls"} <= set(line.kinds)
    assert {word.partition(" ")[0] for word in line.struck} == {"killed", "late", "lost", "slow"}


def test_a_kubelet_that_is_killed_at_a_call_is_not_taken_down_otherwise() -> None:
    killed = [kinds for kinds in (world_of(seed).kinds for seed in SEEDS) if DIES in kinds]
    assert len(killed) > 10
    assert not any(EXCLUSIVE & set(kinds) for kinds in killed)
