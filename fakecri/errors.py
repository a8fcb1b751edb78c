"""The errors a fake runtime answers with: gRPC statuses, as a client of a real one sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import grpc

from kubeobjects.arguments import arguments_told


@arguments_told
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


_CODES: Final = {code.name: code for code in grpc.StatusCode}
_FAILURES: Final = tuple(name for name in _CODES if name != "OK")


def status_code(value: grpc.StatusCode | str) -> grpc.StatusCode:
    """A status code from itself or its name in any case. Raises ValueError, also for OK: a call
    that fails with it would have no end.

    >>> status_code("unavailable").name
    'UNAVAILABLE'
    """
    code = value if isinstance(value, grpc.StatusCode) else _CODES.get(str(value).upper())
    if code is None or code is grpc.StatusCode.OK:
        raise ValueError(
            f"{value!r} is no gRPC status code of an error; wanted one of {', '.join(_FAILURES)}"
        )
    return code


class CgroupRefused(Exception):
    """A runtime could not make a cgroup or set its limits; the text is runc's."""


T = TypeVar("T")


def found_or_none(find: Callable[[str], T], object_id: str) -> T | None:
    """What `find` finds, or None where an unknown id is fine (CRI-023); its other errors stay."""
    try:
        return find(object_id)
    except CriError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        return None
