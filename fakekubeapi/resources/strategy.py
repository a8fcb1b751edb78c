"""How objects of a resource are completed, checked, changed and deleted: the rules common to all.

`prepare_*` methods change the object they are given, a copy that is not stored yet; `validate_*`
methods only look. Subclasses add the rules of one resource.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from fakekubeapi.errors import Cause, forbidden_field, invalid_value, required

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
    """Whether the name is a subdomain of RFC 1123, as the names of most objects have to be."""
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def is_label(name: str) -> bool:
    """Whether the name is a label of RFC 1123, as the names of containers have to be."""
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


class Strategy:
    """The rules every resource follows unless its own subclass says otherwise."""

    allow_create_on_update: ClassVar[bool] = False
    """Whether PUT of an object that does not exist creates it."""
    needs_resource_version: ClassVar[bool] = False
    """Whether PUT without metadata.resourceVersion is refused."""
    returns_deleted: ClassVar[bool] = False
    """Whether DELETE answers with the object instead of a Status."""
    has_generation: ClassVar[bool] = False
    """Whether metadata.generation counts changes of spec and the request for deletion."""
    graceful: ClassVar[bool] = False
    """Whether a deletion is marked in the object even if it is carried out at once."""
    any_name: ClassVar[bool] = False
    """Whether a name may be anything that can be a part of a path, not only a subdomain."""
    admitted: ClassVar[tuple[str, ...]] = ()
    """The fields that the server adds to a new object after its owner has been noted; who sends
    them owns them."""
    field_labels: ClassVar[tuple[str, ...]] = ()
    """The fields that field selectors may name beside metadata.name and metadata.namespace."""

    def prepare_create(self, obj: Object) -> None:
        """Fill in defaults, drop what a client may not set."""

    def set_requester(self, obj: Object, user: Object) -> None:
        """Note in a new object whose it is; `user`: a `UserInfo`."""

    def set_times(self, new: Object, old: Object, now: str) -> None:
        """Set the times in a changed object that the server sets, to `now`."""

    def validate_create(self, obj: Object) -> list[Cause]:
        """The wrong fields of a new object."""
        return validate_metadata(obj, any_name=self.any_name)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """Put back into `new` the parts of `old` that this request may not change: one to /status
        changes status and metadata only, one to the object all but status."""
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
        """The fields of a changed object that are wrong, or may not change so."""
        return validate_metadata(new, any_name=self.any_name)

    def delete_grace_s(self, obj: Object, asked_s: int | None) -> int:
        """The grace period of a delete that asks for `asked_s` seconds (None: it names none); 0:
        the object goes at once. Only pods have one."""
        return 0


def is_path_segment(name: str) -> bool:
    """Whether the name can be a part of a path."""
    return name not in (".", "..") and not {"/", "%"} & set(name)


def validate_metadata(obj: Object, *, any_name: bool = False) -> list[Cause]:
    """The wrong fields of the metadata: a name that is missing or malformed (`any_name`: that can
    be no part of a path), labels and annotations that are not strings."""
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    causes: list[Cause] = []
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif any_name:
        if not is_path_segment(name):
            shown = "may not be '.' or '..', and may not contain '/' or '%'"
            causes.append(invalid_value("metadata.name", name, shown))
    elif not is_subdomain(name):
        causes.append(invalid_value("metadata.name", name, SUBDOMAIN_RULE))
    for field in ("labels", "annotations"):
        for key, value in (metadata.get(field) or {}).items():
            if not isinstance(value, str):
                causes.append(invalid_value(f"metadata.{field}[{key}]", value, "must be a string"))
    return causes


class ImmutableAware(Strategy):
    """ConfigMaps and Secrets: with `immutable: true` the data cannot change any more."""

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        if old.get("immutable"):
            for field in ("data", "binaryData", "immutable"):
                if new.get(field) != old.get(field):
                    causes.append(
                        forbidden_field(field, "field is immutable when `immutable` is set")
                    )
        return causes
