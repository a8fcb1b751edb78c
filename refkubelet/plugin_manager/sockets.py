"""Sockets of plug-ins below plugins_registry, over gRPC.

Only for real time, because grpc uses its own threads; it is imported when a plug-in is there.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubeobjects.golang.grpc_deadlines import within_deadline

DIAL_LIMIT_S: Final = 10.0


class GrpcSockets:
    """`RegistrationSockets` of this machine."""

    async def connect(self, path: str) -> GrpcRegistration:
        """A connection to the plug-in there. Raises OSError if nothing listens within
        `DIAL_LIMIT_S`."""
        try:
            async with asyncio.timeout(DIAL_LIMIT_S):
                _, writer = await asyncio.open_unix_connection(path)
        except TimeoutError:
            raise OSError(0, "context deadline exceeded", path) from None
        writer.close()
        return GrpcRegistration(path)


class GrpcRegistration:
    """A connection to the Registration service at a socket."""

    def __init__(self, path: str) -> None:
        import grpc.aio
        from kubecri.pluginregistration import api_pb2_grpc

        self._channel = grpc.aio.insecure_channel(
            f"unix:{path}",
            options=[("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0)],
        )
        self._stub = api_pb2_grpc.RegistrationStub(self._channel)

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        answer = getattr(self._stub, method)(request, timeout=timeout_s)
        return await within_deadline(answer, timeout_s)

    async def close(self) -> None:
        await self._channel.close()
