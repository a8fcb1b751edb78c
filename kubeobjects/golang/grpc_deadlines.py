"""Deadlines of gRPC calls, told as Go's client tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

TEXT: Final = "context deadline exceeded"
LIBRARY_TEXT: Final = "Deadline Exceeded"
"""What the gRPC library of Python says for a deadline of its own."""
EARLY_S: Final = 0.01
"""The deadline travels to the server in whole milliseconds."""


def told(code: str, details: str, elapsed_s: float, timeout_s: float) -> tuple[str, str]:
    """Code and text of a call that failed after `elapsed_s`, with a deadline of `timeout_s`.

    A server knows the deadline, too. When it is the first to end the call, the library says that
    the call was cancelled; Go's client looks at its clock.

    >>> told("CANCELLED", "Stream removed", 2.0, 2.0)
    ('DEADLINE_EXCEEDED', 'context deadline exceeded')
    >>> told("CANCELLED", "Stream removed", 0.5, 2.0)
    ('CANCELLED', 'Stream removed')
    >>> told("DEADLINE_EXCEEDED", "Deadline Exceeded", 2.0, 2.0)
    ('DEADLINE_EXCEEDED', 'context deadline exceeded')
    >>> told("DEADLINE_EXCEEDED", "the command took too long", 1.0, 2.0)
    ('DEADLINE_EXCEEDED', 'the command took too long')
    """
    ended_by_server = code == "CANCELLED" and elapsed_s >= timeout_s - EARLY_S
    if ended_by_server or (code == "DEADLINE_EXCEEDED" and details == LIBRARY_TEXT):
        return "DEADLINE_EXCEEDED", TEXT
    return code, details


async def within_deadline(call: Awaitable[Any], timeout_s: float | None) -> Any:
    """The answer of a gRPC call that was made just now with this time limit in seconds.

    Raises `grpc.aio.AioRpcError`, for a deadline that has passed with Go's code and text."""
    import grpc.aio  # heavy, and of no use in virtual time

    time_s = asyncio.get_running_loop().time
    began_s = time_s()
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        if timeout_s is None:
            raise
        details = error.details() or ""
        code, text = told(error.code().name, details, time_s() - began_s, timeout_s)
        if text == details:
            raise
        raise grpc.aio.AioRpcError(
            code=grpc.StatusCode[code],
            initial_metadata=error.initial_metadata(),
            trailing_metadata=error.trailing_metadata(),
            details=text,
        ) from None
