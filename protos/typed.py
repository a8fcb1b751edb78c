"""Texts of the typed modules of `kubecri` that protoc does not write. generate.py writes them.

Pure: a parsed .proto file goes in, a module's text comes out.
"""

from __future__ import annotations

from typing import Any

MESSAGES = "api_pb2"


def stub_module(package: str, file: Any) -> str:
    """The .pyi of api_pb2_grpc: what each method of stubs and servicers takes and gives.

    Over a channel of `grpc.aio` a stub is asynchronous; its type is then `<Service>AsyncStub`. The
    channel tells which, if its type is known (grpcio has its types in types-grpcio).
    """
    lines = [
        "from collections.abc import AsyncIterator, Awaitable, Iterator",
        "from typing import Any, overload",
        "",
        "from kubecri import rpc",
        f"from kubecri.{package} import {MESSAGES}",
    ]
    for service in file.service:
        lines += ["", *_stub(service), "", *_async_stub(service), "", *_servicer(service)]
        name = f"add_{service.name}Servicer_to_server"
        lines += ["", f"def {name}(servicer: {service.name}Servicer, server: Any) -> None: ..."]
    return "\n".join(lines) + "\n"


def async_names(file: Any) -> str:
    """Lines for the end of api_pb2_grpc.py: the names of asynchronous stubs, for annotations."""
    return "".join(f"\n{s.name}AsyncStub = {s.name}Stub\n" for s in file.service)


def _stub(service: Any) -> list[str]:
    name = service.name
    return [
        f"class {name}Stub:",
        "    @overload",
        f"    def __new__(cls, channel: rpc.AsyncChannel) -> {name}AsyncStub: ...",
        "    @overload",
        f"    def __new__(cls, channel: rpc.Channel) -> {name}Stub: ...",
        *(f"    {m.name}: {_callable(m, 'Unary', 'ServerStream')}" for m in service.method),
    ]


def _async_stub(service: Any) -> list[str]:
    methods = [(m.name, _callable(m, "AsyncUnary", "AsyncServerStream")) for m in service.method]
    return [
        f"class {service.name}AsyncStub({service.name}Stub):",
        "    def __new__(cls, channel: rpc.AsyncChannel) -> "
        f"{service.name}AsyncStub: ...  # type: ignore[misc]",
        *(f"    {name}: {kind}  # type: ignore[assignment]" for name, kind in methods),
    ]


def _callable(method: Any, unary: str, stream: str) -> str:
    shape = stream if method.server_streaming else unary
    return f"rpc.{shape}[{_request(method)}, {_response(method)}]"


def _servicer(service: Any) -> list[str]:
    lines = [f"class {service.name}Servicer:"]
    for method in service.method:
        answer = _response(method)
        kinds = ("Iterator", "AsyncIterator") if method.server_streaming else ("", "Awaitable")
        given = " | ".join(f"{kind}[{answer}]" if kind else answer for kind in kinds)
        takes = f"self, request: {_request(method)}, context: Any"
        lines.append(f"    def {method.name}({takes}) -> {given}: ...")
    return lines


_CALLS = '''"""The types of calls by method name, as call targets take them.

    answer = await target.call("Version", api_pb2.VersionRequest())   # a VersionResponse

A type checker refuses a request of another method. It takes every request together with
`response=`, the class the answer is wanted in, and one of type Any.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Literal, Protocol, TypeVar, cast, overload

from google.protobuf.message import Message

from {package} import {messages}

R = TypeVar("R")


class Untyped:
    """A request that is known as Any only. There are none of this class."""


class Call(Protocol):
    """`call` of a call target: a unary method by its name."""

{calls}

class Stream(Protocol):
    """`stream` of a call target: a streaming method by its name."""

{streams}

def typed_call(function: Callable[..., Coroutine[Any, Any, Any]]) -> Call:
    """Decorates a `call` method that takes all unary methods."""
    return cast("Call", function)


def typed_stream(function: Callable[..., AsyncIterator[Any]]) -> Stream:
    """Decorates a `stream` method that takes all streaming methods."""
    return cast("Stream", function)
'''


def calls_module(package: str, file: Any) -> str:
    """The module of overloads by method name; names are unique over the file's services."""
    methods = [method for service in file.service for method in service.method]
    return _CALLS.format(
        package=package,
        messages=MESSAGES,
        calls="".join(
            _overloads([m for m in methods if not m.server_streaming], "async def", "{}")
        ),
        streams="".join(
            _overloads([m for m in methods if m.server_streaming], "def", "AsyncIterator[{}]")
        ),
    )


def _overloads(methods: list[Any], define: str, given: str) -> list[str]:
    rows = [(f'Literal["{m.name}"]', _request(m), "", _response(m)) for m in methods]
    rows += [("str", "Any", ", response: type[R]", "R"), ("str", "Untyped", "", "Message")]
    return [
        "    @overload\n"
        f"    {define} __call__(\n"
        f"        self, method: {method}, request: {request}, *, "
        f"timeout_s: float | None = None{more}\n"
        f"    ) -> {given.format(answer)}: ...\n"
        for method, request, more, answer in rows
    ]


def _request(method: Any) -> str:
    return f"{MESSAGES}.{method.input_type.rpartition('.')[2]}"


def _response(method: Any) -> str:
    return f"{MESSAGES}.{method.output_type.rpartition('.')[2]}"
