"""The web server with manifests on a port of its own, for kubelets that are programs."""

from __future__ import annotations

from aiohttp import web

from kubelet_conformance.harness.manifest_url import ManifestUrl


class ServedManifests(ManifestUrl):
    """`ManifestUrl` over HTTP on 127.0.0.1. What does not listen (`status` 0) ends each connection
    without an answer."""

    def __init__(self) -> None:
        super().__init__()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen on a free port; `url` says which."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0]
        self.url = f"http://{host}:{port}/pods"

    async def close(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers = tuple((name, value) for name, value in request.headers.items())
        status, body = await self.ask(headers)
        if status == 0 and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status or 500, text=body)
