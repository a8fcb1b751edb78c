"""Sockets of CSI drivers, over gRPC.

Only for real time, because grpc uses its own threads; it is imported when a driver is there.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

from kubeobjects.golang.grpc_deadlines import within_deadline


class GrpcCsiSockets:
    """`CsiSockets` of this machine."""

    def connect(self, path: str) -> GrpcCsi:
        """Raises OSError if nothing listens there, which gRPC would tell in its own words."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            with suppress(BlockingIOError):  # many wait before us
                probe.connect(path)
        return GrpcCsi(path)


class GrpcCsi:
    """A connection to the Node service at a socket."""

    def __init__(self, path: str) -> None:
        import grpc.aio
        from kubecri.csi import api_pb2_grpc

        self._channel = grpc.aio.insecure_channel(
            f"unix:{path}",
            options=[("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0)],
        )
        self._stub = api_pb2_grpc.NodeStub(self._channel)

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        answer = getattr(self._stub, method)(request, timeout=timeout_s)
        return await within_deadline(answer, timeout_s)

    async def close(self) -> None:
        await self._channel.close()
