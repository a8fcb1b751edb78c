"""Calls about the runtime itself: Version, Status, RuntimeConfig (CRI-003, CRI-130..134)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.calls.lists import as_message
from fakecri.core.runtime import Core

API_VERSION: Final = "v1"
CRI_VERSION: Final = "0.1.0"


def _version(core: Core, request: pb.VersionRequest) -> pb.VersionResponse:
    return pb.VersionResponse(
        version=CRI_VERSION,
        runtime_name=core.setup.identity.name,
        runtime_version=core.setup.identity.version_of(),
        runtime_api_version=API_VERSION,
    )


def _runtime_config(core: Core, request: pb.RuntimeConfigRequest) -> pb.RuntimeConfigResponse:
    driver = pb.LinuxRuntimeConfiguration(cgroup_driver=core.setup.cgroup_driver)
    return pb.RuntimeConfigResponse(linux=driver)


def _update_runtime_config(core: Core, request: Message) -> pb.UpdateRuntimeConfigResponse:
    return pb.UpdateRuntimeConfigResponse()


def status(core: Core, request: pb.StatusRequest) -> bytes:
    """Status (CRI-130, CRI-132); one that is not verbose is the very same bytes as before."""
    answer = _status_answer(core.network.ready, core.setup.handlers)
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


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "Status": partial(as_message, pb.StatusResponse, status),
    "Version": _version,
    "RuntimeConfig": _runtime_config,
    "UpdateRuntimeConfig": _update_runtime_config,
}
