"""The errors a fake runtime answers with: gRPC statuses, as a client of a real one sees them."""

from __future__ import annotations

import grpc


class CriError(grpc.RpcError):  # type: ignore[misc]
    """A failed CRI call. Has what clients read of any gRPC error: `code()` and `details()`."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self._code = code
        self._details = details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


def unknown(details: str) -> CriError:
    """UNKNOWN: the code of nearly every failure of containerd (CRI-009)."""
    return CriError(grpc.StatusCode.UNKNOWN, details)


def deadline_exceeded(details: str = "context deadline exceeded") -> CriError:
    return CriError(grpc.StatusCode.DEADLINE_EXCEEDED, details)


def status_code(value: grpc.StatusCode | str) -> grpc.StatusCode:
    """A status code from itself or its name in any case.

    >>> status_code("unavailable").name
    'UNAVAILABLE'
    """
    if isinstance(value, grpc.StatusCode):
        return value
    try:
        return grpc.StatusCode[value.upper()]
    except KeyError:
        known = ", ".join(code.name for code in grpc.StatusCode)
        raise ValueError(f"{value!r} is no gRPC status code; wanted one of {known}") from None


class CgroupRefused(Exception):
    """A runtime could not make a cgroup or set its limits; the text is runc's."""
