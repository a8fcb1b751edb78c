"""Errors of fields, `field: what is wrong`, with an API server's texts; rules of names. Pure.

`invalid`, `required` and the like make the text of an error, as in upstream's package field; the
others check a value and yield its errors. Tools match these texts, so they must equal those of an
API server.
Upstream: apimachinery pkg/util/validation, pkg/util/validation/field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sized
from ipaddress import ip_address
from typing import Final

from kubeobjects.golang.json import go_json
from kubeobjects.golang.strconv import quoted
from kubeobjects.quantity import QuantityError, parse_nano

MAX_INT32: Final = (1 << 31) - 1
MAX_NAME: Final = 63
MAX_SUBDOMAIN: Final = 253

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_ZEROS: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}\Z")
_PORT_NAME: Final = re.compile(r"[-a-z0-9]+\Z")
_LABEL_RULE: Final = "a lowercase RFC 1123 label: a-z, 0-9 and '-', at most 63 characters"
_SUBDOMAIN_RULE: Final = "a lowercase RFC 1123 subdomain: a-z, 0-9, '-' and '.'"
_NAME_RULE: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def invalid(field: str, value: object, why: str) -> str:
    """The error of an invalid value; texts are shown in quotes, lists as JSON."""
    shown = quoted(value) if isinstance(value, str) else go_json(value)
    return f"{field}: Invalid value: {shown}: {why}"


def required(field: str, why: str = "") -> str:
    return f"{field}: Required value{f': {why}' if why else ''}"


def forbidden(field: str, why: str) -> str:
    return f"{field}: Forbidden: {why}"


def duplicate(field: str, value: str) -> str:
    return f"{field}: Duplicate value: {quoted(value)}"


def not_found(field: str, value: str, why: str = "") -> str:
    return f"{field}: Not found: {quoted(value)}{f': {why}' if why else ''}"


def too_long(field: str, most_bytes: int) -> str:
    return f"{field}: Too long: may not be more than {most_bytes} bytes"


def too_many(field: str, values: Sized, most: int) -> str:
    return f"{field}: Too many: {len(values)}: must have at most {most} items"


def one_of(field: str, value: str | None, words: Iterable[str]) -> Iterator[str]:
    """An error, unless the value is one of `words` or None."""
    known = tuple(words)
    if value is not None and value not in known:
        listed = ", ".join(map(quoted, known))
        yield f"{field}: Unsupported value: {quoted(value)}: supported values: {listed}"


def at_least(field: str, value: int | None, minimum: int) -> Iterator[str]:
    if value is not None and value < minimum:
        yield invalid(field, value, f"must be greater than or equal to {minimum}")


def between(field: str, value: int | None, least: int, most: int) -> Iterator[str]:
    if value is not None and not least <= value <= most:
        yield invalid(field, value, f"must be between {least} and {most}, inclusive")


def quantity(field: str, text: str) -> Iterator[str]:
    """Check that the text is a quantity and not negative."""
    try:
        amount = parse_nano(text)
    except QuantityError as error:
        yield f"{field}: Invalid value: {error}"
        return
    if amount < 0:
        yield invalid(field, text, "must be greater than or equal to 0")


def label(field: str, value: str | None) -> Iterator[str]:
    """Check that the value is a DNS label."""
    if value and not _LABEL.match(value):
        yield invalid(field, value, f"must be {_LABEL_RULE}")


def unique_label(field: str, name: str, seen: set[str]) -> Iterator[str]:
    """Check that the name is a DNS label and not in `seen`, to which it is added."""
    if not name:
        yield required(field)
    yield from label(field, name)
    if name in seen:
        yield duplicate(field, name)
    seen.add(name)


def subdomain(field: str, value: str | None) -> Iterator[str]:
    """Check that the value is a DNS subdomain."""
    if value and len(value) > MAX_SUBDOMAIN:
        yield invalid(field, value, f"must be no more than {MAX_SUBDOMAIN} characters")
    elif value and not _SUBDOMAIN.match(value):
        yield invalid(field, value, f"must be {_SUBDOMAIN_RULE}")


def qualified_name(field: str, value: str) -> Iterator[str]:
    """Check a key of labels or annotations: a name, optionally after a subdomain and a slash."""
    prefix, slash, name = value.rpartition("/")
    if slash and (len(prefix) > MAX_SUBDOMAIN or not _SUBDOMAIN.match(prefix)):
        yield invalid(field, value, f"prefix part must be {_SUBDOMAIN_RULE}")
    elif len(name) > MAX_NAME:
        yield invalid(field, value, f"name part must be no more than {MAX_NAME} bytes")
    elif not _NAME_PART.match(name):
        yield invalid(field, value, _NAME_RULE)


def labels(field: str, values: dict[str, str] | None) -> Iterator[str]:
    for key, value in (values or {}).items():
        yield from qualified_name(field, key)
        yield from label_value(field, value)


def label_value(field: str, value: str | None) -> Iterator[str]:
    if value and len(value) > MAX_NAME:
        yield invalid(field, value, f"must be no more than {MAX_NAME} bytes")
    elif value and not _NAME_PART.match(value):
        yield invalid(field, value, _VALUE_RULE)


def port_name(field: str, name: str) -> Iterator[str]:
    """Check the name of a port (PROBE-061)."""
    rules = {
        "must be no more than 15 characters": len(name) <= 15,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": bool(
            _PORT_NAME.match(name)
        ),
        "must contain at least one letter (a-z)": any("a" <= c <= "z" for c in name),
        "must not contain consecutive hyphens": "--" not in name,
        "must not begin or end with a hyphen": name == name.strip("-"),
    }
    yield from (invalid(field, name, why) for why, holds in rules.items() if not holds)


def address(field: str, value: str) -> Iterator[str]:
    """Check an IP address: no leading zeros, and not an IPv4-mapped IPv6 address."""
    try:
        found = ip_address(value)
    except ValueError:
        zeros = _ZEROS.match(value) and all(int(part) < 256 for part in value.split("."))
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield invalid(field, value, "must not have leading 0s" if zeros else why)
        return
    if getattr(found, "scope_id", None):
        yield invalid(field, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    elif getattr(found, "ipv4_mapped", None) is not None:
        yield invalid(field, value, "must not be an IPv4-mapped IPv6 address")
