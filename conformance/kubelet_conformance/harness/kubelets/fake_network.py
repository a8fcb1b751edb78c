"""The network of a virtual run: the ports of the fake's containers, and the URL with manifests."""

from __future__ import annotations

import asyncio
from typing import Final

from kubelet_conformance.harness.manifest_url import ManifestUrl
from kubenodes.network import REFUSED, FakeNetwork, PodPorts
from refkubelet.host.network import (
    NO_HEADERS_IN_TIME,
    HttpAnswer,
    HttpRequest,
    NetworkError,
    dial_error,
)

MANIFESTS: Final = ("manifests.test", 80)


class RunNetwork(FakeNetwork):
    """As the network of any node in this process; `manifests`: what is at `staticPodURL`."""

    def __init__(self, ports: PodPorts, manifests: ManifestUrl | None = None) -> None:
        super().__init__(ports)
        self._manifests = manifests

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        """The answer of the fake's port, or that of the URL with manifests. Raises NetworkError."""
        if self._manifests is not None and request.url == self._manifests.url:
            return await self._manifest(self._manifests, request, timeout_s)
        return await super().http_get(request, timeout_s)

    async def _manifest(
        self, manifests: ManifestUrl, request: HttpRequest, timeout_s: float | None
    ) -> HttpAnswer:
        try:
            async with asyncio.timeout(timeout_s):
                status, body = await manifests.ask(request.headers)
        except TimeoutError:
            raise NetworkError(NO_HEADERS_IN_TIME) from None
        if not status:
            raise NetworkError(dial_error(REFUSED, *MANIFESTS))
        return HttpAnswer(status, body=body[: request.body_bytes])
