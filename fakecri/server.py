"""A gRPC server over any `CriTarget`, and a `CriTarget` over a gRPC channel.

Real time only: grpc works on threads of its own, which virtual time cannot see. In virtual time
the target is called directly. What must never happen here: a living runtime loses its socket to
us, or a message is cut short without an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import Message
from kubecri.own_pool import POOL

from fakecri.cri.endpoint import (
    EndpointError,
    make_room,
    require_listener,
    socket_path,
    tcp_address,
)
from fakecri.cri.services import (
    API_VERSIONS,
    MAX_MESSAGE_BYTES,
    METHODS,
    CriHandlers,
    CriTarget,
    served_names,
)
from simclock import VirtualLoop

_SIZES: Final = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
)


class CriServer:
    """A running server; `serve` makes it."""

    def __init__(self, server: Any, endpoint: str) -> None:
        self._server = server
        self.endpoint = endpoint
        """What a kubelet takes as its container runtime endpoint."""

    @property
    def path(self) -> Path:
        """Path of the unix socket. Raises: EndpointError on TCP."""
        return socket_path(self.endpoint)

    async def wait_closed(self) -> None:
        """Wait until the server was stopped."""
        await self._server.wait_for_termination()

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop serving and remove the socket; calls under way get `grace_s` seconds (none: 0)."""
        await self._server.stop(grace_s)
        if not tcp_address(self.endpoint):
            self.path.unlink(missing_ok=True)


@asynccontextmanager
async def serve(
    target: CriTarget, listen: str, *, api_versions: tuple[str, ...] = API_VERSIONS
) -> AsyncIterator[CriServer]:
    """Serve `target` on `listen` (`unix:///path`, or `tcp://HOST:PORT` without any protection)
    until the block ends; the socket goes with it.

    Every API version has the same target behind it. The caller's deadline reaches the target as
    `timeout_s`. A dead process's socket file is replaced. With the extra `reflection` installed the
    server tells its services and messages (grpcurl asks for them).

    Raises EndpointError if the endpoint is malformed, in use, or its directory is missing;
    RuntimeError in virtual time.
    """
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        raise RuntimeError(
            "a gRPC server needs real time: serve the target on an ordinary loop; in virtual time "
            "call it directly"
        )
    server = grpc.aio.server(options=_SIZES)
    _reflect(server, api_versions)  # first: CriHandlers answers for every service
    server.add_generic_rpc_handlers((CriHandlers(target, api_versions),))
    endpoint = _bind(server, listen)
    await server.start()
    running = CriServer(server, endpoint)
    try:
        yield running
    finally:
        await running.stop()
        stop_streaming = getattr(target, "stop_streaming", None)
        if stop_streaming is not None:
            await stop_streaming()


def _bind(server: Any, listen: str) -> str:
    """Give the server its socket; returns the endpoint. Raises: EndpointError."""
    address = tcp_address(listen)
    if address is None:
        path = socket_path(listen)
        make_room(path)
        server.add_insecure_port(f"unix:{path}")
        return f"unix://{path}"
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        raise EndpointError(
            f"cannot listen on tcp://{address}: the port is taken or the host is not of this "
            "machine; choose another one, port 0 is any free one"
        ) from None
    return f"tcp://{address.rpartition(':')[0]}:{port}"


def _reflect(server: Any, api_versions: tuple[str, ...]) -> None:
    """Let clients without stubs ask for services and messages, if the extra is installed."""
    try:
        from grpc_reflection.v1alpha import reflection
    except ImportError:
        return
    names = (*served_names(api_versions), reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, pool=POOL)


class GrpcUpstream:
    """A `CriTarget` that is a runtime in another process, reached over its unix socket (CRI-001).

    Calls fail with UNAVAILABLE while no runtime listens and work again when one does; there is
    no hidden retry.
    """

    def __init__(self, endpoint: str, *, api_version: str = "v1") -> None:
        """Raises EndpointError for a malformed endpoint."""
        self.path = socket_path(endpoint)
        self._channel = grpc.aio.insecure_channel(
            f"unix:{self.path}",
            options=[
                *_SIZES,
                ("grpc.default_authority", "localhost"),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 5000),
                ("grpc.max_reconnect_backoff_ms", 3000),
            ],
        )
        self._calls = {
            method.name: (
                self._channel.unary_stream if method.streams else self._channel.unary_unary
            )(
                method.path(api_version),
                request_serializer=method.request_type.SerializeToString,
                response_deserializer=method.response_type.FromString,
            )
            for method in METHODS.values()
        }

    @property
    def endpoint(self) -> str:
        return f"unix://{self.path}"

    def check(self, *, hint: str = "start the runtime, or correct the path") -> None:
        """Check that a runtime listens at the endpoint now. Raises EndpointError."""
        require_listener(self.path, hint=hint)

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        """One unary call. Raises grpc.RpcError with the runtime's code and text."""
        answer: Message = await self._calls[method](request, timeout=timeout_s)
        return answer

    async def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        """One server-streaming call; ending the iteration early cancels it."""
        call = self._calls[method](request, timeout=timeout_s)
        try:
            async for answer in call:
                yield answer
        finally:
            call.cancel()

    async def close(self) -> None:
        """Close the channel; calls under way are cancelled."""
        await self._channel.close()

    async def __aenter__(self) -> GrpcUpstream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
