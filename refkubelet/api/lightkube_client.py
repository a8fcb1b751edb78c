"""The API server over HTTP, with lightkube's HTTP client.

lightkube reads the kubeconfig, makes credentials and TLS, and its HTTP client carries the requests
(`wire.HttpWire`); the requests themselves are written here, because the kubelet needs two things
lightkube's client does not offer: preconditions on deletion, and to notice that a watch ended. A
server in the same process is reached without HTTP: `over` takes any `Wire`.

What must never happen here: an exception other than `ApiError` for anything the server or the
network did; a retry that the caller did not ask for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import httpx2
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster, Context, User
from lightkube.models.certificates_v1 import CertificateSigningRequest
from lightkube.models.certificates_v1beta1 import ClusterTrustBundle
from lightkube.models.core_v1 import (
    ConfigMap,
    Secret,
    Service,
    ServiceAccount,
)
from lightkube.models.node_v1 import RuntimeClass

from refkubelet.api import paths
from refkubelet.api.answers import (
    decode_config_map,
    decode_node,
    decode_runtime_class,
    decode_secret,
    decode_service,
    decode_service_account,
    decode_signing_request,
    decode_trust_bundle,
    error_of,
    every,
    json_object,
    one,
    watch_event,
    watch_line,
)
from refkubelet.api.client import ApiError, ObjectList, WatchEvent
from refkubelet.api.counted_requests import NOT_COUNTED, Requests
from refkubelet.api.credential_plugin import PluginAuth
from refkubelet.api.kubeconfig import read_kubeconfig, showing
from refkubelet.api.storage_requests import StorageRequests
from refkubelet.api.traced_wire import TracedWire
from refkubelet.api.wire import HttpWire, Wire
from refkubelet.config import ConfigError
from refkubelet.model.objects import Node, Pod, decode_pod, to_dict
from refkubelet.telemetry.server_metrics import RequestMetrics
from refkubelet.telemetry.spans import NO_SPANS, Spans
from simclock import Clock

STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
REQUEST_TIMEOUT_S: Final = 30.0
WATCH_SILENCE_S: Final = (
    paths.WATCH_LASTS_S + REQUEST_TIMEOUT_S
)  # after this the connection is taken for dead
KEEP: Final = Path(), Path()
"""No files: what the kubeconfig says stays."""


class LightkubeApiClient(StorageRequests):
    """`ApiClient` over a wire; make one with `from_kubeconfig`, `in_process` or `over`."""

    def __init__(self, wire: Wire, server: str, config: SingleConfig | None = None) -> None:
        self.wire = wire
        self.server = server
        self._config = config
        self._spans: Spans = NO_SPANS
        self._counted = NOT_COUNTED

    def count(self, metrics: RequestMetrics, clock: Clock) -> None:
        """Count every request from now on (SRV-037.3)."""
        self._counted = Requests(self.server, metrics, clock)

    @classmethod
    def from_kubeconfig(cls, path: str | Path) -> LightkubeApiClient:
        """A client for the current context of that file.

        Raises `ConfigError` naming the file when it cannot be used.
        """
        return cls.from_config(read_kubeconfig(path), path, pair=KEEP)

    @classmethod
    def from_config(
        cls, config: SingleConfig, path: str | Path, pair: tuple[Path, Path] | None = KEEP
    ) -> LightkubeApiClient:
        """A client for what `read_kubeconfig` read of that file. `pair`: the files of certificate
        and key to show in place of those that it names; None: show none. Raises `ConfigError`
        naming the file."""
        try:
            return cls._of(config if pair is KEEP else showing(config, pair), transport=None)
        except Exception as e:  # files and certificates that it names, kinds of logins
            raise ConfigError(f"kubeconfig {path}: cannot be used: {e}") from None

    @classmethod
    def in_process(
        cls, transport: httpx2.AsyncBaseTransport, server: str = "http://fakekubeapi"
    ) -> LightkubeApiClient:
        """A client whose HTTP requests go to `transport` and never to a socket."""
        config = SingleConfig(
            context_name="in-process",
            context=Context(cluster="in-process"),
            cluster=Cluster(server=server, insecure=True),
            user=User(),
        )
        return cls._of(config, transport)

    async def use_certificate(self, pair: tuple[Path, Path]) -> None:
        """Show the certificate of these files from now on. Connections with another are closed:
        requests and watches on them fail (SRV-005.3). Raises OSError and ssl.SSLError for files
        that cannot be used; then nothing is changed. For clients of a kubeconfig."""
        if self._config is None:
            raise RuntimeError("this client shows no certificate: it has no kubeconfig")
        config = showing(self._config, pair)
        fresh = self._wire(_http(config, transport=None))
        self._config, before, self.wire = config, self.wire, fresh
        await before.aclose()

    def trace(self, spans: Spans) -> None:
        """Make a span for each request from now on, and tell the server of it (CFG-013.8). For a
        client that speaks HTTP."""
        if spans is not NO_SPANS and isinstance(self.wire, HttpWire):
            self._spans = spans
            self.wire = self._wire(self.wire.http)

    def _wire(self, http: httpx2.AsyncClient) -> Wire:
        if self._spans is NO_SPANS:
            return HttpWire(http)
        return TracedWire(HttpWire(http, self._spans.headers), self.server, self._spans)

    @classmethod
    def _of(
        cls, config: SingleConfig, transport: httpx2.AsyncBaseTransport | None
    ) -> LightkubeApiClient:
        return cls(HttpWire(_http(config, transport)), config.cluster.server, config)

    @classmethod
    def over(cls, wire: Wire, server: str = "http://fakekubeapi") -> LightkubeApiClient:
        """A client whose requests go over `wire`; `server` is what errors call the server."""
        return cls(wire, server)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.wire.aclose()

    # -- pods ----------------------------------------------------------------------------------

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return one(decode_pod, await self._json("GET", paths.pod_path(namespace, name)))

    async def create_pod(self, pod: Pod) -> Pod:
        body = {"apiVersion": "v1", "kind": "Pod"} | to_dict(pod)
        path = f"/api/v1/namespaces/{body['metadata']['namespace']}/pods"
        return one(decode_pod, await self._json("POST", path, body=body))

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
        await self._json("DELETE", paths.pod_path(namespace, name), body=options)

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Pod:
        path = paths.pod_path(namespace, name) + "/status"
        return one(decode_pod, await self._json("PATCH", path, body=patch))

    async def list_pods(self, node_name: str) -> ObjectList[Pod]:
        value = await self._json("GET", "/api/v1/pods", params=paths.on_node(node_name))
        return every(decode_pod, value)

    async def watch_pods(
        self, node_name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[Pod]]:
        params = paths.on_node(node_name) | paths.watching(resource_version)
        async for kind, value in self._watch("/api/v1/pods", params):
            yield watch_event(decode_pod, kind, value)

    # -- the node ------------------------------------------------------------------------------

    async def get_node(self, name: str) -> Node:
        return one(decode_node, await self._json("GET", f"/api/v1/nodes/{name}"))

    async def create_node(self, node: Node) -> Node:
        body = {"apiVersion": "v1", "kind": "Node"} | to_dict(node)
        return one(decode_node, await self._json("POST", "/api/v1/nodes", body=body))

    async def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> Node:
        return one(
            decode_node, await self._json("PATCH", f"/api/v1/nodes/{name}/status", body=patch)
        )

    async def list_node(self, name: str) -> ObjectList[Node]:
        value = await self._json("GET", "/api/v1/nodes", params=paths.named(name))
        return every(decode_node, value)

    async def watch_node(self, name: str, resource_version: str) -> AsyncIterator[WatchEvent[Node]]:
        params = paths.named(name) | paths.watching(resource_version)
        async for kind, value in self._watch("/api/v1/nodes", params):
            yield watch_event(decode_node, kind, value)

    async def get_lease(self, namespace: str, name: str) -> dict[str, Any]:
        return await self._json("GET", f"{paths.leases(namespace)}/{name}")

    async def create_lease(self, lease: Mapping[str, Any]) -> dict[str, Any]:
        path = paths.leases(lease["metadata"]["namespace"])
        return await self._json("POST", path, body=lease)

    async def replace_lease(self, lease: Mapping[str, Any]) -> dict[str, Any]:
        path = f"{paths.leases(lease['metadata']['namespace'])}/{lease['metadata']['name']}"
        return await self._json("PUT", path, body=lease)

    # -- what pods refer to --------------------------------------------------------------------

    async def get_secret(self, namespace: str, name: str) -> Secret:
        path = f"{paths.secrets(namespace)}/{name}"
        return one(decode_secret, await self._json("GET", path))

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap:
        path = f"{paths.config_maps(namespace)}/{name}"
        return one(decode_config_map, await self._json("GET", path))

    async def list_secret(self, namespace: str, name: str) -> ObjectList[Secret]:
        value = await self._json("GET", paths.secrets(namespace), params=paths.named(name))
        return every(decode_secret, value)

    async def watch_secret(
        self, namespace: str, name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[Secret]]:
        params = paths.named(name) | paths.watching(resource_version)
        async for kind, value in self._watch(paths.secrets(namespace), params):
            yield watch_event(decode_secret, kind, value)

    async def list_config_map(self, namespace: str, name: str) -> ObjectList[ConfigMap]:
        value = await self._json("GET", paths.config_maps(namespace), params=paths.named(name))
        return every(decode_config_map, value)

    async def watch_config_map(
        self, namespace: str, name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[ConfigMap]]:
        params = paths.named(name) | paths.watching(resource_version)
        async for kind, value in self._watch(paths.config_maps(namespace), params):
            yield watch_event(decode_config_map, kind, value)

    async def get_service_account(self, namespace: str, name: str) -> ServiceAccount:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        return one(decode_service_account, await self._json("GET", path))

    async def create_token(
        self, namespace: str, service_account: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        return await self._json("POST", path, body=request)

    async def list_cluster_trust_bundles(self) -> ObjectList[ClusterTrustBundle]:
        return every(decode_trust_bundle, await self._json("GET", paths.TRUST_BUNDLES))

    async def watch_cluster_trust_bundles(
        self, resource_version: str
    ) -> AsyncIterator[WatchEvent[ClusterTrustBundle]]:
        async for kind, value in self._watch(paths.TRUST_BUNDLES, paths.watching(resource_version)):
            yield watch_event(decode_trust_bundle, kind, value)

    async def get_resource_claim(self, namespace: str, name: str) -> dict[str, Any]:
        return await self._json("GET", f"{paths.resource_claims(namespace)}/{name}")

    async def get_runtime_class(self, name: str) -> RuntimeClass:
        path = f"/apis/node.k8s.io/v1/runtimeclasses/{name}"
        return one(decode_runtime_class, await self._json("GET", path))

    async def list_services(self) -> ObjectList[Service]:
        return every(decode_service, await self._json("GET", "/api/v1/services"))

    async def watch_services(self, resource_version: str) -> AsyncIterator[WatchEvent[Service]]:
        params = paths.watching(resource_version)
        async for kind, value in self._watch("/api/v1/services", params):
            yield watch_event(decode_service, kind, value)

    # -- events --------------------------------------------------------------------------------

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> dict[str, Any]:
        return await self._json("POST", f"/api/v1/namespaces/{namespace}/events", body=event)

    async def patch_event(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> dict[str, Any]:
        path = f"/api/v1/namespaces/{namespace}/events/{name}"
        return await self._json("PATCH", path, body=patch)

    # -- certificates --------------------------------------------------------------------------

    async def create_signing_request(self, request: Mapping[str, Any]) -> CertificateSigningRequest:
        value = await self._json("POST", paths.SIGNING_REQUESTS, body=request)
        return one(decode_signing_request, value)

    async def list_signing_requests(self, name: str) -> ObjectList[CertificateSigningRequest]:
        value = await self._json("GET", paths.SIGNING_REQUESTS, params=paths.named(name))
        return every(decode_signing_request, value)

    async def watch_signing_requests(
        self, name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[CertificateSigningRequest]]:
        params = paths.named(name) | paths.watching(resource_version)
        async for kind, value in self._watch(paths.SIGNING_REQUESTS, params):
            yield watch_event(decode_signing_request, kind, value)

    # -- reviews -------------------------------------------------------------------------------

    async def create_review(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._json("POST", path, body=body)

    # -- wire ----------------------------------------------------------------------------------

    async def _json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One request with a JSON answer, given up after `REQUEST_TIMEOUT_S`. Every failure becomes
        an `ApiError`, also those of credentials, which are fetched within the request."""
        content, content_type = None, ""
        if body is not None:
            content = json.dumps(body).encode()
            content_type = STRATEGIC_MERGE if method == "PATCH" else "application/json"
        try:
            async with self._counted.of(method) as counted, asyncio.timeout(REQUEST_TIMEOUT_S):
                status, answer = await self.wire.request(
                    method, path, params=params, content=content, content_type=content_type
                )
                counted.code = str(status)
        except TimeoutError:
            message = f"{method} {self.server}{path}: no answer within {REQUEST_TIMEOUT_S:g} s"
            raise ApiError(0, "Timeout", message) from None
        except Exception as e:
            raise no_answer(f"{method} {self.server}{path}", e) from e
        if status >= 400:
            raise error_of(status, answer)
        return json_object(answer, f"{method} {path}")

    async def _watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """The lines of a watch as (type, object). Raises `ApiError` for an ERROR line (410 Gone),
        and when no line comes for longer than a watch lasts: a lost connection may show no
        error."""
        try:
            async with AsyncExitStack() as stack:
                opening = self.wire.watch(path, params)
                async with self._counted.of("GET") as counted, asyncio.timeout(REQUEST_TIMEOUT_S):
                    status, refusal, lines = await stack.enter_async_context(opening)
                    counted.code = str(status)
                if status >= 400:
                    raise error_of(status, refusal)
                while (line := await _next_line(lines)) is not None:
                    if line.strip():
                        yield watch_line(line, f"watch of {path}")
        except TimeoutError:
            message = f"watch of {self.server}{path}: nothing was heard for too long"
            raise ApiError(0, "Timeout", message) from None
        except ApiError:
            raise
        except Exception as e:
            raise no_answer(f"watch of {self.server}{path}", e) from e


def _http(config: SingleConfig, transport: httpx2.AsyncBaseTransport | None) -> httpx2.AsyncClient:
    """A client with the credentials and TLS of `config`."""
    params = ConnectionParams(
        timeout=httpx2.Timeout(REQUEST_TIMEOUT_S),
        trust_env=False,
        transport=transport,  # type: ignore[arg-type]  # typed for the sync client only
    )
    http = AsyncClient(config, params)
    if config.user is not None and config.user.exec is not None:
        http.auth = PluginAuth(config.user.exec)
    return http


def no_answer(what: str, error: Exception) -> ApiError:
    """The error of a request without an answer. It names the type of `error`, because many texts
    make no sense without it (that of a KeyError is just a key)."""
    kind, text = type(error).__name__, str(error)
    return ApiError(0, kind, f"{what}: {kind}: {text}" if text else f"{what}: {kind}")


async def _next_line(lines: AsyncIterator[bytes]) -> bytes | None:
    """None at the end. Raises `TimeoutError`."""
    async with asyncio.timeout(WATCH_SILENCE_S):
        return await anext(lines, None)
