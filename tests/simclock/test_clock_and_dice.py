"""Clocks, RFC 3339, random streams and ids."""

import asyncio
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import virtual_loop

from simclock import Clock, Ids, RealClock, Rng, format_rfc3339, run_virtual

START = datetime(2026, 1, 1, tzinfo=UTC)
START_NS = 1_767_225_600_000_000_000


@pytest.mark.virtual_time
async def test_the_wall_clock_follows_the_loop() -> None:
    clock = virtual_loop().clock
    assert (clock.monotonic_s(), clock.wall_ns()) == (0.0, START_NS)
    await clock.sleep(1.5)
    assert (clock.monotonic_s(), clock.wall_ns()) == (1.5, START_NS + 1_500_000_000)
    assert clock.now() == START + timedelta(seconds=1.5)


async def clock_after(duration_s: float) -> Clock:
    await virtual_loop().clock.sleep(duration_s)
    return virtual_loop().clock


def test_the_start_can_be_chosen_in_any_zone() -> None:
    start = datetime(2001, 9, 9, 3, 46, 40, tzinfo=timezone(timedelta(hours=2)))
    clock = run_virtual(lambda: clock_after(0), start=start)
    assert clock.now() == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    assert clock.wall_ns() == 1_000_000_000 * 10**9


@given(st.floats(0, 1e6))
def test_wall_time_is_the_start_plus_the_loops_time(duration_s: float) -> None:
    clock = run_virtual(lambda: clock_after(duration_s))
    assert clock.wall_ns() - START_NS == round(duration_s * 1e9)


@pytest.mark.virtual_time
async def test_the_wall_clock_is_never_that_of_an_earlier_reading() -> None:
    loop, rng = virtual_loop(), Rng(1).stream("durations")
    for _ in range(2000):
        before = loop.clock.wall_ns()
        if rng.random() < 0.5:
            loop.stand_still(rng.random())
        else:
            await asyncio.sleep(rng.random() * 1e-8)
        assert loop.clock.wall_ns() == START_NS + round(loop.time() * 1e9)
        assert loop.clock.wall_ns() >= before


@pytest.mark.virtual_time
async def test_sleeping_not_at_all_or_less_yields_once() -> None:
    clock = virtual_loop().clock
    seen: list[str] = []
    asyncio.get_running_loop().call_soon(seen.append, "other")
    await clock.sleep(-5)
    assert seen == ["other"]
    assert clock.monotonic_s() == 0.0


async def test_the_real_clock_runs() -> None:
    clock = RealClock()
    first, wall = clock.monotonic_s(), clock.wall_ns()
    await clock.sleep(0.001)
    assert clock.monotonic_s() - first >= 0.001
    assert clock.wall_ns() > wall
    assert clock.now().tzinfo is UTC


@pytest.mark.parametrize(
    ("digits", "text"),
    [
        (0, "2026-01-01T00:00:00Z"),
        (1, "2026-01-01T00:00:00.9Z"),
        (6, "2026-01-01T00:00:00.987654Z"),
        (9, "2026-01-01T00:00:00.987654321Z"),
    ],
)
def test_rfc3339_is_cut_not_rounded(digits: int, text: str) -> None:
    assert format_rfc3339(START_NS + 987_654_321, digits=digits) == text


@given(st.integers(0, 4_000_000_000 * 10**9))
def test_rfc3339_is_read_back(wall_ns: int) -> None:
    text = format_rfc3339(wall_ns, digits=6)
    microseconds = (datetime.fromisoformat(text) - datetime.fromtimestamp(0, UTC)) // timedelta(
        microseconds=1
    )
    assert microseconds == wall_ns // 1000


def test_streams_repeat_and_differ_by_purpose() -> None:
    one, two = Rng(1), Rng(1)
    assert [one.stream("a").random() for _ in range(3)] == [
        two.stream("a").random() for _ in range(3)
    ]
    assert Rng(1).stream("a").random() != Rng(1).stream("b").random()
    assert Rng(1).stream("a").random() != Rng(2).stream("a").random()
    assert one.stream("a") is one.stream("a")


@given(st.integers(), st.integers(0, 20))
def test_drawing_for_one_purpose_leaves_the_others_alone(seed: int, draws: int) -> None:
    quiet, busy = Rng(seed), Rng(seed)
    for _ in range(draws):
        busy.stream("noise").random()
    assert quiet.stream("signal").random() == busy.stream("signal").random()


def test_a_system_seed_can_be_read_and_repeated() -> None:
    fresh = Rng.from_system()
    assert Rng(fresh.seed).stream("x").random() == fresh.stream("x").random()


UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@given(st.integers())
def test_ids_have_their_form_and_do_not_repeat(seed: int) -> None:
    ids = Ids(Rng(seed))
    uuids = [ids.uuid() for _ in range(20)]
    assert len(set(uuids)) == 20
    assert all(UUID4.fullmatch(text) for text in uuids)
    hexes = [ids.hex() for _ in range(20)]
    assert len(set(hexes)) == 20
    assert all(re.fullmatch("[0-9a-f]{64}", text) for text in hexes)


@given(st.integers(1, 100))
def test_hex_ids_have_the_length_asked_for(digits: int) -> None:
    assert len(Ids(Rng(0)).hex(digits)) == digits


def test_an_id_without_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one digit"):
        Ids(Rng(0)).hex(0)


def test_ids_of_one_seed_are_the_same_in_every_run() -> None:
    assert Ids(Rng(0)).uuid() == Ids(Rng(0)).uuid() == "fc0ef7b6-c23b-4078-8efe-f0c161dac7ba"
