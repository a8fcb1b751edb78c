"""The two CRI services as gRPC handlers over any `CriTarget`, made from the descriptors.

One table (`METHODS`) is read from `kubecri`; every handler is made from its row. v1alpha2 has the
same messages on the wire under other service names, so it is the same table with another prefix,
cut to the methods it had. What must never happen here: a message is changed (but for the API
version that Version names), or a target's error reaches the caller with another code or text.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NoReturn, Protocol

import grpc
from google.protobuf import message_factory
from google.protobuf.message import Message
from kubecri.v1 import api_pb2
from msgspec import Struct

from kubeobjects.strict.errors import did_you_mean

log = logging.getLogger("fakecri.cri.services")

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Largest message in both directions (CRI-005)."""
API_VERSIONS: Final = ("v1", "v1alpha2")

_AFTER_V1ALPHA2: Final = frozenset(
    {
        *("CheckpointContainer", "GetContainerEvents", "ListMetricDescriptors"),
        *("ListPodSandboxMetrics", "RuntimeConfig", "StreamContainerStats", "StreamContainers"),
        *("StreamImages", "StreamPodSandboxMetrics", "StreamPodSandboxStats"),
        *("StreamPodSandboxes", "UpdatePodSandboxResources"),
    }
)


class CriTarget(Protocol):
    """Answers CRI calls. `method` is the bare RPC name (unique over both services), `request` the
    message that goes with it.

    Failures are raised as `grpc.RpcError` with `code()` and `details()`. `timeout_s` is the
    caller's deadline in seconds, None for none; when it passes, the call fails with
    DEADLINE_EXCEEDED. Messages are never shared with the caller. A stream begins when its first
    message is asked for: what happens before that is not told.
    """

    async def call(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> Message: ...

    def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]: ...


class Answerer(Protocol):
    """Answers the calls that no rule disturbs: a fake runtime, or the way to a real one."""

    @property
    def in_bytes(self) -> Mapping[str, type[Message]]:
        """The methods that `call_bytes` answers, with the types of their responses."""

    def call_now(self, method: str, request: Message) -> Message | None:
        """A new message with the answer; None: the answer may take time.

        A call that is answered now cannot be late, so it needs no timer for its deadline.
        """

    async def call_bytes(self, method: str, request: Message, timeout_s: float | None) -> bytes:
        """The answer of a method in `in_bytes`, the very same object while nothing in it
        changes. Raises grpc.RpcError."""

    async def call(self, method: str, request: Message, timeout_s: float | None) -> Message:
        """The answer of a unary call. Raises grpc.RpcError."""

    def stream(
        self, method: str, request: Message, timeout_s: float | None
    ) -> AsyncIterator[Message]:
        """The answers of a streaming call. Raises grpc.RpcError."""


class RpcMethod(Struct, frozen=True):
    """One CRI method: bare name (unique over both services), service, messages, kind of answer."""

    name: str
    service: str
    """Bare service name: `RuntimeService` or `ImageService`."""
    request_type: type[Message]
    response_type: type[Message]
    streams: bool
    """True: the server answers with a stream of messages."""

    def path(self, api_version: str = "v1") -> str:
        """The HTTP/2 path of the call, `/runtime.v1.RuntimeService/Version`."""
        return f"/runtime.{api_version}.{self.service}/{self.name}"


def _read_methods() -> dict[str, RpcMethod]:
    methods: dict[str, RpcMethod] = {}
    for service in api_pb2.DESCRIPTOR.services_by_name.values():
        for method in service.methods:
            methods[method.name] = RpcMethod(
                name=method.name,
                service=service.name,
                request_type=message_factory.GetMessageClass(method.input_type),
                response_type=message_factory.GetMessageClass(method.output_type),
                streams=method.server_streaming,
            )
    return methods


METHODS: Final[Mapping[str, RpcMethod]] = _read_methods()
"""Every CRI v1 method by its bare name."""


