"""The requests that the kubelet makes of an API server, and their one error.

What must never happen here: an exception other than `ApiError` for anything the server or the
network did; a retry that the caller did not ask for. Over HTTP: `refkubelet.api.lightkube_client`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from refkubelet.api.kinds import Kind

T = TypeVar("T")


class ApiError(Exception):
    """A request that did not succeed.

    `status` is the HTTP status, or 0 when no answer came; `reason` the API's reason
    (`NotFound`, `AlreadyExists`, `Conflict`, ...); `message` the server's text.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else message)
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """The object has changed meanwhile, or is there already."""
        return self.status == 409


class ObjectList(Struct, Generic[T], frozen=True):
    """The answer to a list: the objects, and the version to watch from."""

    items: tuple[T, ...]
    resource_version: str


class WatchEvent(Struct, Generic[T], frozen=True):
    """One line of a watch: type ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: T


class ObjectReader(Protocol):
    """Reads objects that are named. Raises `ApiError`."""

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T: ...


class ObjectLister(Protocol):
    """Reads the objects of a kind that a field selector chooses (`paths`; "": all of them), and
    tells of their changes: the pods of a node (SRC-050), one Secret (NODE-207), the services of all
    namespaces (LIFE-137). Raises `ApiError`."""

    async def list(self, kind: Kind[T], namespace: str = "", *, fields: str = "") -> ObjectList[T]:
        """Reads them, and the version to watch from."""

    def watch(
        self, kind: Kind[T], resource_version: str, namespace: str = "", *, fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        """Events after that version; ends when the server ends the watch."""


class ApiClient(ObjectReader, ObjectLister, Protocol):
    """The requests of the kubelet. Every method raises `ApiError`."""

    async def create(self, kind: Kind[T], body: Mapping[str, Any]) -> T:
        """In the namespace that `body` names."""

    async def replace(self, kind: Kind[T], body: Mapping[str, Any]) -> T:
        """PUT; the metadata.resourceVersion in `body` is a precondition: after a change by another
        it answers 409."""

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> T:
        """A strategic merge patch, of the object or of its `subresource` (`status`). A metadata.uid
        in it is a precondition (STAT-022)."""

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        namespace: str = "",
        *,
        grace_period_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete; `uid` is a precondition: another object of that name answers 409."""

    async def create_token(
        self, namespace: str, service_account: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """POST of a TokenRequest to the service account's `token` subresource (NODE-207)."""

    async def create_review(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST of a TokenReview or SubjectAccessReview; the answer has its status (SRV-013)."""
