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
from typing import Any, Final, TypeVar

import httpx2
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster, Context, User

from refkubelet.api import paths
from refkubelet.api.answers import error_of, every, json_object, one, watch_event, watch_line
from refkubelet.api.client import ApiError, ObjectList, WatchEvent
from refkubelet.api.counted_requests import NOT_COUNTED, Requests
from refkubelet.api.credential_plugin import PluginAuth
from refkubelet.api.kinds import SERVICE_ACCOUNTS, Kind
from refkubelet.api.kubeconfig import read_kubeconfig, showing
from refkubelet.api.traced_wire import TracedWire
from refkubelet.api.wire import HttpWire, Wire
from refkubelet.config import ConfigError
from refkubelet.telemetry.server_metrics import RequestMetrics
from refkubelet.telemetry.spans import NO_SPANS, Spans
from simclock import Clock

T = TypeVar("T")

STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
REQUEST_TIMEOUT_S: Final = 30.0
WATCH_SILENCE_S: Final = (
    paths.WATCH_LASTS_S + REQUEST_TIMEOUT_S
)  # after this the connection is taken for dead
NO_LIMIT: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
"""Each watch is a connection, and a kubelet watches each ConfigMap and Secret of its pods: with a
limit they would leave none for anything else."""
KEEP: Final = Path(), Path()
"""No files: what the kubeconfig says stays."""


class LightkubeApiClient:
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

    # -- requests ------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        return one(kind.decode, await self._json("GET", kind.path(name, namespace)))

    async def list(self, kind: Kind[T], namespace: str = "", *, fields: str = "") -> ObjectList[T]:
        path = kind.path(namespace=namespace)
        return every(kind.decode, await self._json("GET", path, params=paths.chosen(fields)))

    async def watch(
        self, kind: Kind[T], resource_version: str, namespace: str = "", *, fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        params = paths.chosen(fields) | paths.watching(resource_version)
        async for event, value in self._watch(kind.path(namespace=namespace), params):
            yield watch_event(kind.decode, event, value)

    async def create(self, kind: Kind[T], body: Mapping[str, Any]) -> T:
        path = kind.path(namespace=body["metadata"].get("namespace") or "")
        return one(kind.decode, await self._json("POST", path, body=body))

    async def replace(self, kind: Kind[T], body: Mapping[str, Any]) -> T:
        metadata = body["metadata"]
        path = kind.path(metadata["name"], metadata.get("namespace") or "")
        return one(kind.decode, await self._json("PUT", path, body=body))

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> T:
        path = kind.path(name, namespace) + (f"/{subresource}" if subresource else "")
        return one(kind.decode, await self._json("PATCH", path, body=patch))

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        namespace: str = "",
        *,
        grace_period_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        options: dict[str, Any] = {}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        head = {"apiVersion": "v1", "kind": "DeleteOptions"}
        body = head | options if options else None
        await self._json("DELETE", kind.path(name, namespace), body=body)

    async def create_token(
        self, namespace: str, service_account: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        path = f"{SERVICE_ACCOUNTS.path(service_account, namespace)}/token"
        return await self._json("POST", path, body=request)

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
            with self._counted.of(method) as counted:
                async with asyncio.timeout(REQUEST_TIMEOUT_S):
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
                with self._counted.of("GET") as counted:
                    async with asyncio.timeout(REQUEST_TIMEOUT_S):
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


class _Params(ConnectionParams):
    """lightkube's parameters for the HTTP client, and one that it has not."""

    def httpx_params(self, config: SingleConfig) -> dict[str, Any]:
        return {**super().httpx_params(config), "limits": NO_LIMIT}


def _http(config: SingleConfig, transport: httpx2.AsyncBaseTransport | None) -> httpx2.AsyncClient:
    """A client with the credentials and TLS of `config`."""
    params = _Params(
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
