"""Decides who owns which field after a write, which fields conflict, and how an applied object
changes the stored one. Pure.

An update (POST, PUT, other patches) makes the writer the owner of every field that it changes. An
apply lists all fields that its manager wants. From then on the manager owns them, together with
other managers that want the same value. A field that another manager owns and that would change is
a conflict, unless the apply is forced. A field that the manager applied before and does not apply
now is removed, unless another manager owns it, too. Kubernetes documentation:
reference/using-api/server-side-apply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from fakekubeapi.apply.field_sets import NONE, Fields, Path, path_text, without_below
from fakekubeapi.apply.managers import (
    BEFORE_FIRST_APPLY,
    UPDATE,
    Manager,
    Managers,
    Owned,
)
from fakekubeapi.apply.structure import Struct
from fakekubeapi.apply.walk import difference, fields_of, merged, with_declared_parents, without

_NOBODYS: Final = frozenset(
    (
        *(("f:apiVersion",), ("f:kind",), ("f:metadata",)),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"),
                *("generation", "managedFields", "resourceVersion"),
            )
        ),
    )
)
"""What has no owner: an object's identity, and what the server alone writes."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL: Final = "kubectl"


class Conflicts(Exception):
    """An apply that would change fields of other managers."""

    def __init__(self, found: Sequence[tuple[Manager, str, Path]]) -> None:
        super().__init__("")
        self.found = found
        """The other manager, when it last wrote, and the field; by manager and field."""

    @property
    def message(self) -> str:
        """What `kubectl apply --server-side` prints."""
        texts = [(manager.text, path_text(path)) for manager, _, path in self.found]
        if len(texts) == 1:
            name, path = texts[0]
            return f"Apply failed with 1 conflict: conflict with {name}: {path}"
        lines: list[str] = []
        for name in sorted({name for name, _ in texts}):
            lines.append(f"conflicts with {name}:")
            lines += [f"- {path}" for other, path in texts if other == name]
        return f"Apply failed with {len(texts)} conflicts: " + "\n".join(lines)

    @property
    def causes(self) -> list[dict[str, str]]:
        """The `details.causes` of the Status."""
        return [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {manager.text}",
                "field": path_text(path),
            }
            for manager, time, path in self.found
        ]


class Write(msgspec.Struct, frozen=True):
    """A write: by which manager, when, and which fields this request cannot change."""

    manager: Manager
    time: str
    ignored: tuple[Path, ...] = ()
    """Status, for one to the object; spec, for one to /status: nobody gets to own these."""


def after_update(
    managers: Managers, old: dict[str, Any], new: dict[str, Any], shape: Struct, write: Write
) -> dict[Manager, Owned]:
    """The managers after a write that is not an apply. `old`: for a new object its empty form."""
    change = difference(old, new, shape)
    changed = _ownable(change.added | change.modified, write.ignored)
    after = _released(managers, change.added | change.modified | change.removed, write.manager)
    had = managers.get(write.manager, Owned(NONE, ""))
    owned_fields = (had.fields - change.removed) | changed
    after[write.manager] = Owned(owned_fields, write.time if changed else had.time)
    return {manager: owned for manager, owned in after.items() if owned.fields}


def after_apply(
    managers: Managers,
    live: dict[str, Any],
    applied: dict[str, Any],
    shape: Struct,
    write: Write,
    *,
    force: bool,
) -> tuple[dict[str, Any], dict[Manager, Owned]]:
    """The object and its managers after an apply. `live` and `applied` have no managedFields.

    Raises: Conflicts, unless `force`.
    """
    had = managers.get(write.manager, Owned(NONE, "")).fields
    claims, applied_fields = dict(managers), fields_of(applied, shape)
    claims[write.manager] = Owned(without_below(applied_fields, write.ignored), write.time)
    new = _pruned(merged(live, applied, shape), had, claims.values(), shape)
    claims[write.manager] = Owned(_ownable(applied_fields, write.ignored), write.time)
    change = difference(live, new, shape)
    claimed = without_below(change.added | change.modified, write.ignored)
    clashes = _conflicts(managers, claimed, write.manager)
    if clashes and not force:
        clashes = _not_of_client_side_apply(clashes, live, shape, write.manager)
        if clashes:
            raise Conflicts(clashes)
    after = _released(claims, claimed | change.removed, write.manager)
    return new, {manager: owned for manager, owned in after.items() if owned.fields}


def applied_as_new(applied: dict[str, Any], shape: Struct, write: Write) -> dict[Manager, Owned]:
    """The managers of an object that an apply creates."""
    owned = Owned(_ownable(fields_of(applied, shape), write.ignored), write.time)
    return {write.manager: owned} if owned.fields else {}


def before_first_apply(
    empty: dict[str, Any], live: dict[str, Any], shape: Struct, write: Write
) -> dict[Manager, Owned]:
    """The managers of an object that has none yet, before the first apply to it: one manager,
    `before-first-apply`, owns all fields that it has. `empty`: the empty form of its
    kind."""
    manager = Manager(BEFORE_FIRST_APPLY, UPDATE, write.manager.api_version)
    return after_update({}, empty, live, shape, Write(manager, write.time, write.ignored))


def _ownable(fields: Fields, ignored: tuple[Path, ...]) -> Fields:
    return without_below(fields - _NOBODYS, ignored)


def _released(managers: Managers, fields: Fields, writer: Manager) -> dict[Manager, Owned]:
    """The managers after everybody but the writer has lost these fields."""
    return {
        manager: owned if manager == writer else Owned(owned.fields - fields, owned.time)
        for manager, owned in managers.items()
    }


def _conflicts(
    managers: Managers, taken: Fields, writer: Manager
) -> list[tuple[Manager, str, Path]]:
    clashes = [
        (manager, owned.time, path)
        for manager, owned in managers.items()
        if manager != writer
        for path in owned.fields & taken
    ]
    return sorted(clashes, key=lambda clash: (clash[0].name, clash[0].operation, clash[2]))


def _not_of_client_side_apply(
    found: list[tuple[Manager, str, Path]], live: dict[str, Any], shape: Struct, writer: Manager
) -> list[tuple[Manager, str, Path]]:
    """The conflicts without those of `kubectl` with itself: fields that `kubectl apply` set
    earlier, on the client side, are listed in its annotation, and belong to it when it changes to
    server-side apply."""
    noted = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    if writer.name != _KUBECTL or not noted:
        return found
    try:
        last = json.loads(noted)
    except (ValueError, RecursionError):
        return found
    if not isinstance(last, dict) or last.get("apiVersion") != writer.api_version:
        return found
    change = difference(last, live, shape)
    own = fields_of(last, shape) - change.added - change.modified - change.removed
    return [clash for clash in found if clash[2] not in own]


def _pruned(
    new: dict[str, Any], had: Fields, managers: Iterable[Owned], shape: Struct
) -> dict[str, Any]:
    """`new` without the fields that its manager owned before and that have no owner now. Fields
    that never had an owner are removed together with the object around them, or stay with it."""
    if not had:
        return new
    before = with_declared_parents(had, shape)
    owned: Fields = NONE.union(*(owner.fields for owner in managers))
    present = with_declared_parents(fields_of(new, shape), shape)

    def left(value: dict[str, Any]) -> Fields:
        return with_declared_parents(fields_of(value, shape), shape)

    rest = left(without(new, before, shape))
    rest = left(without(new, present - rest - with_declared_parents(owned, shape), shape))
    result: dict[str, Any] = without(new, (present - rest) & before, shape)
    return result
