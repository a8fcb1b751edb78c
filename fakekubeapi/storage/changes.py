"""What the store of the fake API server has a history of: changes of objects, by their keys."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from msgspec import Struct

Object = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Key(NamedTuple):
    """What identifies a stored object; sorted, keys are in storage order."""

    resource: str
    """The qualified name: `pods`, `leases.coordination.k8s.io`."""
    namespace: str
    """"" for cluster-scoped objects."""
    name: str


class Change(Struct, frozen=True):
    """One entry of the history."""

    revision: int
    type: ChangeType
    key: Key
    object: Object
    """The object after the change; a deleted one as it was last, with this revision."""
    previous: Object | None
    """The object before the change; None if it is new."""
