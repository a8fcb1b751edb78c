"""Failed gRPC calls as Go's google.golang.org/grpc words them. Pure."""

from __future__ import annotations


def go_code_name(code: str) -> str:
    """A gRPC code's name as Go writes it.

    >>> go_code_name("DEADLINE_EXCEEDED"), go_code_name("CANCELLED")
    ('DeadlineExceeded', 'Canceled')
    """
    if code == "OK":
        return code
    if code == "CANCELLED":
        return "Canceled"
    return "".join(word.capitalize() for word in code.split("_"))


def rpc_error(code: str, details: str | None) -> str:
    """The text of a failed call. `code`: the gRPC code's name, in capitals.

    >>> rpc_error("NOT_FOUND", "no such container")
    'rpc error: code = NotFound desc = no such container'
    """
    return f"rpc error: code = {go_code_name(code)} desc = {details}"
