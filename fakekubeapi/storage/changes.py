"""What the store of the fake API server has a history of: changes of objects, by their keys, and
the places where objects and changes are. Pure.

A list or a watch is of one place, as far as its path and field selector say it: the pods of a node,
the ConfigMap of a name. What its other selectors want is looked at object by object.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from fakekubeapi.storage.selectors import field_value

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


class Place(NamedTuple):
    """What a list or a watch is of. `resource` "": everything; `namespace` None: of all. `path`: a
    field that has that `value`; "": the objects have nothing in common."""

    resource: str = ""
    namespace: str | None = None
    path: str = ""
    value: str = ""


EVERYTHING: Final = Place()


def values_of(change: Change, path: str) -> set[str]:
    """What the object has in that field after the change and had before it: two values if the
    change takes it from one place to another, which is for watches of both."""
    values = {field_value(change.object, path)}
    if change.previous is not None:
        values.add(field_value(change.previous, path))
    return values
