"""Scalars of YAML with and without tags, and numbers at their limits (SRC-004)."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.model.yaml.scalars import ScalarError, key, number, plain_scalar, scalar

TAG = "tag:yaml.org,2002:"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, None) for text in ("", "~", "null", "Null", "NULL")),
        *((text, True) for text in ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")),
        *((text, True) for text in ("y", "Y")),
        *((text, False) for text in ("false", "False", "FALSE", "no", "No", "NO", "off", "Off")),
        *((text, False) for text in ("OFF", "n", "N")),
        *((text, text) for text in ("nULL", "tRUE", "yEs", "a1", "-", "+", ".", "-a", "1a", "0x")),
        *((text, text) for text in ("0b2", "0o8", "1.2.3", "1e", "12:30", "2024-01-01", "._1")),
        *(("0x1F", 31), ("-0x1f", -31), ("0b101", 5), ("0644", 420), ("0o644", 420), ("0O7", 7)),
        *(("08", 8), ("1_000", 1000), ("+5", 5), ("-0", 0), ("0", 0)),
        *((".5", 0.5), ("1.", 1), ("1.5e1", 15), ("1e3", 1000), ("-2.5", -2.5), ("1E+2", 100)),
        *(("18446744073709551615", 2**64 - 1), ("18446744073709551616", 18446744073709552000)),
        *(("+9223372036854775807", 2**63 - 1), ("+9223372036854775808", 9223372036854776000)),
        *(("-9223372036854775808", -(2**63)), ("-9223372036854775809", -9223372036854776000)),
        *(("0b" + "1" * 64, 2**64 - 1), ("0b" + "1" * 65, "0b" + "1" * 65)),
        *(("1e20", 10**20), ("1e21", 1e21), ("1e999", "1e999"), ("-1e999", "-1e999")),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_scalars_SRC_004(text: str, value: Any) -> None:
    found = plain_scalar(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", ".NAN"])
def test_what_json_has_no_number_for_SRC_004(text: str) -> None:
    with pytest.raises(ScalarError) as caught:
        plain_scalar(text)
    assert str(caught.value) == f"{text} is not a JSON value"


def test_whole_floats_are_integers_below_a_limit_SRC_004() -> None:
    below = 999999999999999868928.0
    assert [type(number(value)) for value in (3.0, -3.0, below, 1e21, 1.5)] == [
        *(int, int, int, float, float),
    ]
    assert number(below) == 999999999999999900000


@pytest.mark.parametrize(
    ("text", "tag", "value"),
    [
        ("5", None, 5),
        ("5", "!", "5"),
        ("5", f"{TAG}str", "5"),
        ("5", "!own", "5"),
        ("5", "!int", "5"),
        ("5", f"{TAG}int", 5),
        ("5", f"{TAG}float", 5),
        ("1.5", f"{TAG}float", 1.5),
        ("yes", f"{TAG}bool", True),
        ("~", f"{TAG}null", None),
        ("aGFs\nbG8=", f"{TAG}binary", "hallo"),
        ("/w==", f"{TAG}binary", "\ufffd"),
    ],
)
def test_tags_decide_SRC_004(text: str, tag: str | None, value: Any) -> None:
    assert scalar(text, tag, plain=True) == value


def test_quoted_scalars_are_texts_unless_a_tag_says_else_SRC_004() -> None:
    assert scalar("5", None, plain=False) == "5"
    assert scalar("5", f"{TAG}int", plain=False) == 5


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        *(("a", kind, "str") for kind in ("int", "float", "bool", "null")),
        *(("1.5", kind, "float") for kind in ("int", "bool", "null")),
        *(("5", kind, "int") for kind in ("bool", "null")),
        *(("yes", kind, "bool") for kind in ("int", "float", "null")),
        *(("~", kind, "null") for kind in ("int", "float", "bool")),
        ("a" * 50, "int", "str"),
    ],
)
def test_what_does_not_fit_its_tag_SRC_004(text: str, kind: str, found: str) -> None:
    with pytest.raises(ScalarError) as caught:
        scalar(text, f"{TAG}{kind}", plain=True)
    assert str(caught.value) == f"cannot decode !!{found} `{text[:40]}` as a !!{kind}"


@pytest.mark.parametrize("text", ["a", "a===", "aGFs bG8=", "é"])
def test_what_is_no_base_64_SRC_004(text: str) -> None:
    with pytest.raises(ScalarError) as caught:
        scalar(text, f"{TAG}binary", plain=True)
    assert str(caught.value) == "!!binary value contains invalid base64 data"


@pytest.mark.parametrize(
    ("text", "shown"), [("a", "a"), ("1", "1"), ("0x10", "16"), ("yes", "true"), ("1.5", "1.5")]
)
def test_keys_are_texts_SRC_004(text: str, shown: str) -> None:
    assert key(text, None, plain=True) == shown
    assert key(text, None, plain=False) == text


def test_a_key_is_not_null_SRC_004() -> None:
    with pytest.raises(ScalarError) as caught:
        key("~", None, plain=True)
    assert str(caught.value) == "a key must not be null"
