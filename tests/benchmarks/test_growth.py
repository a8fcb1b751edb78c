"""The growth of costs: what is compared, and that each scenario does what it should."""

from __future__ import annotations

import math

import growth
import pytest
from growth import Cost, Dimension, Growth, Meter, cost_of, row_of

DIMENSIONS = growth.dimensions()


def nothing(size: int, meter: Meter) -> None:
    """A scenario."""


def grown(*costs: tuple[float, float], power: int = 1, memory_grows: bool = True) -> Growth:
    dimension = Dimension("things", 5, nothing, memory_grows=memory_grows, power=power)
    return Growth(dimension, tuple(Cost(*cost) for cost in costs))


@pytest.mark.parametrize(
    ("times_s", "power", "exponent", "missed"),
    [
        ((1.0, 2.0, 20.0), 1, 1.0, False),
        ((1.0, 2.0, 26.0), 1, math.log10(13), False),
        ((1.0, 2.0, 200.0), 1, 2.0, True),
        ((1.0, 2.0, 200.0), 2, 2.0, False),
        ((1.0, 2.0, 2000.0), 2, 3.0, True),
    ],
)
def test_what_grows_faster_than_its_input_is_missed(
    times_s: tuple[float, ...], power: int, exponent: float, missed: bool
) -> None:
    row = row_of(grown(*((t, 1.0) for t in times_s), power=power))
    assert row.value == pytest.approx(exponent)
    assert row.missed is missed
    assert row.what == "things: 5, 50, 500"


def test_memory_that_is_to_stay_does_not_grow() -> None:
    costs = ((1.0, 10.0), (10.0, 12.0), (100.0, 30.0))
    assert not row_of(grown(*costs)).missed
    assert row_of(grown(*costs, memory_grows=False)).missed
    assert not row_of(grown(*costs[:2], (100.0, 15.0), memory_grows=False)).missed


def test_a_run_is_measured_in_a_process_of_its_own() -> None:
    taken: list[bytes] = []

    def takes(size: int, meter: Meter) -> None:
        with meter:
            taken.append(b"x" * (size << 20))
            sum(range(200_000))

    cost = cost_of(Dimension("MiB", 1, takes), 40)
    assert not taken
    assert 35 < cost.memory_mib < 60
    assert 0 < cost.cpu_s < 5


def test_a_run_that_fails_is_told() -> None:
    def fails(size: int, meter: Meter) -> None:
        raise SystemExit(1)

    with pytest.raises(RuntimeError, match="things, 7: the run has failed"):
        cost_of(Dimension("things", 7, fails), 7)


@pytest.mark.parametrize("name", DIMENSIONS)
def test_each_scenario_does_what_it_should(name: str) -> None:
    """With as little as it can have; the scenarios say themselves what that is."""
    dimension, meter = DIMENSIONS[name], Meter()
    dimension.run(min(dimension.base, 4), meter)
    assert meter.cpu_s > 0
