"""The lists of sandboxes and containers, and the streaming lists (CRI-080, CRI-150).

A kubelet asks for the lists all the time, and nearly always the answer is the one before: so they
are made as bytes, the very same ones while nothing changes, and a message is made of them only for
a caller that wants one. What must never happen here: an answer is the one before although something
in it has changed (see `core.listed.ListedTable`); a streaming list has an item twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.calls.filters import chosen_containers, chosen_sandboxes
from fakecri.core.messages import container_row, sandbox_row
from fakecri.core.runtime import Core
from fakecri.cri.list_streams import ListStream

BATCH_ITEMS: Final = 5000
"""Items a message carries at most, as containerd 2.4 sends them."""


def sandbox_list(core: Core, request: pb.ListPodSandboxRequest) -> bytes:
    """ListPodSandbox; a list of all sandboxes, or of those in one state, is the very same bytes
    until something in it changes."""
    key = request.SerializeToString()
    kept_answer = core.sandboxes.answer(key)
    if kept_answer is not None:
        return kept_answer
    filter_ = request.filter
    state = filter_.state.state if filter_.HasField("state") else None
    answer = b"".join(
        [
            sandbox_row(s)
            for s in chosen_sandboxes(core, filter_)
            if state is None or state == (pb.SANDBOX_READY if s.ready else pb.SANDBOX_NOTREADY)
        ]
    )
    keeps = not filter_.id and not filter_.label_selector
    return core.sandboxes.keep(key, answer) if keeps else answer


def container_list(core: Core, request: pb.ListContainersRequest) -> bytes:
    """ListContainers, as `sandbox_list`."""
    key = request.SerializeToString()
    kept_answer = core.containers.answer(key)
    if kept_answer is not None:
        return kept_answer
    filter_ = request.filter
    state = filter_.state.state if filter_.HasField("state") else None
    answer = b"".join(
        [
            container_row(c)
            for c in chosen_containers(core, filter_)
            if state is None or c.state.value == state
        ]
    )
    keeps = not filter_.id and not filter_.pod_sandbox_id and not filter_.label_selector
    return core.containers.keep(key, answer) if keeps else answer


def batches(
    stream: ListStream,
    request: Any,
    unary: Callable[[str, Message], Message],
    batch_items: int = BATCH_ITEMS,
) -> Iterator[Message]:
    """The answers of a streaming list; `unary(method, request)` answers the list itself."""
    unary_request = stream.request()
    if "filter" in stream.request.DESCRIPTOR.fields_by_name and request.HasField("filter"):
        unary_request.filter.CopyFrom(request.filter)  # type: ignore[attr-defined]
    items = getattr(unary(stream.unary, unary_request), stream.items)
    for start in range(0, len(items), batch_items):
        yield stream.response(**{stream.batch: items[start : start + batch_items]})


def as_message(
    kind: type[Message], in_bytes: Callable[[Core, Any], bytes], core: Core, request: Message
) -> Message:
    """The same answer as a message."""
    return kind.FromString(in_bytes(core, request))


IN_BYTES: Final[Mapping[str, Callable[[Core, Any], bytes]]] = {
    "ListPodSandbox": sandbox_list,
    "ListContainers": container_list,
}
HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "ListPodSandbox": partial(as_message, pb.ListPodSandboxResponse, sandbox_list),
    "ListContainers": partial(as_message, pb.ListContainersResponse, container_list),
}
