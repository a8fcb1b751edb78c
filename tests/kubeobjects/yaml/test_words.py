"""Scalars of YAML with and without tags, and numbers at their limits (SRC-004)."""

from __future__ import annotations

from typing import Any

import pytest

from kubeobjects.yaml.go_words import KUBERNETES, json_key, json_value
from kubeobjects.yaml.words import STRICT, ScalarError

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
    found = json_value(KUBERNETES.plain(text))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((text, "+Inf") for text in (".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF")),
        *((text, "-Inf") for text in ("-.inf", "-.Inf", "-.INF")),
        *((text, "NaN") for text in (".nan", ".NaN", ".NAN")),
    ],
)
def test_what_json_has_no_number_for_SRC_004(text: str, shown: str) -> None:
    with pytest.raises(ScalarError) as caught:
        json_value(KUBERNETES.plain(text))
    assert str(caught.value) == f"{shown} is not a JSON value"
    assert caught.value.upstream == f"json: unsupported value: {shown}"


def test_whole_floats_are_integers_below_a_limit_SRC_004() -> None:
    below = 999999999999999868928.0
    assert [type(json_value(value)) for value in (3.0, -3.0, below, 1e21, 1.5)] == [
        *(int, int, int, float, float),
    ]
    assert json_value(below) == 999999999999999900000


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
        ("4oI=", f"{TAG}binary", "\ufffd\ufffd"),
        ("2024-02-29", f"{TAG}timestamp", "2024-02-29"),
        ("2024-2-9 1:02:3.5", f"{TAG}timestamp", "2024-2-9 1:02:3.5"),
        ("2024-02-29t23:59:59Z", f"{TAG}timestamp", "2024-02-29t23:59:59Z"),
    ],
)
def test_tags_decide_SRC_004(text: str, tag: str | None, value: Any) -> None:
    assert json_value(KUBERNETES.scalar(text, tag)) == value


def test_quoted_scalars_are_texts_unless_a_tag_says_else_SRC_004() -> None:
    assert KUBERNETES.scalar("5", plain=False) == "5"
    assert KUBERNETES.scalar("5", f"{TAG}int", plain=False) == 5


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        *(("a", kind, "str") for kind in ("int", "float", "bool", "null")),
        *(("1.5", kind, "float") for kind in ("int", "bool", "null")),
        *(("5", kind, "int") for kind in ("bool", "null")),
        *(("yes", kind, "bool") for kind in ("int", "float", "null")),
        *(("~", kind, "null") for kind in ("int", "float", "bool")),
        ("a" * 50, "int", "str"),
        ("18446744073709551615", "float", "int"),
        *((text, "timestamp", "str") for text in ("2023-02-29", "2024-02-29T01:02:03")),
        *((text, "timestamp", "str") for text in ("2024-02-29 1:2:3Z", "2024-02-29 24:00:00")),
    ],
)
def test_what_does_not_fit_its_tag_SRC_004(text: str, kind: str, found: str) -> None:
    with pytest.raises(ScalarError) as caught:
        KUBERNETES.scalar(text, f"{TAG}{kind}")
    assert str(caught.value) == f"cannot decode !!{found} `{text[:40]}` as a !!{kind}"


@pytest.mark.parametrize("text", ["a", "a===", "aGFs bG8=", "é"])
def test_what_is_no_base_64_SRC_004(text: str) -> None:
    with pytest.raises(ScalarError) as caught:
        KUBERNETES.scalar(text, f"{TAG}binary")
    assert str(caught.value) == "!!binary value contains invalid base64 data"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(
            ("a", "a"),
            ("1", "1"),
            ("0x10", "16"),
            ("yes", "true"),
            ("off", "false"),
            ("1.50", "1.5"),
        ),
        *(("30.0", "30"), ("1e6", "1e+06"), ("0.1", "0.1"), ("-0.0", "-0"), (".nan", ".nan")),
        *(("16777217.0", "1.6777216e+07"), ("1e39", ".inf"), ("-.INF", "-.inf")),
        ("9223372036854775807", "9223372036854775807"),
    ],
)
def test_keys_are_texts_and_fractions_have_32_bits_SRC_004(text: str, shown: str) -> None:
    assert json_key(KUBERNETES.plain(text)) == shown


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("~", "a key must not be null"),
        ("9223372036854775808", "a key must not be as large as 9223372036854775808"),
    ],
)
def test_what_is_no_key_SRC_004(text: str, problem: str) -> None:
    with pytest.raises(ScalarError) as caught:
        json_key(KUBERNETES.plain(text))
    assert str(caught.value) == problem
    assert caught.value.upstream.startswith("unsupported map key of type: ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, None) for text in ("", "~", "null")),
        *(("true", True), ("false", False), ("5", 5), ("-07", -7), ("1.50", 1.5), ("1e3", 1000.0)),
        *((text, text) for text in ("yes", "no", "on", "True", "NULL", "0x10", "1_000", ".inf")),
        *((text, text) for text in ("0o7", "12:30", "2024-01-01", "1e", "1Gi", "<<", "1" * 301)),
        ("1" * 300, int("1" * 300)),
    ],
)
def test_strict_words_mean_what_is_written(text: str, value: Any) -> None:
    found = STRICT.scalar(text)
    assert (found, type(found)) == (value, type(value))
    assert STRICT.scalar(text, plain=False) == text
    assert STRICT.scalar(text, f"{TAG}int") == value
