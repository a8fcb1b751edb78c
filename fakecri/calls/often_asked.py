"""What kubelets ask all the time: Status and the lists of sandboxes and containers.

Nearly always the answer is the one before, so these are answered as bytes first: the very same
ones while nothing changes, of which whoever wants a message makes one of its own. What must never
happen here: an answer is the one before although something in it has changed (see
`core.listed.ListedTable`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri.core.lookup import matching_ids
from fakecri.core.messages import container_row, labels_fit, sandbox_row
from fakecri.core.runtime import Core


def status(core: Core, request: pb.StatusRequest) -> bytes:
    """Status (CRI-130, CRI-132); one that is not verbose is the very same bytes as before."""
    answer = _status_answer(core.network_ready, core.handlers)
    if not request.verbose:
        return answer
    response = pb.StatusResponse.FromString(answer)
    response.info["config"] = json.dumps(core.facts())
    return response.SerializeToString()


@lru_cache(maxsize=16)
def _status_answer(network_ready: bool, handlers: tuple[str, ...]) -> bytes:
    """Made once: kubelets ask every few seconds."""
    network = pb.RuntimeCondition(type="NetworkReady", status=network_ready)
    if not network_ready:
        network.reason = "NetworkPluginNotReady"
        network.message = "Network plugin returns error: cni plugin not initialized"
    ready = pb.RuntimeCondition(type="RuntimeReady", status=True)
    features = pb.RuntimeHandlerFeatures(recursive_read_only_mounts=True, user_namespaces=True)
    return pb.StatusResponse(
        status=pb.RuntimeStatus(conditions=[ready, network]),
        runtime_handlers=[
            pb.RuntimeHandler(name=name, features=features) for name in ("", *handlers)
        ],
        features=pb.RuntimeFeatures(supplemental_groups_policy=True),
    ).SerializeToString()


def sandbox_list(core: Core, request: pb.ListPodSandboxRequest) -> bytes:
    """ListPodSandbox; a list of all sandboxes, or of those in one state, is the very same bytes
    until something in it changes."""
    asked = request.SerializeToString()
    known = core.sandboxes.answer(asked)
    if known is not None:
        return known
    wanted = request.filter
    ids = matching_ids(core.sandboxes, wanted.id) if wanted.id else None
    state = wanted.state.state if wanted.HasField("state") else None
    labels = wanted.label_selector
    answer = b"".join(
        [
            sandbox_row(s)
            for s in core.sandboxes.values()
            if (ids is None or s.id in ids)
            and (state is None or state == (pb.SANDBOX_READY if s.ready else pb.SANDBOX_NOTREADY))
            and (not labels or labels_fit(s.config.labels, labels))
        ]
    )
    return answer if wanted.id or labels else core.sandboxes.keep(asked, answer)


def container_list(core: Core, request: pb.ListContainersRequest) -> bytes:
    """ListContainers, as `sandbox_list`."""
    asked = request.SerializeToString()
    known = core.containers.answer(asked)
    if known is not None:
        return known
    wanted = request.filter
    ids = matching_ids(core.containers, wanted.id) if wanted.id else None
    sandbox = wanted.pod_sandbox_id
    sandboxes = matching_ids(core.sandboxes, sandbox) if sandbox else None
    state = wanted.state.state if wanted.HasField("state") else None
    labels = wanted.label_selector
    answer = b"".join(
        [
            container_row(c)
            for c in core.containers.values()
            if (ids is None or c.id in ids)
            and (sandboxes is None or c.sandbox.id in sandboxes)
            and (state is None or c.state.value == state)
            and (not labels or labels_fit(c.config.labels, labels))
        ]
    )
    return answer if wanted.id or sandbox or labels else core.containers.keep(asked, answer)


def _as_message(method: str, core: Core, request: Message) -> Message:
    return KINDS[method].FromString(IN_BYTES[method](core, request))


IN_BYTES: Final[Mapping[str, Callable[[Core, Any], bytes]]] = {
    "Status": status,
    "ListPodSandbox": sandbox_list,
    "ListContainers": container_list,
}
KINDS: Final[Mapping[str, type[Message]]] = {
    "Status": pb.StatusResponse,
    "ListPodSandbox": pb.ListPodSandboxResponse,
    "ListContainers": pb.ListContainersResponse,
}
"""What the bytes are."""
HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    method: partial(_as_message, method) for method in IN_BYTES
}
