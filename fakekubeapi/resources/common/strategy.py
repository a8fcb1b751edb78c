"""How objects of a resource are completed, checked, changed and deleted: the rules common to all.

`prepare_*` methods change the object they are given, a copy that is not stored yet; `validate_*`
methods only look. Subclasses add the rules of one resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from kubeobjects.causes import Cause
from kubeobjects.metadata import (
    finalizer_causes,
    metadata_causes,
    name_causes,
    new_finalizer_causes,
    server_owned_causes,
)
from kubeobjects.names import subdomain_problems

Object = dict[str, Any]


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
    strict_finalizers: ClassVar[bool] = True
    """Whether finalizers without a domain have to be known ones, if this is of the core group."""
    looks: ClassVar[int] = 4
    """How often the API server looks at the metadata of an object that is changed, and tells what
    is wrong with them; of one that a subresource changes, three times at most."""
    graceful: ClassVar[bool] = False
    """Whether a deletion is marked in the object even if it is carried out at once."""
    admitted: ClassVar[tuple[str, ...]] = ()
    """The fields that the server adds to a new object after its owner has been noted; who sends
    them owns them."""
    field_labels: ClassVar[tuple[str, ...]] = ()
    """The fields that field selectors may name beside metadata.name and metadata.namespace."""

    def prepare_create(self, obj: Object) -> None:
        """Fill in defaults, drop what a client may not set."""

    def set_requester(self, obj: Object, user: Object) -> None:
        """Note in a new object which user created it; `user`: a `UserInfo`."""

    def admit(self, obj: Object) -> None:
        """Add to a new or changed object what the server chooses, and drop what is switched off,
        after the owners of its fields have been noted."""

    def set_times(self, new: Object, old: Object, now: str) -> None:
        """Set the times in a changed object that the server sets, to `now`."""

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        """The wrong fields of a new object."""
        metadata = obj["metadata"]
        yield from name_causes(metadata, self.name_rule)
        yield from metadata_causes(metadata)
        yield from finalizer_causes(metadata, core=self._strict(obj))

    def name_rule(self, name: str) -> list[str]:
        """What is wrong with a name."""
        return subdomain_problems(name)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """Put back into `new` the parts of `old` that this request may not change: one to /status
        changes status and metadata only, one to the object all but status."""
        if subresource == "status":
            fields = {key: value for key, value in old.items() if key not in ("metadata", "status")}
            for key in [key for key in new if key not in ("metadata", "status")]:
                del new[key]
            new.update(fields)
        elif "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        """The fields of a changed object that are wrong, or may not change so."""
        yield from new_finalizer_causes(new["metadata"], old["metadata"])
        looks = min(self.looks, 3) if subresource else self.looks
        wrong = list(metadata_causes(new["metadata"]))
        finalizers = list(finalizer_causes(new["metadata"], core=self._strict(new)))
        first = min(looks, 3)  # the look from which on finalizers are looked at, too
        for look in range(1, looks + 1):
            yield from wrong
            if look < first:
                yield from server_owned_causes(new["metadata"], old["metadata"])
            else:
                yield from finalizers

    def delete_grace_s(self, obj: Object, asked_s: int | None) -> int:
        """The grace period of a delete that asks for `asked_s` seconds (None: it names none); 0:
        the object goes at once. Only pods have one."""
        return 0

    def _strict(self, obj: Object) -> bool:
        return self.strict_finalizers and obj.get("apiVersion") == "v1"
