"""The streaming lists of the CRI (CRI-150): which list each streams, and in which fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.protobuf.message import Message
from msgspec import Struct

from fakecri.cri.services import METHODS


class ListStream(Struct, frozen=True):
    """A streaming list, beside the unary one that has the same items in one message."""

    unary: str
    """The unary method."""
    request: type[Message]
    """Its request, which has the same filter."""
    items: str
    """The field of its response that holds the items."""
    response: type[Message]
    """The message that is streamed."""
    batch: str
    """The field of that message that holds some of the items."""


def _list_stream(method: str, unary: str) -> ListStream:
    whole, part = METHODS[unary], METHODS[method]
    return ListStream(
        unary=unary,
        request=whole.request_type,
        items=_only_field(whole.response_type),
        response=part.response_type,
        batch=_only_field(part.response_type),
    )


def _only_field(kind: type[Message]) -> str:
    (field,) = kind.DESCRIPTOR.fields
    return str(field.name)


_UNARY: Final = {
    "StreamPodSandboxes": "ListPodSandbox",
    "StreamContainers": "ListContainers",
    "StreamContainerStats": "ListContainerStats",
    "StreamPodSandboxStats": "ListPodSandboxStats",
    "StreamPodSandboxMetrics": "ListPodSandboxMetrics",
    "StreamImages": "ListImages",
}
STREAMS: Final[Mapping[str, ListStream]] = {
    method: _list_stream(method, unary) for method, unary in _UNARY.items()
}
"""By the name of the streaming method."""
