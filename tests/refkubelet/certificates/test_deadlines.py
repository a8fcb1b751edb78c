"""When a certificate is asked for (SRV-006)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubeobjects.structs import replace
from refkubelet.certificates.deadlines import (
    Held,
    Wanted,
    fits,
    is_expired,
    pause_s,
    rotation_due,
    seconds_left,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(hours=100)
HELD = Held(
    not_before=START,
    not_after=END,
    common_name="system:node:n",
    organizations=frozenset({"system:nodes", "more"}),
    dns_names=frozenset({"n", "n.example"}),
    addresses=frozenset({"192.0.2.1", "192.0.2.2"}),
)
WANTED = Wanted("system:node:n", ("system:nodes",), ("n",), ("192.0.2.1",))


def hours(count: float) -> datetime:
    return START + timedelta(hours=count)


@pytest.mark.parametrize(("draw", "after"), [(0.0, 70), (0.5, 80), (1.0, 90)])
def test_a_certificate_is_replaced_after_70_to_90_percent_of_its_life_SRV_006(
    draw: float, after: int
) -> None:
    due = rotation_due(HELD, WANTED, hours(1), draw)
    assert abs((due - hours(after)).total_seconds()) < 1


@pytest.mark.parametrize(
    ("held", "now"), [(None, hours(1)), (HELD, END + timedelta(microseconds=1))]
)
def test_none_and_an_expired_one_are_due_at_once_SRV_006(held: Held | None, now: datetime) -> None:
    assert rotation_due(held, WANTED, now, 0.5) == now


def test_one_that_does_not_fit_is_due_at_once_SRV_004() -> None:
    other = replace(WANTED, addresses=("192.0.2.9",))
    assert rotation_due(HELD, other, hours(1), 0.5) == hours(1)
    assert rotation_due(HELD, None, hours(1), 0.5) > hours(69)


def test_it_is_valid_to_its_last_moment() -> None:
    assert not is_expired(HELD, END)
    assert is_expired(HELD, END + timedelta(microseconds=1))


@pytest.mark.parametrize(
    "change",
    [
        {"common_name": "system:node:m"},
        {"organizations": ("system:nodes", "other")},
        {"dns_names": ("n", "m")},
        {"addresses": ("192.0.2.1", "192.0.2.3")},
    ],
)
def test_each_thing_that_is_missing_is_noticed_SRV_004(change: dict[str, object]) -> None:
    assert fits(HELD, WANTED)
    assert not fits(HELD, replace(WANTED, **change))  # type: ignore[arg-type]


def test_pauses_double_and_then_stay_SRV_006() -> None:
    assert [pause_s(n, 0.0) for n in range(1, 8)] == [2, 4, 8, 16, 32, 32, 32]
    assert [pause_s(n, 0.5) for n in (1, 4, 5)] == pytest.approx([2.1, 16.8, 32])


def test_seconds_left_are_whole_and_without_a_certificate_infinite_SRV_006() -> None:
    assert seconds_left(None, START) == float("inf")
    assert seconds_left(HELD, END - timedelta(seconds=2.5)) == 2
    assert seconds_left(HELD, END + timedelta(seconds=2.5)) == -2
