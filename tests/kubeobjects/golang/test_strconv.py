"""Booleans, numbers and quoted texts as Go reads and writes them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeobjects.golang.strconv import atoi, format_float32, parse_bool, parse_float32, quoted


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


@given(st.text())
def test_a_text_is_quoted_as_its_characters_are(text: str) -> None:
    assert quoted(text) == '"' + "".join(quoted(char)[1:-1] for char in text) + '"'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in ("1", "t", "T", "true", "TRUE", "True")),
        *((text, False) for text in ("0", "f", "F", "false", "FALSE", "False")),
    ],
)
def test_each_word_of_go_for_a_boolean(text: str, value: bool) -> None:
    assert parse_bool(text) is value


@pytest.mark.parametrize(
    ("read", "name", "text", "what"),
    [
        (parse_bool, "ParseBool", "tRUE", "invalid syntax"),
        (parse_bool, "ParseBool", "", "invalid syntax"),
        (atoi, "Atoi", "", "invalid syntax"),
        (atoi, "Atoi", "--1", "invalid syntax"),
        (atoi, "Atoi", '1"', "invalid syntax"),
        (atoi, "Atoi", "9223372036854775808", "value out of range"),
        (atoi, "Atoi", "-9223372036854775809", "value out of range"),
        (atoi, "Atoi", "1" * 20, "value out of range"),
        (atoi, "Atoi", "9" * 5000, "value out of range"),
        (parse_float32, "ParseFloat", "1_", "invalid syntax"),
        (parse_float32, "ParseFloat", "-1e39", "value out of range"),
    ],
)
def test_errors_name_the_function_of_go(
    read: Callable[[str], object], name: str, text: str, what: str
) -> None:
    with pytest.raises(ValueError, match="parsing") as caught:
        read(text)
    assert str(caught.value) == f"strconv.{name}: parsing {quoted(text)}: {what}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0" * 5000 + "1", 1),
    ],
)
def test_numbers_have_64_bits(text: str, value: int) -> None:
    assert atoi(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inf", math.inf),
        ("+INF", math.inf),
        ("infinity", math.inf),
        ("-inf", -math.inf),
        ("-1.5e1", -15.0),
        ("-.5", -0.5),
        ("1E+1", 10.0),
        ("0x.8p0", 0.5),
        ("0xAp-1", 5.0),
        ("-0xap+1", -20.0),
        ("0x0p99999999", 0.0),
        ("0x1p-149", 2.0**-149),
        ("0x1p-150", 0.0),
        ("0x1.8p-150", 2.0**-149),
        ("0xa_bp0_1", 342.0),
        ("1_0e0_1", 100.0),
        ("0x1.fffffep127", (2**24 - 1) * 2.0**104),
        ("0x1.ffffffp-1", 1.0),  # half to even
        ("0x1.000001p0", 1.0),  # half to even
        ("0x1.000003p0", 1 + 2.0**-22),
        ("0x1.0000011p0", 1 + 2.0**-23),
        ("0.1", 13421773 / 2**27),
        ("16777219", 16777220.0),
        ("1e38", 99999996802856924650656260769173209088.0),
        ("0." + "0" * 44 + "1", 2.0**-149),
        ("9" * 38 + "e0", 99999996802856924650656260769173209088.0),
    ],
)
def test_floats_are_rounded_to_24_bits(text: str, value: float) -> None:
    assert parse_float32(text) == value


def test_zero_keeps_its_sign_as_in_go() -> None:
    for text in ("-0", "-0x0p1", "-1e-60", "-1e-999", "-0x1p-999"):
        assert math.copysign(1, parse_float32(text)) == -1, text
    for text in ("0", "+0", "1e-60", "0x1p-999"):
        assert math.copysign(1, parse_float32(text)) == 1, text


@pytest.mark.parametrize(
    "text",
    [
        *("3.4028236e38", "-3.4028236e38", "0x1p128", "0x1.ffffffp127", "-0x1p128", "1e39"),
        *("0x1p99999999", "1e401", "1" + "0" * 39, "0x" + "f" * 200 + "p0"),
    ],
)
def test_what_is_above_the_greatest_float_is_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="value out of range"):
        parse_float32(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0x",
            "0xp1",
            "0x1p",
            "0x1.p",
            "0xg p1",
            "1_.5",
            "1._5",
            "1e_5",
            "1e5_",
            "1_e5",
            "_",
            ".",
            "+",
        ),
        *("+-1", "infi", "++inf", "inf ", "nan1", "0x_p1", "٣", "1__0"),
    ],
)
def test_more_that_go_takes_for_no_float(text: str) -> None:
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_float32(text)


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        *(("\a", r"\a"), ("\b", r"\b"), ("\f", r"\f"), ("\n", r"\n"), ("\r", r"\r")),
        *(("\t", r"\t"), ("\v", r"\v"), ("\x1f", r"\x1f"), (" ", " "), ("~", "~")),
        *(("\x7f", r"\x7f"), ("\x80", r"\u0080"), ("\uffff", r"\uffff")),
        *(("\U00010000", "\U00010000"), ("\U0010ffff", r"\U0010ffff")),
        *(("\udc80", r"\x80"), ("\udcff", r"\xff"), ("\udc7f", r"\udc7f"), ("\udd00", r"\udd00")),
    ],
)
def test_single_characters_are_quoted_as_go_quotes_them(char: str, shown: str) -> None:
    assert quoted(char) == f'"{shown}"'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *(
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1, "0.1"),
            (1 / 3, "0.33333334"),
        ),
        *((999999.0, "999999"), (1e6, "1e+06"), (16777217.0, "1.6777216e+07"), (1e20, "1e+20")),
        *(
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e-45, "1e-45"),
            (1e-46, "0"),
            (3.4e38, "3.4e+38"),
        ),
        *(
            (1e39, "+Inf"),
            (-1e39, "-Inf"),
            (math.inf, "+Inf"),
            (-math.inf, "-Inf"),
            (math.nan, "NaN"),
        ),
    ],
)
def test_floats_of_32_bits_are_written_with_the_fewest_digits(value: float, text: str) -> None:
    assert format_float32(value) == text
