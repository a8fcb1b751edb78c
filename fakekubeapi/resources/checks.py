"""Checks that the rules of several kinds share. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekubeapi.errors import Cause, invalid_value, required, unsupported_value

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


def port_name_problems(name: str) -> list[str]:
    """What is wrong with the name of a port."""
    problems = ["must be no more than 15 characters"] if len(name) > 15 else []
    if set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= one <= "z" for one in name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return problems


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
