"""What a tenant sees and does at the API server that it shares: all in a namespace of its own."""

from __future__ import annotations

import re
from typing import Any, Final

from fakekubeapi import FakeApi
from fakekubeapi.errors import StatusError
from kubelet_conformance.harness.api_server import NAMESPACE, ApiServer
from kubelet_conformance.harness.sharing.tenancy import Tenancy
from kubeobjects.structs import replace

OWN_PATH: Final = re.compile(rf"(/api/v1|/apis/[^/]+/[^/]+)/namespaces/{NAMESPACE}/.+")
KEPT: Final = ("pods", "events", "secrets", "configmaps", "persistentvolumeclaims")
"""Kinds of objects that are in the namespace of the pods."""
OF_PODS: Final = re.compile(r"pods/|/pods|events|secrets|configmaps|serviceaccounts|claims")
"""What a regular expression names that is for requests about such objects."""
OF_ALL: Final = re.compile(r"nodes|leases|storage|reviews|/v1/pods|classes|certificates|/v1/watch")
"""What one names that is for others, too; all pods of the cluster are listed at `/api/v1/pods`."""
EVERYTHING: Final = "/"


class TenantApi(ApiServer):
    """`ApiServer` of a tenant; `whole` is shared."""

    def __init__(self, whole: FakeApi, tenancy: Tenancy) -> None:
        super().__init__(whole, later=True)
        self._whole = whole
        self._tenancy = tenancy
        self._changes = 0
        self._seen = whole.store.revision
        self.fake: Any = TenantFakeApi(whole, tenancy)

    @property
    def revision(self) -> int:
        """A number that changes with the tenant's objects."""
        revision = self._whole.store.revision
        if revision != self._seen:
            self._changes += self._changed()
            self._seen = revision
        return self._changes

    def _changed(self) -> int:
        """How often one of the tenant's objects has changed since the last look, or may have."""
        try:
            changes = self._whole.store.changes_since(self._seen)
        except StatusError:  # they are forgotten
            return 1
        return sum(change.key.namespace == self._tenancy.namespace for change in changes)

    def _is_own(self, namespace: str) -> bool:
        return namespace == self._tenancy.namespace

    def _own(self, stored: dict[str, Any]) -> dict[str, Any]:
        own: dict[str, Any] = self._tenancy.own_object(stored)
        return own

    def _items(self, plural: str) -> list[dict[str, Any]]:
        items = self._whole.store.items(plural, self._tenancy.namespace)
        return [self._tenancy.own_object(item) for item in items]

    def node(self, name: str) -> dict[str, Any]:
        """Nothing: the Node is not the tenant's."""
        return {}

    def stored(self, plural: str, name: str) -> dict[str, Any]:
        """One of the tenant's objects; {} when there is none."""
        if plural not in KEPT:
            raise self._tenancy.refuse(f"{plural} at the API server")
        return super().stored(plural, name)

    def vanish(self, name: str) -> None:
        raise self._tenancy.refuse("a pod that no watch is told of")

    async def request(self, method: str, path: str, **arguments: Any) -> Any:
        """Send a request as a user who knows the case's namespace alone. See `ApiServer`."""
        if not OWN_PATH.fullmatch(path):
            raise self._tenancy.refuse(f"{method} {path}")
        path = path.replace(f"/namespaces/{NAMESPACE}/", f"/namespaces/{self._tenancy.namespace}/")
        if isinstance(body := arguments.get("body"), dict):
            is_pod = method == "POST" and path.endswith("/pods")
            shared = self._tenancy.shared_pod if is_pod else self._tenancy.shared_object
            arguments["body"] = shared(body)
        self.by_users.add(self._whole.request_count + 1)
        answer = await self._whole.request(method, path, undisturbed=True, **arguments)
        body = self._tenancy.own_object(answer.body)
        if answer.status >= 300:
            reason = body.get("message") if isinstance(body, dict) else body
            raise RuntimeError(f"{method} {path} was refused with {answer.status}: {reason}")
        return body


class TenantFakeApi:
    """Of fakekubeapi's `FakeApi` what concerns the tenant's namespace alone."""

    def __init__(self, whole: FakeApi, tenancy: Tenancy) -> None:
        self._whole = whole
        self._tenancy = tenancy
        self._shown: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        raise self._tenancy.refuse(f"{name} of the API server")

    def gives_uid(self, plural: str, name: str, uid: str) -> None:
        """See `FakeApi.gives_uid`."""
        self._whole.gives_uid(plural, name, uid, namespace=self._tenancy.namespace)

    def fails(self, method: str | None, path_regex: str, *arguments: Any, **more: Any) -> Any:
        """See `FakeApi.fails`."""
        return self._whole.fails(method, self._own(path_regex), *arguments, **more)

    def requests(self, method: str | None = None, path: str | None = None) -> list[Any]:
        """See `FakeApi.requests`."""
        records = self._whole.requests(method, self._own(path or EVERYTHING))
        return [self._record(record) for record in records]

    def _record(self, record: Any) -> Any:
        shown = self._shown.get(record.seq)
        if shown is None:
            path = self._tenancy.own_text(record.path)
            body = self._tenancy.own_object(record.body)
            shown = self._shown[record.seq] = replace(record, path=path, body=body)
        return shown

    def _own(self, pattern: str) -> str:
        """A regular expression for the paths of the tenant's namespace that `pattern` is of. Raises
        MustBeAlone for one that is of other paths, too."""
        if OF_ALL.search(pattern) or (pattern != EVERYTHING and not OF_PODS.search(pattern)):
            raise self._tenancy.refuse(f"requests to {pattern}")
        own = self._tenancy.namespace
        pattern = pattern.replace(f"/{NAMESPACE}/", f"/{own}/")
        return rf"^(?=.*/namespaces/{own}/).*?(?:{pattern})"
