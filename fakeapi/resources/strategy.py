"""How objects of a resource are completed, checked, changed and deleted; the common rules.

`prepare_*` methods change the object they are given (the caller made it a moment ago);
`validate_*` methods only look. Subclasses add what one resource has of its own.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from fakeapi.errors import Cause, forbidden_field, invalid_value, required

Object = dict[str, Any]

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character"
)


def is_subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def is_label(name: str) -> bool:
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


class Strategy:
    """The rules every resource follows unless its own subclass says otherwise."""

    allow_create_on_update: ClassVar[bool] = False
    """PUT of an object that does not exist creates it."""
    needs_resource_version: ClassVar[bool] = False
    """PUT without metadata.resourceVersion is refused."""
    returns_deleted: ClassVar[bool] = False
    """DELETE answers with the object instead of a Status."""
    has_generation: ClassVar[bool] = False
    """metadata.generation counts changes of spec and the request for deletion."""
    graceful: ClassVar[bool] = False
    """A deletion is first marked in the object, then carried out."""
    field_labels: ClassVar[tuple[str, ...]] = ()
    """Field selectors beside metadata.name and metadata.namespace."""

    def prepare_create(self, obj: Object) -> None:
        """Fill in defaults, drop what a client may not set."""

    def validate_create(self, obj: Object) -> list[Cause]:
        return validate_metadata(obj)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """Keep the parts of `old` that this request may not touch: status outside /status, and
        everything but status and metadata inside it."""
        if subresource == "status":
            kept = {key: value for key, value in old.items() if key not in ("metadata", "status")}
            for key in [key for key in new if key not in ("metadata", "status")]:
                del new[key]
            new.update(kept)
        elif "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        return validate_metadata(new)

    def delete_grace_s(self, obj: Object, asked_s: int | None) -> int:
        """Seconds until the object goes; 0 = at once. Only pods have time to leave."""
        return 0


def validate_metadata(obj: Object) -> list[Cause]:
    """metadata.name is there and well formed; labels and annotations are maps of strings."""
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    causes: list[Cause] = []
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif not is_subdomain(name):
        causes.append(invalid_value("metadata.name", name, SUBDOMAIN_RULE))
    for field in ("labels", "annotations"):
        for key, value in (metadata.get(field) or {}).items():
            if not isinstance(value, str):
                causes.append(invalid_value(f"metadata.{field}[{key}]", value, "must be a string"))
    return causes


class ImmutableAware(Strategy):
    """ConfigMaps and Secrets: `immutable: true` freezes the data."""

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        if old.get("immutable"):
            for field in ("data", "binaryData", "immutable"):
                if new.get(field) != old.get(field):
                    causes.append(
                        forbidden_field(field, "field is immutable when `immutable` is set")
                    )
        return causes
