"""Joins the connection of a client with the runtime's streaming server: bytes both ways.

Rules: SRV-025, SRV-026. Upstream: staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from kubeobjects import tunnel as joining
from refkubelet.server.common.exchange import Answer, Request, Tunnel, error

if TYPE_CHECKING:
    from aiohttp import web

CONNECT_S: Final = 30.0


async def join(raw: web.BaseRequest, tunnel: Tunnel) -> Answer:
    """Join, until either side has ended; the answer is for a client that was not joined. Raises
    ConnectionError when a joined one has ended."""
    address = urlsplit(tunnel.url)
    secure = address.scheme == "https"
    try:
        async with asyncio.timeout(CONNECT_S):
            streams = await asyncio.open_connection(
                address.hostname,
                address.port or (443 if secure else 80),
                ssl=True if secure else None,
                limit=joining.HEAD_BYTES,
            )
    except (OSError, TimeoutError) as problem:
        return error(500, f"error dialing backend: {problem}")
    head = head_of(tunnel.request, address, str(raw.remote or ""))
    try:
        refusal = await joining.join(raw, head, *streams)
    except joining.TunnelError as problem:
        return error(500, str(problem))
    if refusal is None:
        raise ConnectionResetError("the stream has ended")
    return Answer(status=refusal.status, body=refusal.body)


def head_of(request: Request, address: SplitResult, client: str) -> bytes:
    """The head of the request as the runtime gets it."""
    return joining.head_of(
        request.method,
        (address.path or "/") + (f"?{address.query}" if address.query else ""),
        request.headers.get("host") or address.netloc,
        request.headers.items(),
        (request.headers.get("x-forwarded-for", ""), client),
    )
