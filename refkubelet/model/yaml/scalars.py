"""Decodes YAML scalars as kubelets do: YAML 1.1 as in Go's yaml package. Pure.

No timestamps and no base-60 numbers (`2024-01-01` and `12:30:00` stay texts); `0644` and `0o644`
are octal, `08` is the number 8, `y` and `on` are booleans. Explicit tags count: `!!str 5` is a
text.
Upstream: go.yaml.in/yaml/v2: resolve; sigs.k8s.io/yaml: convertToJSONableObject.

What must never happen here: an exception other than `ScalarError`, or work that grows faster than
the text.
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal
from typing import Any, Final

LEAST_WITH_EXPONENT: Final = 1e21  # JSON, as Go writes it, has all digits of smaller numbers
_MOST: Final = {"": (1 << 64) - 1, "+": (1 << 63) - 1, "-": 1 << 63}  # by sign
INFINITY: Final = float("inf")
MAX_DIGITS: Final = 66  # of a number with 64 bits in any notation; longer ones are floats

_TAG: Final = "tag:yaml.org,2002:"
_BOOLS: Final = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("y", "Y"), True),
    **dict.fromkeys(("n", "N"), False),
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_RADIX: Final = (
    (re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)\Z"), 16),
    (re.compile(r"([-+]?)0[bB]([01]+)\Z"), 2),
    (re.compile(r"([-+]?)0[oO]?([0-7]+)\Z"), 8),
    (re.compile(r"([-+]?)(0|[1-9][0-9]*)\Z"), 10),
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")


class ScalarError(ValueError):
    """The scalar does not fit its tag, or is not a JSON value."""


def scalar(text: str, tag: str | None, *, plain: bool) -> Any:
    """The value of a scalar. `plain`: neither quoted nor a block; `tag`: its explicit tag, or None.
    Raises `ScalarError`."""
    if tag is None or tag == "!":
        return plain_scalar(text) if plain and tag is None else text
    kind = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if kind == "binary":
        try:
            return base64.b64decode(text.replace("\n", ""), validate=True).decode(errors="replace")
        except (binascii.Error, ValueError):
            raise ScalarError("!!binary value contains invalid base64 data") from None
    if kind not in ("int", "float", "bool", "null"):
        return text
    value = plain_scalar(text)
    found = _kind(value)
    if found != kind and (found, kind) != ("int", "float"):
        raise ScalarError(f"cannot decode !!{found} `{text[:40]}` as a !!{kind}")
    return value


def _kind(value: Any) -> str:
    kinds = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
    return kinds[type(value)]


def key(text: str, tag: str | None, *, plain: bool) -> str:
    """A key as a text: `1:` is `1`, `0x10:` is `16`, `yes:` is `true`. Raises `ScalarError`."""
    value = scalar(text, tag, plain=plain)
    if isinstance(value, str):
        return value
    if value is None:
        raise ScalarError("a key must not be null")
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain_scalar(text: str) -> Any:
    """The value of an unquoted scalar.

    >>> [plain_scalar(t) for t in ("y", "0644", "12:30", "2024-01-01", "1e3", "1.5", "08", "~")]
    [True, 420, '12:30', '2024-01-01', 1000, 1.5, 8, None]
    """
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _SPECIAL.match(text):
        raise ScalarError(f"{text} is not a JSON value")
    digits = text if text[0] == "." else text.replace("_", "")
    whole = _integer(digits)
    if whole is not None:
        return whole
    value = float(digits) if _FLOAT.match(digits) else None
    return text if value is None or value in (INFINITY, -INFINITY) else number(value)


def _integer(text: str) -> int | None:
    """The integer of the text in one of Go's notations; None: it is not one, or does not fit into
    64 bits."""
    if len(text) > MAX_DIGITS:
        return None
    for pattern, base in _RADIX:
        match = pattern.match(text)
        if match is not None:
            value = int(match[2], base)
            return (-value if match[1] == "-" else value) if value <= _MOST[match[1]] else None
    return None


def number(value: float) -> int | float:
    """The number; a whole float below 1e21 becomes an integer, because Kubernetes converts YAML to
    JSON, in which Go writes `30.0` and `3e1` as 30."""
    if abs(value) < LEAST_WITH_EXPONENT and value.is_integer():
        return int(Decimal(repr(value)))
    return value
