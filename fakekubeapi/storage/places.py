"""Where objects and changes are: a kind, a namespace, the value of a field. Pure.

A list or a watch is of one place, as far as its path and field selector say it: the pods of a node,
the ConfigMap of a name. What its other selectors want is looked at object by object.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fakekubeapi.storage.changes import Change
from fakekubeapi.storage.selectors import field_value


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
