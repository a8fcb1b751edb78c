"""What a tenant of a shared kubelet is called, and the texts in which the kubelet says so.

A tenant's pods are in a namespace of its own, whose name is as long as that of the pods' namespace
in the case. So one may be put for the other in encoded messages, too, whose lengths are counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kubelet_conformance.harness.api_server import NAMESPACE
from kubelet_conformance.harness.sharing.modest import why_not_shared

if TYPE_CHECKING:  # cases are listed faster without protobuf
    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")
J = TypeVar("J")
NAMED: Final = ("namespace",)
"""The fields of objects that name a namespace."""
MOST_PODS: Final = 6
"""A kubelet takes 110 pods."""


class MustBeAlone(Exception):
    """A case does or asks what reaches beyond its own pods: it needs a kubelet to itself."""


def namespace_of(number: int) -> str:
    """The namespace of a tenant, by its number among those of its kubelet.

    >>> namespace_of(17), len(namespace_of(17)) == len("default")
    ('t-00017', True)
    """
    return f"t-{number:0{len(NAMESPACE) - 2}}"


@dataclass(slots=True)
class Tenancy:
    """One tenant. `namespace`: that of its pods, at the kubelet."""

    namespace: str
    reasons: list[str] = field(default_factory=list)
    """Why its case must be alone; empty as long as nothing shows that."""
    pods: int = 0
    """How many pods its case has made."""

    def refuse(self, what: str) -> MustBeAlone:
        """The exception for what a tenant may not do. The reason is kept, whoever catches it."""
        self.reasons.append(what)
        return MustBeAlone(f"a case that shares its kubelet cannot do that: {what}")

    def own_text(self, text: str) -> str:
        """A text of the kubelet, as it would be in a kubelet of the case's own."""
        return text.replace(self.namespace, NAMESPACE)

    def own_message(self, message: M) -> M:
        """A message of the kubelet or the runtime, likewise."""
        data = message.SerializeToString()
        own = data.replace(self.namespace.encode(), NAMESPACE.encode())
        return message if own == data else type(message).FromString(own)

    def own_object(self, value: J) -> J:
        """A JSON value, likewise."""
        own: J = json.loads(self.own_text(json.dumps(value)))
        return own

    def shared_object(self, value: Any) -> Any:
        """A JSON value of the case, as it goes to the kubelet: what names the namespace of the
        case's pods names the tenant's. Raises MustBeAlone for one that names another namespace, and
        for a pod, or a change of one, that takes from the node what others may want."""
        if isinstance(value, Mapping):
            if why := why_not_shared(value):
                raise self.refuse(why)
            return {key: self._shared_field(key, entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.shared_object(entry) for entry in value]
        return value

    def file(self, name: str) -> str:
        """What a file of static pods is called in the directory that all tenants share."""
        if "/" in name:
            raise self.refuse("a directory below that of the static pods")
        return f"{self.namespace}-{name}"

    def manifest(self, text: str) -> str:
        """The manifest of a static pod of the case, as the kubelet gets it."""
        try:
            pod = json.loads(text)
        except ValueError:
            pod = {}
        if not isinstance(pod, dict) or pod.get("kind") != "Pod":
            raise self.refuse("a static pod's file that is no pod in JSON")
        metadata = {"namespace": NAMESPACE, **pod.get("metadata", {})}
        return json.dumps(self.shared_pod({**pod, "metadata": metadata}), indent=1)

    def shared_pod(self, pod: Mapping[str, Any]) -> Any:
        """A pod of the case, as it goes to the kubelet. Raises MustBeAlone for one that takes from
        the node what others may want, or has a UID that others may have."""
        self.pods += 1
        if self.pods > MOST_PODS:
            raise self.refuse(f"more than {MOST_PODS} pods")
        if (pod.get("metadata") or {}).get("uid"):
            raise self.refuse("a pod with a UID of the case's choice")
        return self.shared_object(pod)

    def _shared_field(self, key: str, value: Any) -> Any:
        if key not in NAMED or not isinstance(value, str):
            return self.shared_object(value)
        if value != NAMESPACE:
            raise self.refuse(f"the namespace {value!r}")
        return self.namespace
