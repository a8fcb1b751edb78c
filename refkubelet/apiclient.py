"""The kubelet's view of an API server: a handful of requests, one error type.

lightkube reads the kubeconfig, makes credentials and TLS, and its HTTP client carries the requests;
the requests themselves are written here, because the kubelet needs two things lightkube's client
does not offer: preconditions on deletion, and to notice that a watch ended.

Longer than a sitting because it holds the interface and its one implementation side by side: a
method for a request, each a line or two.

What must never happen here: an exception other than `ApiError` for anything the server or the
network did; a retry that the caller did not ask for.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec
from lightkube.models.core_v1 import ConfigMap, Secret, Service
from lightkube.models.node_v1 import RuntimeClass

from refkubelet.model.objects import Node, Pod, decode_pod, to_dict

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

log = logging.getLogger(__name__)

STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
REQUEST_TIMEOUT_S: Final = 30.0
WATCH_LASTS_S: Final = 300  # then the server ends it (timeoutSeconds)
WATCH_SILENCE_S: Final = WATCH_LASTS_S + REQUEST_TIMEOUT_S  # nobody is at the other end any more


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
        return self.status == 409


@dataclass(frozen=True, slots=True)
class ObjectList(Generic[T]):
    """The answer to a list: the objects, and the version from which to watch on."""

    items: tuple[T, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch: type ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: T


class ApiClient(Protocol):
    """What the kubelet asks of an API server. Every method raises `ApiError`."""

    async def get_pod(self, namespace: str, name: str) -> Pod: ...

    async def create_pod(self, pod: Pod) -> Pod: ...

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        *,
        grace_period_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete; `uid` is a precondition: another pod of that name answers 409."""
        ...

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Pod:
        """Strategic-merge PATCH of the status subresource; `patch` carries metadata.uid
        (STAT-022)."""
        ...

    async def list_pods(self, node_name: str) -> ObjectList[Pod]:
        """All namespaces, spec.nodeName = `node_name` (SRC-050)."""
        ...

    def watch_pods(self, node_name: str, resource_version: str) -> AsyncIterator[WatchEvent[Pod]]:
        """Ends when the server ends the watch."""
        ...

    async def get_node(self, name: str) -> Node: ...

    async def create_node(self, node: Node) -> Node: ...

    async def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> Node: ...

    async def list_node(self, name: str) -> ObjectList[Node]:
        """The nodes of that name (none or one), for the node informer (SRC-050)."""
        ...

    def watch_node(self, name: str, resource_version: str) -> AsyncIterator[WatchEvent[Node]]: ...

    async def get_secret(self, namespace: str, name: str) -> Secret: ...

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap: ...

    async def get_runtime_class(self, name: str) -> RuntimeClass: ...

    async def list_services(self) -> ObjectList[Service]:
        """Those of all namespaces (LIFE-137)."""
        ...

    def watch_services(self, resource_version: str) -> AsyncIterator[WatchEvent[Service]]: ...

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> dict[str, Any]: ...

    async def patch_event(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> dict[str, Any]: ...


def _decode_node(value: dict[str, Any]) -> Node:
    node: Node = msgspec.convert(value, Node)
    return node


def _decode_secret(value: dict[str, Any]) -> Secret:
    secret: Secret = msgspec.convert(value, Secret)
    return secret


def _decode_config_map(value: dict[str, Any]) -> ConfigMap:
    config_map: ConfigMap = msgspec.convert(value, ConfigMap)
    return config_map


def _decode_service(value: dict[str, Any]) -> Service:
    service: Service = msgspec.convert(value, Service)
    return service


def _decode_runtime_class(value: dict[str, Any]) -> RuntimeClass:
    runtime_class: RuntimeClass = msgspec.convert(value, RuntimeClass)
    return runtime_class


def _one(decode: Callable[[dict[str, Any]], T], value: dict[str, Any]) -> T:
    """The object of an answer; one that makes no sense is the server's failure."""
    try:
        return decode(value)
    except msgspec.ValidationError as e:
        raise ApiError(0, "BadAnswer", f"the API server sent an unreadable object: {e}") from e


def _every(decode: Callable[[dict[str, Any]], T], value: Mapping[str, Any]) -> ObjectList[T]:
    """A list's objects; an unreadable one is logged and left out, so that it hides no other."""
    found = value.get("items") or []
    if not isinstance(found, list):
        raise ApiError(0, "BadAnswer", f"wanted a list of items, got {type(found).__name__}")
    items: list[T] = []
    for item in found:
        try:
            items.append(_identified(decode, item))
        except msgspec.ValidationError as e:
            name = _metadata(item).get("name")
            log.error("object %s from the API server is unreadable: %s", name, e)
    return ObjectList(tuple(items), _version(value))


def _identified(decode: Callable[[dict[str, Any]], T], value: Any) -> T:
    """An object that is kept by its UID. Raises `msgspec.ValidationError`."""
    if not _metadata(value).get("uid"):
        raise msgspec.ValidationError("it has no metadata.uid")
    return decode(value)


def _event(
    decode: Callable[[dict[str, Any]], T], kind: str, value: dict[str, Any]
) -> WatchEvent[T]:
    """A bookmark has nothing but a version."""
    if kind == "BOOKMARK":
        return WatchEvent(kind, _one(decode, value))
    return WatchEvent(kind, _one(lambda found: _identified(decode, found), value))


class LightkubeApiClient:
    """`ApiClient` over HTTP; make one with `from_kubeconfig` or `in_process`."""

    def __init__(self, http: httpx2.AsyncClient, server: str) -> None:
        self._http = http
        self.server = server

    @classmethod
    def from_kubeconfig(cls, path: str | Path) -> LightkubeApiClient:
        """A client for the current context of that file.

        Raises `ConfigError` naming the file when it cannot be used.
        """
        from refkubelet.config.kubeconfig import read_kubeconfig

        config = read_kubeconfig(path)
        return cls._from_config(config, transport=None)

    @classmethod
    def in_process(
        cls, transport: httpx2.AsyncBaseTransport, server: str = "http://fakeapi"
    ) -> LightkubeApiClient:
        """A client whose requests go to `transport` and never to a socket."""
        from lightkube.config.kubeconfig import SingleConfig
        from lightkube.config.models import Cluster, Context, User

        config = SingleConfig(
            context_name="in-process",
            context=Context(cluster="in-process"),
            cluster=Cluster(server=server, insecure=True),
            user=User(),
        )
        return cls._from_config(config, transport=transport)

    @classmethod
    def _from_config(
        cls, config: Any, transport: httpx2.AsyncBaseTransport | None
    ) -> LightkubeApiClient:
        import httpx2
        from lightkube.config.client_adapter import AsyncClient, ConnectionParams

        params = ConnectionParams(
            timeout=httpx2.Timeout(REQUEST_TIMEOUT_S),
            trust_env=False,
            transport=transport,  # type: ignore[arg-type]  # typed for the sync client only
        )
        return cls(AsyncClient(config, params), config.cluster.server)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    # -- pods ----------------------------------------------------------------------------------

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return _one(decode_pod, await self._json("GET", _pod_path(namespace, name)))

    async def create_pod(self, pod: Pod) -> Pod:
        body = {"apiVersion": "v1", "kind": "Pod"} | to_dict(pod)
        path = f"/api/v1/namespaces/{body['metadata']['namespace']}/pods"
        return _one(decode_pod, await self._json("POST", path, body=body))

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        *,
        grace_period_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        await self._json("DELETE", _pod_path(namespace, name), body=options)

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Pod:
        path = _pod_path(namespace, name) + "/status"
        return _one(decode_pod, await self._json("PATCH", path, body=patch))

    async def list_pods(self, node_name: str) -> ObjectList[Pod]:
        value = await self._json("GET", "/api/v1/pods", params=_on_node(node_name))
        return _every(decode_pod, value)

    async def watch_pods(
        self, node_name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[Pod]]:
        params = _on_node(node_name) | _watching(resource_version)
        async for kind, value in self._watch("/api/v1/pods", params):
            yield _event(decode_pod, kind, value)

    # -- the node ------------------------------------------------------------------------------

    async def get_node(self, name: str) -> Node:
        return _one(_decode_node, await self._json("GET", f"/api/v1/nodes/{name}"))

    async def create_node(self, node: Node) -> Node:
        body = {"apiVersion": "v1", "kind": "Node"} | to_dict(node)
        return _one(_decode_node, await self._json("POST", "/api/v1/nodes", body=body))

    async def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> Node:
        return _one(
            _decode_node, await self._json("PATCH", f"/api/v1/nodes/{name}/status", body=patch)
        )

    async def list_node(self, name: str) -> ObjectList[Node]:
        value = await self._json("GET", "/api/v1/nodes", params=_named(name))
        return _every(_decode_node, value)

    async def watch_node(self, name: str, resource_version: str) -> AsyncIterator[WatchEvent[Node]]:
        params = _named(name) | _watching(resource_version)
        async for kind, value in self._watch("/api/v1/nodes", params):
            yield _event(_decode_node, kind, value)

    # -- what pods refer to --------------------------------------------------------------------

    async def get_secret(self, namespace: str, name: str) -> Secret:
        path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        return _one(_decode_secret, await self._json("GET", path))

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap:
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        return _one(_decode_config_map, await self._json("GET", path))

    async def get_runtime_class(self, name: str) -> RuntimeClass:
        path = f"/apis/node.k8s.io/v1/runtimeclasses/{name}"
        return _one(_decode_runtime_class, await self._json("GET", path))

    async def list_services(self) -> ObjectList[Service]:
        return _every(_decode_service, await self._json("GET", "/api/v1/services"))

    async def watch_services(self, resource_version: str) -> AsyncIterator[WatchEvent[Service]]:
        params = _watching(resource_version)
        async for kind, value in self._watch("/api/v1/services", params):
            yield _event(_decode_service, kind, value)

    # -- events --------------------------------------------------------------------------------

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> dict[str, Any]:
        return await self._json("POST", f"/api/v1/namespaces/{namespace}/events", body=event)

    async def patch_event(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> dict[str, Any]:
        path = f"/api/v1/namespaces/{namespace}/events/{name}"
        return await self._json("PATCH", path, body=patch)

    # -- wire ----------------------------------------------------------------------------------

    async def _json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One request with a JSON answer, given up after `REQUEST_TIMEOUT_S`."""
        import httpx2

        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = STRATEGIC_MERGE if method == "PATCH" else "application/json"
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                response = await self._http.request(
                    method, path, params=params, content=content, headers=headers
                )
        except TimeoutError:
            message = f"{method} {self.server}{path}: no answer within {REQUEST_TIMEOUT_S:g} s"
            raise ApiError(0, "Timeout", message) from None
        except httpx2.HTTPError as e:
            raise ApiError(0, type(e).__name__, f"{method} {self.server}{path}: {e}") from e
        if response.status_code >= 400:
            raise _error_of(response.status_code, response.content)
        return _object(response.content, f"{method} {path}")

    async def _watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """The lines of a watch as (type, object). An ERROR line raises (410 Gone), and so does a
        silence longer than a watch lasts: a connection can be lost without a word."""
        import httpx2

        no_end = httpx2.Timeout(REQUEST_TIMEOUT_S, read=None)
        try:
            async with AsyncExitStack() as stack:
                stream = self._http.stream("GET", path, params=params, timeout=no_end)
                async with asyncio.timeout(REQUEST_TIMEOUT_S):
                    response = await stack.enter_async_context(stream)
                    if response.status_code >= 400:
                        raise _error_of(response.status_code, await response.aread())
                lines = response.aiter_lines()
                while (line := await _next_line(lines)) is not None:
                    if line.strip():
                        yield _watch_event(line.encode(), f"watch of {path}")
        except TimeoutError:
            message = f"watch of {self.server}{path}: nothing was heard for too long"
            raise ApiError(0, "Timeout", message) from None
        except httpx2.HTTPError as e:
            raise ApiError(0, type(e).__name__, f"watch of {self.server}{path}: {e}") from e


async def _next_line(lines: AsyncIterator[str]) -> str | None:
    """None at the end. Raises `TimeoutError`."""
    async with asyncio.timeout(WATCH_SILENCE_S):
        return await anext(lines, None)


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _on_node(node_name: str) -> dict[str, str]:
    return {"fieldSelector": f"spec.nodeName={node_name}"}


def _named(name: str) -> dict[str, str]:
    return {"fieldSelector": f"metadata.name={name}"}


def _watching(resource_version: str) -> dict[str, str]:
    return {
        "watch": "true",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(WATCH_LASTS_S),
    }


def _version(value: Mapping[str, Any]) -> str:
    return str(_metadata(value).get("resourceVersion") or "")


def _metadata(value: Any) -> Mapping[str, Any]:
    """Nothing where an object has none, or is none."""
    found = value.get("metadata") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _object(content: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        start = content[:80].decode(errors="replace")
        raise ApiError(0, "BadAnswer", f"{what}: wanted a JSON object, got {start!r}")
    return value


def _watch_event(line: bytes, what: str) -> tuple[str, dict[str, Any]]:
    """One line of a watch. Raises `ApiError` for an ERROR line, and for what is no event."""
    event = _object(line, what)
    kind, value = event.get("type"), event.get("object")
    if not isinstance(kind, str) or not isinstance(value, dict):
        raise ApiError(0, "BadAnswer", f"{what}: wanted type and object, got {sorted(event)}")
    if kind == "ERROR":
        raise _error_of(value.get("code", 500), value)
    return kind, value


def _error_of(status: int, body: bytes | dict[str, Any]) -> ApiError:
    """The error of a metav1.Status, or of whatever text the server sent instead."""
    if isinstance(body, bytes):
        text = body.decode(errors="replace")
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        body = value if isinstance(value, dict) else {"message": text.strip()[:200]}
    return ApiError(status, str(body.get("reason") or ""), str(body.get("message") or ""))
