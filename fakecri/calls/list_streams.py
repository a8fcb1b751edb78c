"""The streaming lists: the items of the unary list in batches (CRI-150).

What must never happen here: an item comes twice, or a message without any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from google.protobuf.message import Message

from fakecri.cri.list_streams import ListStream

BATCH_ITEMS: Final = 5000
"""Items a message carries at most, as containerd 2.4 sends them."""


def batches(
    stream: ListStream,
    request: Any,
    unary: Callable[[str, Message], Message],
    batch_items: int = BATCH_ITEMS,
) -> Iterator[Message]:
    """The answers of a streaming list; `unary(method, request)` answers the list itself."""
    wanted = stream.request()
    if "filter" in stream.request.DESCRIPTOR.fields_by_name and request.HasField("filter"):
        wanted.filter.CopyFrom(request.filter)  # type: ignore[attr-defined]
    items = getattr(unary(stream.unary, wanted), stream.items)
    for start in range(0, len(items), batch_items):
        yield stream.response(**{stream.batch: items[start : start + batch_items]})
