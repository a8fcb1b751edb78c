"""The rules of names: of objects, labels, annotations, ports. Pure.

Each function gives what is wrong with a text, in the words of an API server and in its order; an
empty list: nothing. Tools match these words.
Upstream: apimachinery pkg/util/validation; pkg/api/validate/content.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_PART: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_IS_LABEL: Final = re.compile(_LABEL)
_IS_SUBDOMAIN: Final = re.compile(_SUBDOMAIN)
_IS_PART: Final = re.compile(_PART)
_ENDS: Final = "and must start and end with an alphanumeric character"
_OF_KEYS: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"


def explained(rule: str, expression: str, *examples: str) -> str:
    """A rule with examples and its regular expression, as the API server words it."""
    examples_text = " or ".join(f"'{example}', " for example in examples)
    begin = f"e.g. {examples_text}" if examples else ""
    return f"{rule} ({begin}regex used for validation is '{expression}')"


SUBDOMAIN_RULE: Final = explained(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', {_ENDS}",
    _SUBDOMAIN,
    "example.com",
)
LABEL_RULE: Final = explained(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_VALUE_RULE: Final = explained(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', {_ENDS}",
    f"({_PART})?",
    "MyValue",
    "my_value",
    "12345",
)
_KEY_RULE: Final = explained(_OF_KEYS, _PART, "MyName", "my.name", "123-abc")


def byte_length(text: str) -> int:
    """How long a text is for the rules: in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def too_long(limit: int) -> str:
    """What is wrong with a text of more bytes."""
    return f"must be no more than {limit} bytes"


def subdomain_problems(name: str) -> list[str]:
    """What is wrong with a name that has to be a subdomain of RFC 1123."""
    problems = ["must be no more than 253 characters"] if byte_length(name) > 253 else []
    return problems if _is_subdomain(name) else [*problems, SUBDOMAIN_RULE]


def _is_subdomain(name: str) -> bool:
    return _IS_SUBDOMAIN.fullmatch(name) is not None


def label_problems(name: str) -> list[str]:
    """What is wrong with a name that has to be a label of RFC 1123."""
    problems = ["must be no more than 63 characters"] if byte_length(name) > 63 else []
    if _IS_LABEL.fullmatch(name):
        return problems
    return [*problems, "must not contain dots" if _is_subdomain(name) else LABEL_RULE]


def path_segment_problems(name: str) -> list[str]:
    """What is wrong with a name that has to be a part of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def qualified_name_problems(name: str) -> list[str]:
    """What is wrong with the key of a label or annotation."""
    prefix, slash, rest = name.rpartition("/")
    problems: list[str] = []
    if "/" in prefix:
        rule = explained("a valid label key " + _OF_KEYS, _PART, "MyName", "my.name", "123-abc")
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"{rule} {optional}"]
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {too_long(253)}"] if byte_length(prefix) > 253 else []
        problems += [] if _is_subdomain(prefix) else [f"prefix part {SUBDOMAIN_RULE}"]
    if not rest:
        problems.append("name part must be non-empty")
    elif byte_length(rest) > 63:
        problems.append(f"name part {too_long(63)}")
    return problems if _IS_PART.fullmatch(rest) else [*problems, f"name part {_KEY_RULE}"]


def label_value_problems(value: str) -> list[str]:
    """What is wrong with the value of a label."""
    problems = [too_long(63)] if byte_length(value) > 63 else []
    return problems if not value or _IS_PART.fullmatch(value) else [*problems, _VALUE_RULE]


def port_name_problems(name: str) -> list[str]:
    """What is wrong with the name of a port."""
    problems = ["must be no more than 15 characters"] if byte_length(name) > 15 else []
    if not name or set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return problems
