"""`metadata.managedFields`: who owns which fields, since when. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fakekubeapi.apply.field_sets import Fields, from_fields_v1, to_fields_v1

APPLY: Final = "Apply"
UPDATE: Final = "Update"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""Who owns what was there before the first apply of an object that has no managedFields."""
ANCIENT_CHANGES: Final = "ancient-changes"
"""Who owns what the oldest of more than `MAX_UPDATE_MANAGERS` owned."""
MAX_UPDATE_MANAGERS: Final = 10
UNKNOWN: Final = "unknown"


class Manager(Struct, frozen=True):
    """A client that writes, and how it writes. A client that both applies and updates is two
    managers."""

    name: str
    operation: str
    """`Apply` or `Update`."""
    api_version: str
    subresource: str = ""

    @property
    def text(self) -> str:
        """As conflicts name it, without its time."""
        below = f' with subresource "{self.subresource}"' if self.subresource else ""
        used = f" using {self.api_version}" if self.operation == UPDATE else ""
        return f'"{self.name}"{below}{used}'


class Owned(Struct, frozen=True):
    """The fields of one manager, and the time of its last write (RFC 3339; "": unknown)."""

    fields: Fields
    time: str


Managers = Mapping[Manager, Owned]


def manager_name(given: str, user_agent: str) -> str:
    """The name of who writes: the one given as `fieldManager`, else the program of the User-Agent,
    at most 128 characters of it.

    >>> manager_name("", "kubelet/v1.36.0 (linux/amd64)")
    'kubelet'
    """
    program = "".join(c if c.isprintable() else "?" for c in user_agent.partition("/")[0])
    return given or program[:128] or UNKNOWN


def decode(entries: Any) -> dict[Manager, Owned]:
    """Read a `managedFields` list. Raises: ValueError with the reason when it is malformed."""
    managers: dict[Manager, Owned] = {}
    for entry in entries or ():
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise ValueError(f"operation: wanted {APPLY} or {UPDATE}, got {operation!r}")
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            raise ValueError(f"fieldsType: wanted FieldsV1, got {entry['fieldsType']!r}")
        manager = Manager(
            entry.get("manager", ""),
            operation,
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        fields = from_fields_v1(entry.get("fieldsV1") or {})
        managers[manager] = Owned(fields, entry.get("time") or "")
    return managers


def encode(managers: Managers) -> list[dict[str, Any]]:
    """The `managedFields` list: appliers first, then by time. Managers that own nothing are not in
    it; the oldest of too many updaters are one, `ancient-changes`."""
    owners = _capped({m: owned for m, owned in managers.items() if owned.fields})
    return [
        _entry(manager, owners[manager])
        for manager in sorted(owners, key=lambda m: _rank(m, owners[m]))
    ]


def _rank(manager: Manager, owned: Owned) -> tuple[str, ...]:
    return (
        manager.operation,
        owned.time,
        manager.name,
        manager.api_version,
        manager.subresource,
    )


def _entry(manager: Manager, owned: Owned) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(owned.fields),
        "subresource": manager.subresource,
    }
    return {key: value for key, value in entry.items() if value != ""}


def _capped(managers: dict[Manager, Owned]) -> dict[Manager, Owned]:
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    if surplus <= 0:
        return managers
    oldest = sorted(updaters, key=lambda m: _rank(m, managers[m]))[: surplus + 1]
    remaining = {manager: owned for manager, owned in managers.items() if manager not in oldest}
    bucket = Manager(ANCIENT_CHANGES, UPDATE, oldest[-1].api_version)
    merged = _union(managers[manager] for manager in oldest)
    remaining[bucket] = _union((remaining.get(bucket, merged), merged))
    return remaining


def _union(owners: Iterable[Owned]) -> Owned:
    those = list(owners)
    fields: Fields = frozenset().union(*(owned.fields for owned in those))
    return Owned(fields, max(owned.time for owned in those))
