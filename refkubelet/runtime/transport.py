"""gRPC to a runtime's socket: the real-time `CriTarget`, and the handshake with a runtime.

Only for real time: grpc works on threads of its own, which virtual time cannot see. grpc.aio is
imported when a target is made.
"""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from criapi.v1 import api_pb2 as cri

from refkubelet.runtime.client import CriCallError, CriClient
from refkubelet.runtime.records import RuntimeVersion

UNIX: Final = "unix://"
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # CRI-005
CHANNEL_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),  # CRI-001
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.enable_http_proxy", 0),
)
WANTED_VERSION: Final = "0.1.0"


class EndpointError(Exception):
    """The endpoint is wrong, or nothing that speaks CRI answers there. Says what to do."""


def _method_table() -> dict[str, tuple[str, Any, Any]]:
    """Method name -> (path, request class, answer class), over both services."""
    return {
        method.name: (
            f"/{service.full_name}/{method.name}",
            getattr(cri, method.input_type.name),
            getattr(cri, method.output_type.name),
        )
        for service in cri.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def socket_path(endpoint: str) -> Path:
    """The path of a `unix://` endpoint that is there. Raises `EndpointError`."""
    if not endpoint.startswith(UNIX + "/"):
        raise EndpointError(
            f"the runtime endpoint {endpoint!r} is not a unix socket: wanted unix:///path/to/socket"
        )
    path = Path(endpoint.removeprefix(UNIX))
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise _cannot_connect(endpoint, (error.strerror or str(error)).lower()) from None
    if not stat.S_ISSOCK(mode):
        raise _cannot_connect(endpoint, "it is not a socket")
    return path


def _cannot_connect(endpoint: str, why: str) -> EndpointError:
    why = "no such file" if why.startswith("no such file") else why
    return EndpointError(
        f"cannot connect to the runtime at {endpoint}: {why}\n"
        f"  start one: fakecri serve --listen {endpoint}"
    )


class GrpcTarget:
    """A `CriTarget` over a unix socket, plaintext, messages up to 16 MiB (CRI-001, CRI-005).

    Raises `EndpointError` for an endpoint that is no unix:// address. Connects at the first call
    and again after a break. Close it, or its channel leaks.
    """

    def __init__(self, endpoint: str) -> None:
        import grpc.aio  # heavy, and of no use in virtual time

        if not endpoint.startswith(UNIX + "/"):
            socket_path(endpoint)
        self.endpoint = endpoint
        self._methods = _method_table()
        self._channel = grpc.aio.insecure_channel(
            "unix:" + endpoint.removeprefix(UNIX), options=list(CHANNEL_OPTIONS)
        )

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        path, request_class, answer_class = self._methods[method]
        send = self._channel.unary_unary(
            path,
            request_serializer=request_class.SerializeToString,
            response_deserializer=answer_class.FromString,
        )
        return await send(request, timeout=timeout_s)

    async def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        path, request_class, answer_class = self._methods[method]
        receive = self._channel.unary_stream(
            path,
            request_serializer=request_class.SerializeToString,
            response_deserializer=answer_class.FromString,
        )
        async for answer in receive(request, timeout=timeout_s):
            yield answer

    async def close(self) -> None:
        await self._channel.close()


async def handshake(client: CriClient, endpoint: str) -> RuntimeVersion:
    """Ask whether a CRI v1 runtime answers: Version, ImageFsInfo, Version("0.1.0") (CRI-002).

    Raises `EndpointError` with what answered instead, and what to do.
    """
    try:
        await client.version()
        await client.image_fs_info()
        version = await client.version(WANTED_VERSION)
    except CriCallError as error:
        if error.unimplemented:
            raise EndpointError(
                f"what answers at {endpoint} is not a CRI v1 runtime: {error.text}\n"
                "  give --container-runtime-endpoint the socket of a runtime that serves "
                "runtime.v1 (containerd 1.6 or newer, CRI-O, fakecri)"
            ) from None
        raise _cannot_connect(endpoint, error.text) from None
    if version.version != WANTED_VERSION:
        raise EndpointError(
            f"the runtime at {endpoint} speaks kubelet runtime API {version.version!r}, and this "
            f"kubelet needs {WANTED_VERSION!r}"
        )
    return version


async def connect(
    endpoint: str, request_timeout_s: float = 120.0
) -> tuple[CriClient, GrpcTarget, RuntimeVersion]:
    """A client that has shaken hands with the runtime at `endpoint`, its target (close it), and
    what the runtime calls itself. Raises `EndpointError`."""
    socket_path(endpoint)
    target = GrpcTarget(endpoint)
    client = CriClient(target, request_timeout_s)
    try:
        version = await handshake(client, endpoint)
    except BaseException:
        await target.close()
        raise
    return client, target, version
