"""The texts of errors of fields, and the rules of names and numbers (SRC-037)."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.model.validation import field_errors as errors

LABEL = "must be a lowercase RFC 1123 label: a-z, 0-9 and '-', at most 63 characters"
SUBDOMAIN = "must be a lowercase RFC 1123 subdomain: a-z, 0-9, '-' and '.'"
NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
MAPPED = "must not be an IPv4-mapped IPv6 address"


@pytest.mark.parametrize(
    ("make", "arguments", "wanted"),
    [
        ("invalid", ("f", 'a"b', "why"), r'f: Invalid value: "a\"b": why'),
        ("invalid", ("f", 7, "why"), "f: Invalid value: 7: why"),
        ("invalid", ("f", True, "why"), "f: Invalid value: true: why"),
        ("invalid", ("f", ["a", "b"], "why"), 'f: Invalid value: ["a","b"]: why'),
        ("required", ("f",), "f: Required value"),
        ("required", ("f", "why"), "f: Required value: why"),
        ("forbidden", ("f", "why"), "f: Forbidden: why"),
        ("duplicate", ("f", "a\n"), r'f: Duplicate value: "a\n"'),
        ("not_found", ("f", "a"), 'f: Not found: "a"'),
        ("not_found", ("f", "a", "why"), 'f: Not found: "a": why'),
        ("too_long", ("f", 8), "f: Too long: may not be more than 8 bytes"),
        ("too_many", ("f", "abc", 2), "f: Too many: 3: must have at most 2 items"),
    ],
)
def test_texts_of_errors_SRC_037(make: str, arguments: tuple[Any, ...], wanted: str) -> None:
    assert getattr(errors, make)(*arguments) == wanted


@pytest.mark.parametrize(
    ("check", "value", "arguments", "why"),
    [
        ("one_of", None, [("A", "B")], None),
        ("one_of", "B", [("A", "B")], None),
        ("one_of", "C", [("A", "B")], 'Unsupported value: "C": supported values: "A", "B"'),
        ("one_of", "", [["A"]], 'Unsupported value: "": supported values: "A"'),
        ("at_least", None, [1], None),
        ("at_least", 1, [1], None),
        ("at_least", 0, [1], "Invalid value: 0: must be greater than or equal to 1"),
        ("between", None, [1, 3], None),
        ("between", 1, [1, 3], None),
        ("between", 3, [1, 3], None),
        ("between", 0, [1, 3], "Invalid value: 0: must be between 1 and 3, inclusive"),
        ("between", 4, [1, 3], "Invalid value: 4: must be between 1 and 3, inclusive"),
        ("quantity", "0", [], None),
        ("quantity", "-1m", [], 'Invalid value: "-1m": must be greater than or equal to 0'),
    ],
)
def test_words_and_numbers_SRC_037(
    check: str, value: Any, arguments: list[Any], why: str | None
) -> None:
    found = list(getattr(errors, check)("f", value, *arguments))
    assert found == ([f"f: {why}"] if why else [])


def test_a_text_that_is_no_quantity_SRC_037() -> None:
    (why,) = errors.quantity("f", "1x")
    assert why.startswith("f: Invalid value: ")


@pytest.mark.parametrize(
    ("check", "value", "why"),
    [
        ("label", None, None),
        ("label", "", None),
        ("label", "a", None),
        ("label", "0-" + "a" * 61, None),
        ("label", "0-" + "a" * 62, LABEL),
        ("label", "a.b", LABEL),
        ("label", "-a", LABEL),
        ("label", "a-", LABEL),
        ("label", "A", LABEL),
        ("subdomain", None, None),
        ("subdomain", "", None),
        ("subdomain", "a-b.0", None),
        ("subdomain", "a" * 253, None),
        ("subdomain", "a" * 254, "must be no more than 253 characters"),
        ("subdomain", "a..b", SUBDOMAIN),
        ("subdomain", "a.-b", SUBDOMAIN),
        ("qualified_name", "a", None),
        ("qualified_name", "A_b.c-D", None),
        ("qualified_name", "a.b/C", None),
        ("qualified_name", "a" * 63, None),
        ("qualified_name", "a" * 253 + "/b", None),
        ("qualified_name", "", NAME),
        ("qualified_name", "a/", NAME),
        ("qualified_name", "-a", NAME),
        ("qualified_name", "a" * 64, "name part must be no more than 63 bytes"),
        ("qualified_name", "/a", f"prefix part {SUBDOMAIN}"),
        ("qualified_name", "A/b", f"prefix part {SUBDOMAIN}"),
        ("qualified_name", "a/b/c", f"prefix part {SUBDOMAIN}"),
        ("qualified_name", "a" * 254 + "/b", f"prefix part {SUBDOMAIN}"),
        ("label_value", None, None),
        ("label_value", "", None),
        ("label_value", "A_b.c-D", None),
        ("label_value", "a" * 63, None),
        ("label_value", "a" * 64, "must be no more than 63 bytes"),
        ("label_value", "a b", VALUE),
        ("label_value", "a/b", VALUE),
        ("address", "10.9.8.7", None),
        ("address", "2001:db8::ffff", None),
        ("address", "::", None),
        ("address", "", NO_ADDRESS),
        ("address", "10.9.8", NO_ADDRESS),
        ("address", "10.9.8.256", NO_ADDRESS),
        ("address", "256.9.8.07", NO_ADDRESS),
        ("address", "010.9.255.7", "must not have leading 0s"),
        ("address", "10.09.8.7", "must not have leading 0s"),
        ("address", "٠١.9.8.7", NO_ADDRESS),
        ("address", "fe80::1%eth0", NO_ADDRESS),
        ("address", "::ffff:1.2.3.4", MAPPED),
    ],
)
def test_names_and_addresses_SRC_037(check: str, value: str | None, why: str | None) -> None:
    found = list(getattr(errors, check)("f", value))
    assert found == ([f'f: Invalid value: "{value}": {why}'] if why else [])


def test_labels_are_checked_by_key_and_value_SRC_037() -> None:
    assert list(errors.labels("f", None)) == []
    assert list(errors.labels("f", {"a": "", "-b": "c d"})) == [
        f'f: Invalid value: "-b": {NAME}',
        f'f: Invalid value: "c d": {VALUE}',
    ]


def test_labels_of_parts_are_there_once_SRC_037() -> None:
    seen: set[str] = set()
    found = [list(errors.unique_label("f", name, seen)) for name in ("a", "", "B", "a")]
    assert found == [
        [],
        ["f: Required value"],
        [f'f: Invalid value: "B": {LABEL}'],
        ['f: Duplicate value: "a"'],
    ]
    assert seen == {"a", "", "B"}


LONG = "must be no more than 15 characters"
LETTERS = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
NO_LETTER = "must contain at least one letter (a-z)"
TWO = "must not contain consecutive hyphens"
EDGE = "must not begin or end with a hyphen"


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("a", []),
        ("z", []),
        ("http-2", []),
        ("a" * 15, []),
        ("a" * 16, [LONG]),
        ("Http", [LETTERS]),
        ("80", [NO_LETTER]),
        ("a--b", [TWO]),
        ("-a", [EDGE]),
        ("a-", [EDGE]),
        ("", [LETTERS, NO_LETTER]),
        ("--_" + "0" * 13, [LONG, LETTERS, NO_LETTER, TWO, EDGE]),
    ],
)
def test_names_of_ports_PROBE_061(name: str, rules: list[str]) -> None:
    assert list(errors.port_name("f", name)) == [
        f'f: Invalid value: "{name}": {why}' for why in rules
    ]
