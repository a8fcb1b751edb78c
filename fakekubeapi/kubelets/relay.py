"""Carries requests on to kubelets, pods and services, and their answers back.

Logs come as they are written; a proxy passes on whatever there is. What must never happen here: a
client that has gone keeps a kubelet's answer open; the client's credentials leave this server.
Upstream: staging/src/k8s.io/apimachinery/pkg/util/proxy; apiserver/pkg/registry/generic/rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from fakekubeapi.errors import StatusError, bad_request
from fakekubeapi.kubelets.dialling import said, trust
from fakekubeapi.kubelets.options import KubeletOptions
from fakekubeapi.kubelets.paths import LOG, PROXY, Passed
from fakekubeapi.kubelets.places import Place
from fakekubeapi.kubelets.refusals import refusal_of_log
from fakekubeapi.kubelets.tunnel import Ended, is_upgrade, join

REFUSAL_BYTES: Final = 50_000
_OF_ONE_HOP: Final = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade"),
    )
)
_NOT_SENT: Final = _OF_ONE_HOP | {"authorization", "content-length", "host"}


@dataclass
class Relay:
    """Carries requests for one server; to be closed with it."""

    options: KubeletOptions
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def close(self) -> None:
        """End the connections."""
        if self._session is not None:
            await self._session.close()

    async def carry(self, request: web.Request, passed: Passed, place: Place) -> web.StreamResponse:
        """The answer of that place to the request. Raises: StatusError when there is no answer, and
        for a log when the answer is a refusal."""
        if passed.subresource == LOG:
            return await self._log(request, passed, place)
        if is_upgrade(request.headers):
            return await join(request, place, self.options)
        if passed.subresource != PROXY:
            raise bad_request("Upgrade request required")
        if not place.path and request.method in ("GET", "HEAD"):
            query = f"?{request.rel_url.raw_query_string}" if request.query_string else ""
            return web.Response(status=301, headers={"Location": f"{request.path}/{query}"})
        return await self._proxied(request, passed, place)

    async def _log(self, request: web.Request, passed: Passed, place: Place) -> web.StreamResponse:
        if not place.host:
            return web.Response(status=204)
        url = f"{place.scheme}://{place.address}{place.target}"
        try:
            answer = await self._send("GET", url, place)
        except OSError as problem:
            raise StatusError(500, f'Get "{url}": {problem}', reason="") from None
        async with answer:
            if not 200 <= answer.status <= 206:
                text = (await answer.content.read(REFUSAL_BYTES)).decode(errors="replace")
                raise refusal_of_log(answer.status, passed.name, text)
            return await _streamed(request, answer, CIMultiDict({"Content-Type": "text/plain"}))

    async def _proxied(
        self, request: web.Request, passed: Passed, place: Place
    ) -> web.StreamResponse:
        query = request.rel_url.raw_query_string
        url = f"{place.scheme}://{place.address}{place.path or '/'}{f'?{query}' if query else ''}"
        body = request.content if request.can_read_body else None
        try:
            answer = await self._send(
                request.method, url, place, headers=_headers_on(request), data=body
            )
        except OSError as problem:
            raise StatusError(503, f"error trying to reach service: {problem}") from None
        async with answer:
            return await _streamed(request, answer, _headers_back(request, passed, place, answer))

    async def _send(
        self, method: str, url: str, place: Place, **more: Any
    ) -> aiohttp.ClientResponse:
        """Raises: OSError that says what a Go program would."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.options.connect_s),
            )
        tls = trust(place, self.options) if place.scheme == "https" else True
        try:
            return await self._session.request(
                method, URL(url, encoded=True), ssl=tls, allow_redirects=False, **more
            )
        except aiohttp.ClientConnectorCertificateError as error:
            raise OSError(said(place, error.certificate_error)) from None  # type: ignore[arg-type]
        except aiohttp.ClientConnectorError as error:
            raise OSError(said(place, error.os_error)) from None
        except TimeoutError:
            raise OSError(f"dial tcp {place.address}: i/o timeout") from None
        except aiohttp.ServerDisconnectedError:
            raise OSError("EOF") from None
        except aiohttp.ClientError as error:
            raise OSError(str(error)) from None


def _headers_on(request: web.Request) -> CIMultiDict[str]:
    """The headers that the other side gets."""
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in request.headers.items():
        if name.lower() not in _NOT_SENT:
            headers.add(name, value)
    if length := request.headers.get("Content-Length"):
        headers["Content-Length"] = length
    before = headers.popall("X-Forwarded-For", [])
    headers["X-Forwarded-For"] = ", ".join([*before, request.remote or ""])
    headers["X-Forwarded-Uri"] = request.rel_url.raw_path
    headers["X-Forwarded-Host"] = headers["Host"] = request.host
    headers["X-Forwarded-Proto"] = request.scheme
    return headers


def _headers_back(
    request: web.Request, passed: Passed, place: Place, answer: aiohttp.ClientResponse
) -> CIMultiDict[str]:
    """The headers that the client gets: a redirection leads through this server, too."""
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in answer.headers.items():
        if name.lower() not in _OF_ONE_HOP:
            headers.add(name, value)
    if location := headers.get("Location"):
        prefix = request.rel_url.raw_path.removesuffix(passed.rest)
        headers["Location"] = through(location, prefix, (place.address, request.host))
    return headers


def through(location: str, prefix: str, hosts: tuple[str, ...]) -> str:
    """A redirection, with `prefix` before a path at one of `hosts`, or at the same one.

    >>> through("/a/", "/api/v1/nodes/n/proxy", ())
    '/api/v1/nodes/n/proxy/a/'
    """
    parts = urlsplit(location)
    other = parts.netloc and parts.netloc not in hosts
    if other or not parts.path.startswith("/"):
        return location
    path = parts.path if parts.path.startswith(prefix) else prefix + parts.path
    return parts._replace(scheme="", netloc="", path=path).geturl()


async def _streamed(
    request: web.Request, answer: aiohttp.ClientResponse, headers: CIMultiDict[str]
) -> web.StreamResponse:
    """Pass an answer on as it comes. One that breaks off breaks off here, too."""
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    await response.prepare(request)
    try:
        async for block in answer.content.iter_any():
            await response.write(block)
    except aiohttp.ClientError:
        if request.transport is not None:
            request.transport.abort()
        return Ended()
    await response.write_eof()
    return response
