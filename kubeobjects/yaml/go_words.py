"""What the scalars of YAML mean to Kubernetes: YAML 1.1 as Go's yaml package reads it. Pure.

No dates and no base-60 numbers (`2024-01-01` and `12:30:00` stay texts); `0644` and `0o644` are
octal, `08` is the number 8, `y` and `on` are booleans. Explicit tags count: `!!str 5` is a text.
Upstream: go.yaml.in/yaml/v2: resolve; sigs.k8s.io/yaml: convertToJSONableObject.

What must never happen here: an exception other than `ScalarError`, or work that grows faster than
the text.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import date
from decimal import Decimal
from typing import Final

from kubeobjects.golang.strconv import INT64, LONE_UNDERSCORE, format_float32
from kubeobjects.yaml.words import Scalar, ScalarError, Words

LEAST_WITH_EXPONENT: Final = 1e21  # JSON, as Go writes it, has all digits of smaller numbers
MAX_DIGITS: Final = 66  # of a number with 64 bits in any notation; longer ones are floats
_SHOWN: Final = 40  # characters of a text in an error
_MOST: Final = {"": (1 << 64) - 1, "+": (1 << 63) - 1, "-": 1 << 63}  # by sign
_TAG: Final = "tag:yaml.org,2002:"
_RESOLVED: Final = frozenset({"bool", "int", "float", "null", "timestamp"})
"""The tags that a value must fit; with any other it is a text."""
_RADIX: Final = (
    (re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)\Z"), 16),
    (re.compile(r"([-+]?)0[bB]([01]+)\Z"), 2),
    (re.compile(r"0b([-+])([01]+)\Z"), 2),
    (re.compile(r"([-+]?)0[oO]?([0-7]+)\Z"), 8),
    (re.compile(r"([-+]?)(0|[1-9][0-9]*)\Z"), 10),
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_DATE: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:(?P<between>[Tt ])"
    r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:[.,][0-9]+)?"
    r"(?P<zone>Z|[-+][0-9]{2}:[0-9]{2})?)?\Z"
)
_NO_TEXT: Final = re.compile("[\udc80-\udcff]")


def _go_number(text: str) -> int | float | None:
    """A number in one of Go's notations; one that does not fit into 64 bits is a float."""
    if text[0] not in "+-.0123456789" or (text[0] == "." and LONE_UNDERSCORE.search(text)):
        return None
    digits = text.replace("_", "")
    whole = _integer(digits)
    if whole is not None:
        return whole
    value = float(digits) if _FLOAT.match(digits) else None
    return None if value is None or math.isinf(value) else value


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


def _tagged(text: str, tag: str, meaning: Scalar) -> Scalar:
    """The value of a text with a tag. `meaning`: what it means without. Raises `ScalarError`."""
    kind = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if kind == "binary":
        return _decoded(text)
    if kind not in _RESOLVED or (kind == "timestamp" and _is_date(text)):
        return text
    meant_kind = _kind(meaning)
    if (meant_kind, kind) == ("int", "float") and meaning in INT64:
        return float(meaning or 0)
    if meant_kind != kind:
        text_shown = text[:_SHOWN]
        raise ScalarError(f"cannot decode !!{meant_kind} `{text_shown}` as a !!{kind}")
    return meaning


def _is_date(text: str) -> bool:
    """Whether the text is a date, alone or with a time; one after a letter has a zone."""
    match = _DATE.match(text)
    if match is None or (match["between"] in ("T", "t")) != (match["zone"] is not None):
        return False
    try:
        date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        return False
    return True


def _decoded(text: str) -> str:
    """The text of a scalar in base 64, with U+FFFD for each byte that is not UTF-8."""
    try:
        data = base64.b64decode(text.replace("\n", ""), validate=True)
        return _NO_TEXT.sub("\ufffd", data.decode(errors="surrogateescape"))
    except (binascii.Error, ValueError):
        raise ScalarError("!!binary value contains invalid base64 data") from None


def _kind(value: Scalar) -> str:
    kinds = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
    return kinds[type(value)]


def _of(meaning: bool | float | None, words: str) -> dict[str, bool | float | None]:
    return dict.fromkeys(words.split(), meaning)


KUBERNETES: Final = Words(
    {
        **_of(True, "y Y yes Yes YES true True TRUE on On ON"),
        **_of(False, "n N no No NO false False FALSE off Off OFF"),
        **_of(None, "~ null Null NULL"),
        "": None,
        **_of(math.nan, ".nan .NaN .NAN"),
        **_of(math.inf, ".inf .Inf .INF +.inf +.Inf +.INF"),
        **_of(-math.inf, "-.inf -.Inf -.INF"),
    },
    _go_number,
    _tagged,
)


def json_value(value: Scalar) -> Scalar:
    """The value as JSON has it; a whole float below 1e21 becomes an integer, because Go writes
    `30.0` and `3e1` as 30. Raises `ScalarError` for what JSON has no number for.

    >>> [json_value(KUBERNETES.plain(t)) for t in ("y", "0644", "12:30", "1e3", "1.5", "08", "~")]
    [True, 420, '12:30', 1000, 1.5, 8, None]
    """
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        word = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
        raise ScalarError(f"{word} is not a JSON value", f"json: unsupported value: {word}")
    if abs(value) < LEAST_WITH_EXPONENT and value.is_integer():
        return int(Decimal(repr(value)))
    return value


def json_key(value: Scalar) -> str:
    """A key as a text: `1:` is `1`, `0x10:` is `16`, `yes:` is `true`. Raises `ScalarError`.

    >>> [json_key(KUBERNETES.plain(t)) for t in ("a", "0x10", "yes", "1.50", "1e6")]
    ['a', '16', 'true', '1.5', '1e+06']
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise ScalarError("a key must not be null", "unsupported map key of type: %!s(<nil>)")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = format_float32(value)
        return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}.get(text, text)
    if value not in INT64:
        raise ScalarError(
            f"a key must not be as large as {value}", "unsupported map key of type: uint64"
        )
    return str(value)
