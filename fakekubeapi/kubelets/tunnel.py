"""Joins a client's connection with one of a kubelet, a pod or a service: bytes both ways.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from fakekubeapi.errors import StatusError
from fakekubeapi.kubelets.dialling import connection
from fakekubeapi.kubelets.options import KubeletOptions
from fakekubeapi.kubelets.places import Place
from kubeobjects import tunnel


def is_upgrade(headers: Mapping[str, str]) -> bool:
    """Whether the client wants to speak another protocol on the connection."""
    return "upgrade" in headers.get("Connection", "").lower()


async def join(request: web.Request, place: Place, options: KubeletOptions) -> web.StreamResponse:
    """Join until either side has ended; the response is for a client that was not joined, or says
    that there is nothing left to answer. Raises: StatusError 500 for a place that does not answer
    or not as it should."""
    try:
        streams = await connection(place, options, limit=tunnel.HEAD_BYTES)
    except (OSError, TimeoutError) as problem:
        raise StatusError(500, f"error dialing backend: {problem}", reason="") from None
    try:
        refusal = await tunnel.join(request, _head_of(request, place), *streams)
    except tunnel.TunnelError as problem:
        raise StatusError(500, str(problem), reason="") from None
    if refusal is None:
        return Ended()
    kind = refusal.headers.get("content-type")
    headers = {} if kind is None else {"Content-Type": kind}
    answer = web.Response(status=refusal.status, body=refusal.body, headers=headers)
    answer.force_close()
    return answer


class Ended(web.Response):
    """In place of an answer, where the connection has been used for something else and has
    ended."""

    async def prepare(self, request: web.BaseRequest) -> None:
        raise ConnectionResetError("the joined connections have ended")


def _head_of(request: web.Request, place: Place) -> bytes:
    target = (
        place.target
        if place.query or not request.query_string
        else (f"{place.path or '/'}?{request.rel_url.raw_query_string}")
    )
    before = request.headers.getall("X-Forwarded-For", [])
    return tunnel.head_of(
        request.method,
        target,
        request.headers.get("Host") or place.address,
        # The client's credentials are for this server.
        ((n, value) for n, value in request.headers.items() if n.lower() != "authorization"),
        (*before, request.remote or ""),
    )
