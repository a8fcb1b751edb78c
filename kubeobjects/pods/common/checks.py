"""Checks of single values that several parts of a pod share. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubeobjects.causes import Cause, invalid_texts, invalid_value, required, unsupported_value
from kubeobjects.names import label_problems, port_name_problems, subdomain_problems

Object = Mapping[str, Any]
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
MAX_ID: Final = (1 << 31) - 1
MAX_SECONDS: Final = (1 << 31) - 1
GROUPS: Final = ("initContainers", "containers", "ephemeralContainers")
"""The lists of containers, in the order in which a check of all of them visits them."""


def containers_of(spec: Object) -> Iterator[tuple[str, Object]]:
    """The path and the container, for all containers of all kinds."""
    for group in GROUPS:
        for i, container in enumerate(spec.get(group) or ()):
            yield f"spec.{group}[{i}]", container


def objects_of(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of what should be a list of them."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def word(value: str | None, path: str, allowed: Sequence[str]) -> Iterator[Cause]:
    """A value that has to be there and be one of the `allowed`."""
    if not value:
        yield required(path)
    elif value not in allowed:
        yield unsupported_value(path, value, allowed)


def optional_word(value: str | None, path: str, allowed: Sequence[str]) -> Iterator[Cause]:
    """A value that has to be one of the `allowed`, if it is there."""
    if value is not None and value not in allowed:
        yield unsupported_value(path, value, allowed)


def needed(obj: Object, field: str, path: str) -> Iterator[Cause]:
    """The field may not be missing or empty."""
    if not obj.get(field):
        yield required(f"{path}.{field}")


def between(value: int | None, path: str, least: int, most: int) -> Iterator[Cause]:
    """A number, if it is there, from `least` to `most`."""
    if value is not None and not least <= value <= most:
        yield invalid_value(path, value, f"must be between {least} and {most}, inclusive")


def not_negative(value: int | None, path: str) -> Iterator[Cause]:
    """A number, if it is there, of at least 0."""
    if value is not None and value < 0:
        yield invalid_value(path, value, NOT_NEGATIVE)


def user_id(value: int | None, path: str) -> Iterator[Cause]:
    """The ID of a user or group, if it is there."""
    yield from between(value, path, 0, MAX_ID)


def port_number(value: int, path: str) -> Iterator[Cause]:
    """The number of a port."""
    yield from between(value, path, 1, 65535)


def port(value: int | str, path: str) -> Iterator[Cause]:
    """The port of a handler, a number or a name; digits alone are not a name (PROBE-061)."""
    if isinstance(value, int):
        yield from port_number(value, path)
    else:
        yield from port_name(value, path)


def port_name(value: str, path: str) -> Iterator[Cause]:
    """The name of a port."""
    yield from invalid_texts(path, value, port_name_problems(value))


def label(value: str, path: str) -> Iterator[Cause]:
    """A label of RFC 1123."""
    yield from invalid_texts(path, value, label_problems(value))


def subdomain(value: str, path: str) -> Iterator[Cause]:
    """A subdomain of RFC 1123."""
    yield from invalid_texts(path, value, subdomain_problems(value))


def no_steps_back(value: str, path: str) -> Iterator[Cause]:
    """A path without a part `..` (NODE-204)."""
    if ".." in value.split("/"):
        yield invalid_value(path, value, "must not contain '..'")


def descending_path(value: str, path: str) -> Iterator[Cause]:
    """A relative path that does not lead out of its place (NODE-204)."""
    if value.startswith("/"):
        yield invalid_value(path, value, "must be a relative path")
    yield from no_steps_back(value, path)


def local_path(value: str, path: str) -> Iterator[Cause]:
    """The path of a file that the kubelet writes into a volume: as `descending_path`, and no name
    that the volume's own files have (NODE-204)."""
    yield from descending_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid_value(path, value, "must not start with '..'")
