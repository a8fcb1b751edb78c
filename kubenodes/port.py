"""One HTTPS port for all nodes of a pool: where an API server asks for logs, exec, attach and
port-forward of their pods. Real time only.

The socket listens from the start, on 127.0.0.1; certificate and server are made when the first
client comes, which for most tests is never. A request names its pod, so the pool knows whose
kubelet has to answer; what names no pod (metrics, statistics, /pods) cannot be asked here.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubenodes.node import KubeNode
from kubenodes.settings import NodeSettings
from refkubelet.config import KubeletConfiguration
from refkubelet.server.common.exchange import Answer, Request, text

if TYPE_CHECKING:
    from aiohttp import web

HOST: Final = "127.0.0.1"
OF_PODS: Final = frozenset(("containerLogs", "exec", "attach", "portForward", "run", "checkpoint"))
"""The first part of a path behind which namespace and name of a pod come."""
OPEN_TO_ALL: Final = {
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
}
"""What a kubelet's configuration says there: only this machine reaches the port."""


def pod_of(path: str) -> tuple[str, str] | None:
    """Namespace and name of the pod that a path is about; None: it is about none. Pure."""
    parts = path.split("/")
    return (parts[2], parts[3]) if len(parts) > 3 and parts[1] in OF_PODS else None


class PoolPort:
    """Answers for all `nodes`. `directory`: where its certificate is."""

    def __init__(self, nodes: Callable[[], Iterable[KubeNode]], directory: Path) -> None:
        self._nodes, self._directory = nodes, directory
        self._socket = socket.create_server((HOST, 0), backlog=100)
        self._socket.setblocking(False)
        self.number: int = self._socket.getsockname()[1]
        self._starting: asyncio.Task[None] | None = None
        self._runner: web.ServerRunner | None = None

    def served(self, settings: NodeSettings) -> NodeSettings:
        """These settings for a node that is reached at this port."""
        return replace(
            settings,
            address=HOST,
            kubelet={**OPEN_TO_ALL, "port": self.number, **settings.kubelet},
            runtime={"write_logs": True, **settings.runtime},
        )

    def open(self) -> None:
        """Serve from the first client on; to be called on the loop of the nodes."""
        asyncio.get_running_loop().add_reader(self._socket, self._first)

    def _first(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._starting = asyncio.create_task(self._serve(), name="the port of all nodes")

    async def _serve(self) -> None:
        # Not at the top: few tests ask for logs, and these take a while to import.
        from aiohttp import web

        from refkubelet.server.carrier import Carrier
        from refkubelet.server.tls.context import server_context
        from simclock import RealClock

        config = KubeletConfiguration()
        tls = server_context(config, str(self._directory), HOST, RealClock())
        port: Any = self  # answers, as a port of a kubelet does
        self._runner = web.ServerRunner(Carrier(port), shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=tls).start()

    async def answer(self, request: Request) -> Answer:
        """The answer of the kubelet that has the pod; 404 where none has it."""
        place = pod_of(request.path)
        if place is None:
            return text(
                f"{request.path}: this port is that of several nodes, and answers for pods alone: "
                f"{', '.join(sorted(OF_PODS))}",
                404,
            )
        for node in self._nodes():
            kubelet = node.kubelet
            if kubelet is not None and kubelet.sources.pods.by_name(*place) is not None:
                return await kubelet.servers.main.answer(request)
        return text(f"pod {'/'.join(place)} is on none of these nodes", 404)

    def release(self) -> None:
        """Stop listening before it was opened."""
        self._socket.close()

    async def close(self) -> None:
        """End all connections and stop listening; nothing where that was done. Raises what it could
        not serve for."""
        if self._socket.fileno() == -1:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        try:
            if self._starting is not None:
                self._starting.cancel()
                with suppress(asyncio.CancelledError):
                    await self._starting
        finally:
            if self._runner is not None:
                await self._runner.cleanup()
            self._socket.close()
