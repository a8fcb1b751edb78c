"""Finding sandboxes and containers by id or prefix, with the words of containerd (CRI-021..023).

Every method says it in its own words; the table has those that differ (heard from containerd
1.6.20). What must never happen here: an ambiguous prefix picks something, or a text repeats a
megabyte that the caller sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import grpc

from fakecri.core.lookups.prefix_table import PrefixTable
from fakecri.errors import CriError, unknown

T = TypeVar("T")

CONTAINER: Final = 'an error occurred when try to find container "{id}": {why}'
SANDBOX: Final = 'an error occurred when try to find sandbox "{id}": {why}'

# method -> text, where it is not one of the two above
TEXTS: Final[Mapping[str, str]] = {
    "PodSandboxStatus": "an error occurred when try to find sandbox: {why}",
    "PodSandboxStats": "an error occurred when trying to find sandbox {id}: {why}",
    "PortForward": 'failed to find sandbox "{id}": {why}',
    "CreateContainer": 'failed to find sandbox id "{id}": {why}',
    "ExecSync": 'failed to exec in container: failed to find container "{id}" in store: {why}',
    "Exec": 'failed to find container "{id}" in store: {why}',
    "Attach": "failed to find container in store: {why}",
    "ContainerStats": "failed to find container: {why}",
    "UpdateContainerResources": "failed to find container: {why}",
}
_LONGEST_SHOWN: Final = 256


def find(table: PrefixTable[T], object_id: str, text: str) -> T:
    """By id or unique prefix. Raises CriError: NOT_FOUND, or UNKNOWN for an empty or ambiguous
    id (CRI-022)."""
    exact = table.get(object_id)
    if exact is not None:
        return exact
    if not object_id:
        raise unknown(text.format(id="", why="Prefix can't be empty"))
    ids = table.at_most_two(object_id)
    if len(ids) == 1:
        return table[ids[0]]
    name = shown(object_id)
    if ids:
        why = f"Multiple IDs found with provided prefix: {name}"
        raise unknown(text.format(id=name, why=why))
    raise CriError(grpc.StatusCode.NOT_FOUND, text.format(id=name, why="not found"))


def matching_ids(table: PrefixTable[Any], wanted: str) -> set[str] | None:
    """Ids that a list filter's id field selects: None for an empty field, else one or none
    (CRI-022: an unknown or ambiguous prefix selects nothing)."""
    if not wanted:
        return None
    if wanted in table:
        return {wanted}
    ids = table.at_most_two(wanted)
    return set(ids) if len(ids) == 1 else set()


def shown(text: str) -> str:
    """`text` for an error message; a long one is cut and its length told.

    >>> shown("x" * 300).endswith("x... (300 characters)")
    True
    """
    if len(text) <= _LONGEST_SHOWN:
        return text
    return f"{text[:_LONGEST_SHOWN]}... ({len(text)} characters)"