REQUEST_TYPES: Final[Mapping[str, type[Message]]] = {
    method.name: method.request_type for method in METHODS.values()
}
"""What each of them is asked with."""


def require_method(method: str) -> None:
    """Check that CRI v1 has the method. Raises ValueError, which names the nearest one."""
    if method in METHODS:
        return
    hint = did_you_mean(str(method), METHODS)
    raise ValueError(f"CRI v1 has no method {method!r}{hint}")


def served_by(api_version: str) -> tuple[RpcMethod, ...]:
    """The methods of one API version, in the order of the contract.

    >>> "RuntimeConfig" in {m.name for m in served_by("v1alpha2")}
    False
    """
    return tuple(
        m for m in METHODS.values() if api_version == "v1" or m.name not in _AFTER_V1ALPHA2
    )


def served_names(api_versions: tuple[str, ...]) -> tuple[str, ...]:
    """The full names of the services: `runtime.v1.RuntimeService`, ..."""
    services = dict.fromkeys(method.service for method in METHODS.values())
    return tuple(f"runtime.{version}.{name}" for version in api_versions for name in services)


class CriHandlers(grpc.GenericRpcHandler):  # type: ignore[misc,unused-ignore]
    """Finds the handler of a path; an unknown method is UNIMPLEMENTED in gRPC's words (CRI-004)."""

    def __init__(self, target: CriTarget, api_versions: tuple[str, ...] = API_VERSIONS) -> None:
        self._handlers = {
            method.path(version): _handler(target, method, version)
            for version in api_versions
            for method in served_by(version)
        }

    def service(self, handler_call_details: Any) -> Any:
        handler = self._handlers.get(handler_call_details.method)
        return handler if handler is not None else _refusal(handler_call_details.method)


def _handler(target: CriTarget, method: RpcMethod, api_version: str) -> Any:
    async def unary(request: Message, context: Any) -> Message:
        try:
            answer = await target.call(method.name, request, timeout_s=context.time_remaining())
        except Exception as error:
            await _abort(context, method, error)
        if isinstance(answer, api_pb2.VersionResponse) and answer.runtime_api_version == "v1":
            answer.runtime_api_version = api_version  # CRI-010
        return answer

    async def streaming(request: Message, context: Any) -> AsyncIterator[Message]:
        try:
            async for answer in target.stream(
                method.name, request, timeout_s=context.time_remaining()
            ):
                yield answer
        except Exception as error:
            await _abort(context, method, error)

    make = (
        grpc.unary_stream_rpc_method_handler
        if method.streams
        else grpc.unary_unary_rpc_method_handler
    )
    return make(
        streaming if method.streams else unary,
        request_deserializer=method.request_type.FromString,
        response_serializer=method.response_type.SerializeToString,
    )


async def _abort(context: Any, method: RpcMethod, error: Exception) -> NoReturn:
    """End the call with the target's own status; anything else it raised is a bug of ours."""
    if isinstance(error, grpc.RpcError) and callable(getattr(error, "code", None)):
        metadata: Any = getattr(error, "trailing_metadata", tuple)() or ()
        await context.abort(error.code(), error.details() or "", tuple(metadata))
    log.exception("%s failed with an error that is no CRI status", method.name, exc_info=error)
    await context.abort(
        grpc.StatusCode.INTERNAL,
        f"fakecri failed in {method.name}: {type(error).__name__}: {error}",
    )
    raise AssertionError("abort always raises")


def _refusal(path: str) -> Any:
    service, _, method = path.strip("/").partition("/")
    served = {f"runtime.{v}.{m.service}" for v in API_VERSIONS for m in METHODS.values()}
    text = (
        f"unknown method {method} for service {service}"
        if service in served
        else f"unknown service {service}"
    )

    async def refuse(request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        return b""

    return grpc.unary_unary_rpc_method_handler(refuse)
