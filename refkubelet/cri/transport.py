"""gRPC to a runtime's socket: the real-time `CriTarget`, and the handshake with a runtime.

Only for real time: grpc works on threads of its own, which virtual time cannot see. grpc.aio is
imported when a target is made. What must never happen: a wrong socket is told by a traceback, or
by silence; a listener that does not answer is given up within a stated time.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from kubeobjects.golang.grpc_deadlines import within_deadline
from refkubelet.cri.client import WANTED_VERSION, CriClient
from refkubelet.cri.records import RuntimeVersion
from refkubelet.cri.target import CriCallError

log = logging.getLogger(__name__)

UNIX: Final = "unix://"
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # CRI-005
CHANNEL_OPTIONS: Final = (
    # Without these a call costs a fifth less: callers try again, and a socket has no bandwidth.
    ("grpc.enable_retries", 0),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.default_authority", "localhost"),  # CRI-001
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5000),  # how long a connection may take to come about
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.enable_http_proxy", 0),
)
LISTENER_LIMIT_S: Final = 5.0
Headers = tuple[tuple[str, str], ...]
PATIENCE_S: Final = 10.0  # silence of the runtime after which the user is told what is waited for
IMAGE_METHODS: Final = frozenset(
    {"ListImages", "StreamImages", "ImageStatus", "PullImage", "RemoveImage", "ImageFsInfo"}
)


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
    except FileNotFoundError:
        raise _cannot_connect(endpoint, "no such file", _start_one(endpoint)) from None
    except OSError as error:
        raise _cannot_connect(endpoint, (error.strerror or str(error)).lower()) from None
    if not stat.S_ISSOCK(mode):
        raise _cannot_connect(endpoint, "it is not a socket", _OTHER_SOCKET)
    return path


_OTHER_SOCKET: Final = (
    "give --container-runtime-endpoint the socket of a runtime that serves runtime.v1 "
    "(containerd 1.6 or newer, CRI-O, fakecri)"
)


def _start_one(endpoint: str) -> str:
    return f"start one: fakecri serve --listen {endpoint}"


def _cannot_connect(endpoint: str, why: str, hint: str = "") -> EndpointError:
    text = f"cannot connect to the runtime at {endpoint}: {why}"
    return EndpointError(f"{text}\n  {hint}" if hint else text)


async def _check_listener(endpoint: str) -> None:
    """Raises `EndpointError` unless a process listens on that socket. grpc would say the same, but
    not why."""
    path = socket_path(endpoint)
    try:
        async with asyncio.timeout(LISTENER_LIMIT_S):
            _, writer = await asyncio.open_unix_connection(str(path))
    except TimeoutError:
        why = f"what listens there takes no connection within {LISTENER_LIMIT_S:g} s"
        raise _cannot_connect(endpoint, why) from None
    except ConnectionRefusedError:
        raise _cannot_connect(endpoint, "nobody listens there", _start_one(endpoint)) from None
    except PermissionError:
        hint = f"run as a user who may open {path}"
        raise _cannot_connect(endpoint, "permission denied", hint) from None
    except OSError as error:
        raise _cannot_connect(endpoint, (error.strerror or str(error)).lower()) from None
    writer.close()


class GrpcTarget:
    """A `CriTarget` over a unix socket, plaintext, messages up to 16 MiB (CRI-001, CRI-005).

    Raises `EndpointError` for an endpoint that is no unix:// address. Connects at the first call
    and again after a break. Close it, or its channel leaks.
    """

    def __init__(self, endpoint: str, headers: Callable[[], Headers] = tuple) -> None:
        """`headers`: further headers of a call, asked for at each."""
        import grpc.aio  # heavy, and of no use in virtual time

        if not endpoint.startswith(UNIX + "/"):
            socket_path(endpoint)
        self.endpoint = endpoint
        self._headers = headers
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
        answer = send(request, timeout=timeout_s, metadata=self._headers())
        return await within_deadline(answer, timeout_s)

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


class SplitTarget:
    """Two sockets as one target: the image service's methods go to `images`."""

    def __init__(self, runtime: GrpcTarget, images: GrpcTarget) -> None:
        self._runtime = runtime
        self._images = images

    def _owner(self, method: str) -> GrpcTarget:
        return self._images if method in IMAGE_METHODS else self._runtime

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        return await self._owner(method).call(method, request, timeout_s=timeout_s)

    def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        return self._owner(method).stream(method, request, timeout_s=timeout_s)

    async def close(self) -> None:
        await self._runtime.close()
        await self._images.close()


async def handshake(
    client: CriClient, endpoint: str, images_endpoint: str | None = None
) -> RuntimeVersion:
    """Ask whether a CRI v1 runtime answers: Version, ImageFsInfo, Version("0.1.0") (CRI-002).

    `images_endpoint`: the socket for ImageFsInfo, `endpoint` if not given. A silent runtime
    is waited for as long as any call may take; that is logged. Raises `EndpointError` with what
    answered instead, and what to do.
    """
    notice = asyncio.get_running_loop().call_later(
        PATIENCE_S,
        log.warning,
        "the runtime at %s does not answer; giving up after %g s (runtimeRequestTimeout)",
        endpoint,
        client.request_timeout_s,
    )
    endpoint_asked = endpoint
    try:
        await client.version()
        endpoint_asked = images_endpoint or endpoint
        await client.image_fs_info()
        endpoint_asked = endpoint
        version = await client.version(WANTED_VERSION)
    except CriCallError as error:
        raise _no_cri(endpoint_asked, error, client.request_timeout_s) from None
    finally:
        notice.cancel()
    if version.version != WANTED_VERSION:
        raise EndpointError(
            f"the runtime at {endpoint} speaks kubelet runtime API {version.version!r}, and this "
            f"kubelet needs {WANTED_VERSION!r}"
        )
    return version


def _no_cri(endpoint: str, error: CriCallError, limit_s: float) -> EndpointError:
    """What is wrong with the answer of the process that listens at `endpoint`."""
    if error.unimplemented:
        return EndpointError(
            f"what answers at {endpoint} is not a CRI v1 runtime: {error.text}\n  {_OTHER_SOCKET}"
        )
    if error.code == "DEADLINE_EXCEEDED":
        why = f"it takes calls and does not answer them within {limit_s:g} s"
        return _cannot_connect(endpoint, why, _OTHER_SOCKET)
    if error.code == "UNAVAILABLE":
        detail = error.message.rpartition(f"{endpoint.removeprefix(UNIX)}: ")[2]
        why = f"what listens there does not speak gRPC, or has just ended ({detail})"
        return _cannot_connect(endpoint, why, _OTHER_SOCKET)
    return _cannot_connect(endpoint, error.text)


async def connect(
    endpoint: str,
    request_timeout_s: float = 120.0,
    images_endpoint: str = "",
    headers: Callable[[], Headers] = tuple,
) -> tuple[CriClient, GrpcTarget | SplitTarget, RuntimeVersion]:
    """A client that has shaken hands with the runtime at `endpoint`, its target (close it), and
    what the runtime calls itself. `images_endpoint`: the image service's socket, where it is
    another one; `headers`: as of GrpcTarget. Raises `EndpointError`."""
    endpoints = dict.fromkeys((endpoint, images_endpoint or endpoint))
    for each in endpoints:
        await _check_listener(each)
    targets = [GrpcTarget(each, headers) for each in endpoints]
    target = targets[0] if len(targets) == 1 else SplitTarget(targets[0], targets[1])
    client = CriClient(target, request_timeout_s)
    try:
        version = await handshake(client, endpoint, images_endpoint)
    except BaseException:
        await target.close()
        raise
    return client, target, version
