"""Booleans, numbers and quoted texts as Go reads and writes them."""

from __future__ import annotations

import pytest

from refkubelet.golang.strconv import atoi, parse_bool, parse_float32, quoted


def test_numbers_and_booleans_are_those_of_go() -> None:
    assert [parse_bool(t) for t in ("1", "t", "TRUE", "0", "F", "False")] == [True] * 3 + [
        False
    ] * 3
    with pytest.raises(ValueError, match='parsing "yes": invalid syntax'):
        parse_bool("yes")
    assert (atoi("+7"), atoi("-7")) == (7, -7)
    for text in ("٣", "0x1", " 1", "1_0"):
        with pytest.raises(ValueError, match="invalid syntax"):
            atoi(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+5", 5.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1_0", 10.0),
        ("0x_1p1", 2.0),
        ("0X1.8P3", 12.0),
        ("16777217", 16777216.0),  # half to even
        ("1e-45", 1.401298464324817e-45),
        ("1e-46", 0.0),
        ("0e999999999999", 0.0),
        ("1e-999999999999", 0.0),
        ("0x1p-99999999", 0.0),
        ("3.4028235e38", 3.4028234663852886e38),
        ("-Infinity", float("-inf")),
    ],
)
def test_floats_are_those_of_go_with_32_bits(text: str, value: float) -> None:
    assert parse_float32(text) == value


def test_nan_has_no_sign() -> None:
    assert parse_float32("nAn") != parse_float32("NaN")
    with pytest.raises(ValueError, match='parsing "-nan": invalid syntax'):
        parse_float32("-nan")


@pytest.mark.parametrize(
    "text", ["", "e1", "1e", "0x1", "0x.p1", "1__0", "_1", "1_", "1 ", "infinit", "--1", "1.1.1"]
)
def test_what_go_takes_for_no_float_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_float32(text)


@pytest.mark.parametrize("text", ["1e400", "-4e38", "0x1p2000", "1e99999999999", "9" * 5000])
def test_what_32_bits_do_not_hold_is_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="value out of range"):
        parse_float32(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é", '"plain é"'),
        ('a"b\\c', r'"a\"b\\c"'),
        ("\n\t\x00\x7f", r'"\n\t\x00\x7f"'),
        ("\u200b\xa0\U000e0001", r'"\u200b\u00a0\U000e0001"'),
        ("\udcff", r'"\xff"'),
    ],
)
def test_texts_are_quoted_as_go_quotes_them(text: str, shown: str) -> None:
    assert quoted(text) == shown
