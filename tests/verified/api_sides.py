"""The API servers that a contract test may talk to over HTTP: the fake, and a real one where
REFKUBELET_APISERVER names its URL (REFKUBELET_APISERVER_TOKEN: a bearer token of an administrator;
its certificate is not checked)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import aiohttp

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.http import serve
from kubeobjects.schema.messages import DEFAULT_MINOR
from simclock import Ids, Rng

URL: Final = os.environ.get("REFKUBELET_APISERVER", "")
TOKEN: Final = os.environ.get("REFKUBELET_APISERVER_TOKEN", "")
APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
_IDS: Final = Ids(Rng.from_system())


class ApiSide:
    """A server and a namespace of the test's own in it."""

    def __init__(self, http: aiohttp.ClientSession, namespace: str) -> None:
        self._http = http
        self.namespace = namespace
        self.configmaps = f"/api/v1/namespaces/{namespace}/configmaps"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        params: Mapping[str, str] | None = None,
        **headers: str,
    ) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer. `body`: bytes go as they are, all else as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Accept": "application/json", **headers}
        if data is not None:
            sent["Content-Type"] = kind
        async with self._http.request(
            method, path, data=data, params=params or {}, headers=sent
        ) as answer:
            if answer.content_type != "application/json":
                return answer.status, {"text": await answer.text()}
            return answer.status, await answer.json()

    async def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = "application/json",
        accept: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> tuple[int, str, bytes]:
        """Status, content type and bytes of the answer."""
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": kind})
        async with self._http.request(
            method, path, data=body, params=params or {}, headers=headers
        ) as answer:
            return answer.status, answer.headers["Content-Type"], await answer.read()

    async def done(self, method: str, path: str, body: Any = None, **given: Any) -> dict[str, Any]:
        """The body of an answer that is no refusal."""
        status, found = await self.ask(method, path, body, **given)
        assert status < 300, found
        return found

    async def apply(
        self, path: str, body: dict[str, Any], manager: str, **params: str
    ) -> tuple[int, dict[str, Any]]:
        return await self.ask(
            "PATCH", path, body, kind=APPLY, params={"fieldManager": manager, **params}
        )

    def stream(
        self, path: str, params: Mapping[str, str]
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """The answer to a watch, to be read while it goes on."""
        return self._http.get(path, params=params)

    async def events(self, path: str, **params: str) -> list[dict[str, Any]]:
        """The events of a watch until it ends, after a second unless `params` says otherwise."""
        asked = {"watch": "true", "timeoutSeconds": "1", **params}
        async with self._http.get(path, params=asked) as answer:
            assert answer.status == 200, await answer.text()
            return [json.loads(line) async for line in answer.content]


@asynccontextmanager
async def fake_server(kubernetes: str = DEFAULT_MINOR) -> AsyncIterator[str]:
    """The URL of a fake server of the caller's own, with the API types of that minor."""
    options = ServerOptions(field_managers=True, kubernetes=kubernetes)
    async with await serve(FakeApi(options=options)) as server:
        yield server.url


@asynccontextmanager
async def session(url: str, token: str = "", namespace: str = "") -> AsyncIterator[ApiSide]:
    """A client of the server at that URL."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(url, headers=headers, connector=connector) as http:
        yield ApiSide(http, namespace)


@asynccontextmanager
async def api_side(name: str) -> AsyncIterator[ApiSide]:
    """The side of that name, `fake` or `real`."""
    namespace = f"contract-{_IDS.hex(8)}"
    if name == "fake":
        async with fake_server() as url, _in_namespace(url, "", namespace) as side:
            yield side
        return
    async with _in_namespace(URL, TOKEN, namespace) as side:
        yield side


@asynccontextmanager
async def _in_namespace(url: str, token: str, namespace: str) -> AsyncIterator[ApiSide]:
    async with session(url, token, namespace) as side:
        await side.done("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        try:
            yield side
        finally:
            await side.ask("DELETE", f"/api/v1/namespaces/{namespace}")
