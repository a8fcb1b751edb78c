"""Quantities and durations: exact, canonical, and strict about what they are not."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeobjects.golang.duration import (
    DurationError,
    format_duration,
    parse_duration_ns,
    parse_duration_s,
)
from kubeobjects.quantity import (
    NANO,
    QuantityError,
    canonical,
    format_binary,
    format_decimal,
    format_decimal_nano,
    parse,
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
    "text", ["", "1K", "NaN", "inf", "1 Mi", "Ei", ".Mi.", "1ki", "0x10", "1e", "1Mi ", "１"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is no quantity"):
        parse_nano(text)


@pytest.mark.parametrize("text", ["Mi", ".", "-", "+", "m", "E", ".Ki", "e3", "+.e-9", "-G"])
def test_a_text_without_digits_is_nothing_SRC_036(text: str) -> None:
    assert (parse_nano(text), canonical(text)) == (0, "0")


@pytest.mark.parametrize("text", ["Ei", "Pi", ".Ei", "e-10", "+.e-9999"])
def test_unless_its_suffix_is_too_large_or_too_small_SRC_036(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_nano(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.1Gi", "107374182400m"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1e9", "1e9"),
        ("1E3", "1E3"),
        ("1e1", "10"),
        ("1500e-3", "1500e-3"),
        ("15e-1", "1500e-3"),
        ("+5", "+5"),
        ("-2Mi", "-2Mi"),
        ("007", "007"),
        ("1.500", "1.500"),
        ("1.50", "1500m"),
        ("5000", "5k"),
        ("8Mi", "8Mi"),
        ("1024Mi", "1Gi"),
        ("9Mi", "9Mi"),
        ("9.0Mi", "9Mi"),
        ("1023Ki", "1023Ki"),
        ("16Ei", "9223372036854775807"),
        ("-16Ei", "-9223372036854775807"),
        ("16E", "16E"),
        ("0.5n", "1n"),
        ("0.0001Ki", "102400u"),
    ],
)
def test_amounts_are_shown_as_the_api_shows_them_SRC_036(text: str, shown: str) -> None:
    assert canonical(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("0.1Ki", "102400m"), ("1n", "1m"), ("+5", "+5"), ("1e-4", "1e-3")]
)
def test_pods_have_thousandths_at_most_SRC_036(text: str, shown: str) -> None:
    assert str(parse(text).in_thousandths()) == shown


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("500Ki", "512k", "1000Ki"),
        ("512k", "500Ki", "1024k"),
        ("1Gi", "1G", "2073741824"),
        ("0", "1Gi", "1Gi"),
        ("0.00048828125Ki", "1023.5", "1024"),  # what is below 1 has a decimal form
    ],
)
def test_a_sum_has_the_form_of_what_comes_first_SRC_036(one: str, other: str, both: str) -> None:
    assert str(parse(one) + parse(other)) == both
    assert (parse("1Mi") + parse("1Mi")).written is None


@pytest.mark.parametrize("text", ["1e1000", "1e-1000", "9e99999999999"])
def test_exponents_have_three_digits_at_most(text: str) -> None:
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


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0.9ns", 0),
        ("1.9ns0.9ns", 1),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0.99999999999999999999s", 10**9),
    ],
)
def test_durations_are_whole_nanoseconds_of_64_bits(text: str, nanos: int) -> None:
    assert parse_duration_ns(text) == nanos


@pytest.mark.parametrize(
    "text", ["9223372036854775808ns", "2562048h", "-9223372036854775809ns", "9" * 5000 + "h"]
)
def test_durations_that_64_bits_do_not_hold_are_refused(text: str) -> None:
    with pytest.raises(DurationError, match="is longer than 2562047h47m16s"):
        parse_duration_s(text)


@given(st.integers(-(10**12), 10**12))
def test_durations_read_back_the_same(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration_s(format_duration(seconds)) == pytest.approx(seconds)
