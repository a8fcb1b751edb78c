"""Calls about pod sandboxes, one function a method (CRI-020..043, CRI-122)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.calls import verbose
from fakecri.core.messages import sandbox_status
from fakecri.core.objects import Sandbox
from fakecri.core.runtime import Core
from fakecri.core.sandboxes import remove_sandbox, run_sandbox, stop_sandbox
from fakecri.errors import found_or_none


def _run_pod_sandbox(core: Core, request: pb.RunPodSandboxRequest) -> pb.RunPodSandboxResponse:
    sandbox = run_sandbox(core, request.config, request.runtime_handler)
    return pb.RunPodSandboxResponse(pod_sandbox_id=sandbox.id)


def _stop_pod_sandbox(core: Core, request: pb.StopPodSandboxRequest) -> pb.StopPodSandboxResponse:
    sandbox: Sandbox | None = found_or_none(core.find_sandbox, request.pod_sandbox_id)
    if sandbox is not None:
        stop_sandbox(core, sandbox)
    return pb.StopPodSandboxResponse()


def _remove_pod_sandbox(
    core: Core, request: pb.RemovePodSandboxRequest
) -> pb.RemovePodSandboxResponse:
    sandbox: Sandbox | None = found_or_none(core.find_sandbox, request.pod_sandbox_id)
    if sandbox is not None:
        remove_sandbox(core, sandbox)
    return pb.RemovePodSandboxResponse()


def _pod_sandbox_status(
    core: Core, request: pb.PodSandboxStatusRequest
) -> pb.PodSandboxStatusResponse:
    sandbox = core.find_sandbox(request.pod_sandbox_id, "PodSandboxStatus")
    response = sandbox_status(sandbox)
    if request.verbose:
        response.info["info"] = json.dumps(verbose.of_sandbox(sandbox))
    return response


def _update_pod_sandbox_resources(
    core: Core, request: pb.UpdatePodSandboxResourcesRequest
) -> pb.UpdatePodSandboxResourcesResponse:
    """CRI-122: kept, whatever the state; nothing else changes."""
    sandbox = core.find_sandbox(request.pod_sandbox_id)
    sandbox.overhead, sandbox.resources = request.overhead, request.resources
    return pb.UpdatePodSandboxResourcesResponse()


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "RunPodSandbox": _run_pod_sandbox,
    "StopPodSandbox": _stop_pod_sandbox,
    "RemovePodSandbox": _remove_pod_sandbox,
    "PodSandboxStatus": _pod_sandbox_status,
    "UpdatePodSandboxResources": _update_pod_sandbox_resources,
}
