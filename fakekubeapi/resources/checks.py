"""Checks that the rules of several kinds share. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubeobjects.causes import Cause, invalid_value, required, unsupported_value
from kubeobjects.names import port_name_problems

Object = Mapping[str, Any]
PORT_RULE: Final = "must be between 1 and 65535, inclusive"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IP_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def one_of(obj: Object, field: str, path: str, allowed: Sequence[str]) -> list[Cause]:
    """What is wrong with a field that has to have one of these values, if it is there."""
    if field in obj and obj[field] not in allowed:
        return [unsupported_value(f"{path}.{field}", obj[field], allowed)]
    return []


def needed(obj: Object, field: str, path: str) -> list[Cause]:
    """What is wrong if the field is missing or empty."""
    return [] if obj.get(field) else [required(f"{path}.{field}")]


def not_negative(obj: Object, field: str, path: str) -> list[Cause]:
    """What is wrong with a number below 0."""
    number = obj.get(field)
    if number is not None and number < 0:
        return [invalid_value(f"{path}.{field}", number, NOT_NEGATIVE)]
    return []


def port_causes(port: Any, path: str) -> list[Cause]:
    """What is wrong with the number or name of a port."""
    if isinstance(port, int):
        return [] if 0 < port <= 65535 else [invalid_value(path, port, PORT_RULE)]
    return [invalid_value(path, port, text) for text in port_name_problems(str(port))]


def is_address(text: str) -> bool:
    """Whether the text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def path_causes(path: str, field: str, *, relative: bool = True) -> list[Cause]:
    """What is wrong with a path that may not lead out of its place."""
    causes = []
    if relative and path.startswith("/"):
        causes.append(invalid_value(field, path, "must be a relative path"))
    if ".." in path.split("/"):
        causes.append(invalid_value(field, path, "must not contain '..'"))
    return causes
