"""Where CRI calls go, and the one error by which they fail.

Upstream: staging/src/k8s.io/cri-client/pkg/remote_runtime.go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, Protocol, runtime_checkable

import grpc

from kubeobjects.golang.grpc_codes import rpc_error

Message = Any
"""Any message of the contract: which one, the method's name says."""
INVALID_ANSWER: Final = "INVALID_ANSWER"


class CriTarget(Protocol):
    """Where CRI calls go: a socket, a fake in the same process, a proxy.

    `method` is the bare RPC name. Errors are `grpc.RpcError`s with `.code()` and `.details()`;
    `timeout_s` is the caller's deadline in seconds (None: none), kept by the target.
    """

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message: ...

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]: ...


@runtime_checkable
class BytesTarget(CriTarget, Protocol):
    """A target that also answers in bytes: the very same ones while an answer stays the same, which
    spares all who compare it with the one before."""

    async def call_bytes(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> bytes: ...


class CriCallError(Exception):
    """A CRI call failed. `code` is the gRPC code's name (`NOT_FOUND`), or `INVALID_ANSWER` when
    the answer broke the contract. `str()` is the text a Go client shows."""

    def __init__(self, method: str, code: str, message: str) -> None:
        self.method = method
        self.code = code
        self.message = message
        super().__init__(self.text)

    @property
    def text(self) -> str:
        """The error as Go prints one of gRPC; an answer that makes no sense is named by its
        method."""
        if self.code == INVALID_ANSWER:
            return f"{self.method}: {self.message}"
        return rpc_error(self.code, self.message)

    @property
    def not_found(self) -> bool:
        return self.code == "NOT_FOUND"

    @property
    def unimplemented(self) -> bool:
        return self.code == "UNIMPLEMENTED"


def call_error(method: str, error: grpc.RpcError) -> CriCallError:
    """The library's error as ours."""
    code = error.code() if hasattr(error, "code") else grpc.StatusCode.UNKNOWN
    details = error.details() if hasattr(error, "details") else str(error)
    return CriCallError(method, code.name, details or "")
