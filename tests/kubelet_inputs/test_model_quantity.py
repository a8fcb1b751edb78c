"""Quantities and durations: exact, canonical, and strict about what they are not."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.model.duration import DurationError, format_duration, parse_duration_s
from refkubelet.model.quantity import (
    NANO,
    QuantityError,
    format_binary,
    format_decimal,
    format_decimal_nano,
    parse_integer,
    parse_nano,
)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0", 0),
        ("1", NANO),
        ("-1", -NANO),
        ("+1", NANO),
        ("100m", NANO // 10),
        ("1.5", 3 * NANO // 2),
        (".5", NANO // 2),
        ("5.", 5 * NANO),
        ("1Ki", 1024 * NANO),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("1k", 1000 * NANO),
        ("1E", 10**18 * NANO),
        ("1E3", 1000 * NANO),
        ("1e-3", NANO // 1000),
        ("1n", 1),
        ("0.1n", 1),
    ],
)
def test_parse_gives_exact_nano_units(text: str, nano: int) -> None:
    assert parse_nano(text) == nano


@pytest.mark.parametrize(
    "text", ["", "1K", "NaN", "inf", "1 Mi", "Mi", ".", "-", "1ki", "0x10", "1e", "1Mi ", "１"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is no quantity"):
        parse_nano(text)


def test_whole_units_round_up() -> None:
    assert parse_integer("1500m") == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(100 * 2**20, "100Mi"), (83452 * 1024, "83452Ki"), (1500, "1500"), (0, "0"), (2**60, "1Ei")],
)
def test_canonical_binary_form_EVIC_092(value: int, text: str) -> None:
    assert format_binary(value) == text


def test_canonical_decimal_form_EVIC_092() -> None:
    assert [format_decimal(n) for n in (5000, 5001, 10**6)] == ["5k", "5001", "1M"]


@given(st.integers(-(2**62), 2**62))
def test_formatted_values_read_back_the_same(value: int) -> None:
    assert parse_nano(format_binary(value)) == value * NANO
    assert parse_nano(format_decimal(value)) == value * NANO
    assert parse_nano(format_decimal_nano(value)) == value


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    with suppress(QuantityError):
        assert isinstance(parse_nano(text), int)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("1m30s", 90),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("-2s", -2),
        ("0", 0),
        ("5µs", 5e-6),
    ],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "s", "1 s", "1d", "1m30", "--1s", "1:30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match="is no duration"):
        parse_duration_s(text)


@given(st.integers(-(10**13), 10**13))
def test_durations_read_back_the_same(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration_s(format_duration(seconds)) == pytest.approx(seconds)
