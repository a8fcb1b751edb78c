"""The random durations of calls: seeded, around their mean, none at factor 0."""

import statistics

import pytest

from simclock import Delay, Latency, Rng

MEANS_S = {"read": 0.0003, "start": 0.06}


def latency(seed: int = 1, factor: float = 1.0) -> Latency:
    return Latency(Rng(seed), MEANS_S, factor=factor, purpose="test")


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_durations_lie_around_the_mean_and_vary(factor: float) -> None:
    for kind, mean_s in MEANS_S.items():
        drawn = latency(factor=factor)
        wholes_s = [sum(drawn.of(kind)) for _ in range(5000)]
        assert statistics.mean(wholes_s) == pytest.approx(factor * mean_s, rel=0.03)
        assert statistics.median(wholes_s) < statistics.mean(wholes_s)
        assert min(wholes_s) > 0.1 * factor * mean_s
        assert 2.5 * factor * mean_s < max(wholes_s) < 8 * factor * mean_s


def test_the_effect_lies_anywhere_inside_a_long_call_and_at_an_end_of_a_short_one() -> None:
    drawn = latency()
    shares = [before / (before + after) for before, after in (drawn.of("start") for _ in range(99))]
    assert min(shares) < 0.1
    assert max(shares) > 0.9
    assert 0.4 < statistics.mean(shares) < 0.6
    ends = {(before == 0, after == 0) for before, after in (drawn.of("read") for _ in range(99))}
    assert ends == {(True, False), (False, True)}


def test_a_seed_gives_the_same_durations_whatever_other_kinds_were_drawn() -> None:
    first, second = latency(), latency()
    for _ in range(7):
        second.of("read")
    assert [first.of("start") for _ in range(5)] == [second.of("start") for _ in range(5)]
    assert latency(seed=1).of("start") != latency(seed=2).of("start")


def test_nothing_takes_time_at_factor_0_or_for_an_unknown_kind() -> None:
    assert latency(factor=0).of("start") == Delay(0, 0)
    assert latency(factor=0).none
    assert not latency().none
    assert latency().of("other") == Delay(0, 0)


@pytest.mark.parametrize("factor", [-1, float("inf"), float("nan")])
def test_a_factor_that_cannot_be_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="factor: wanted a number from 0, got"):
        latency(factor=factor)
