"""RuntimeService over the core: one function a method, each from request to answer.

The functions are synchronous: what takes time is in `slow_calls.py` and
`exec_sync.py`.
Nil-safe lookups and codes are CRI-020..135.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import grpc
from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri.calls import often_asked, verbose
from fakecri.core import resources, running
from fakecri.core.containers import create_container, remove_container
from fakecri.core.lookup import matching_ids
from fakecri.core.messages import (
    container_status,
    fill_container_stats,
    labels_fit,
    sandbox_status,
)
from fakecri.core.objects import Container, Sandbox, State
from fakecri.core.runtime import Core
from fakecri.core.sandboxes import remove_sandbox, run_sandbox, stop_sandbox
from fakecri.errors import CriError, unknown

API_VERSION: Final = "v1"
CRI_VERSION: Final = "0.1.0"


def _version(core: Core, request: pb.VersionRequest) -> pb.VersionResponse:
    return pb.VersionResponse(
        version=CRI_VERSION,
        runtime_name=core.identity.name,
        runtime_version=core.identity.version,
        runtime_api_version=API_VERSION,
    )


def _runtime_config(core: Core, request: pb.RuntimeConfigRequest) -> pb.RuntimeConfigResponse:
    driver = pb.LinuxRuntimeConfiguration(cgroup_driver=core.cgroup_driver)
    return pb.RuntimeConfigResponse(linux=driver)


def _update_runtime_config(core: Core, request: Message) -> pb.UpdateRuntimeConfigResponse:
    return pb.UpdateRuntimeConfigResponse()


# -- sandboxes ---------------------------------------------------------------------------------


def _run_pod_sandbox(core: Core, request: pb.RunPodSandboxRequest) -> pb.RunPodSandboxResponse:
    sandbox = run_sandbox(core, request.config, request.runtime_handler)
    return pb.RunPodSandboxResponse(pod_sandbox_id=sandbox.id)


def _known(find: Callable[[str], Any], object_id: str) -> Any | None:
    """The object, or None where an unknown id is fine (CRI-023); other lookup errors stay."""
    try:
        return find(object_id)
    except CriError as error:
        if error.code().name != "NOT_FOUND":
            raise
        return None


def _stop_pod_sandbox(core: Core, request: pb.StopPodSandboxRequest) -> pb.StopPodSandboxResponse:
    sandbox: Sandbox | None = _known(core.find_sandbox, request.pod_sandbox_id)
    if sandbox is not None:
        stop_sandbox(core, sandbox)
    return pb.StopPodSandboxResponse()


def _remove_pod_sandbox(
    core: Core, request: pb.RemovePodSandboxRequest
) -> pb.RemovePodSandboxResponse:
    sandbox: Sandbox | None = _known(core.find_sandbox, request.pod_sandbox_id)
    if sandbox is not None:
        remove_sandbox(core, sandbox)
    return pb.RemovePodSandboxResponse()


def _pod_sandbox_status(
    core: Core, request: pb.PodSandboxStatusRequest
) -> pb.PodSandboxStatusResponse:
    sandbox = core.find_sandbox(request.pod_sandbox_id, "PodSandboxStatus")
    response = pb.PodSandboxStatusResponse(status=sandbox_status(sandbox))
    if request.verbose:
        response.info["info"] = json.dumps(verbose.of_sandbox(sandbox))
    return response


# -- containers --------------------------------------------------------------------------------


def _create_container(core: Core, request: pb.CreateContainerRequest) -> pb.CreateContainerResponse:
    return pb.CreateContainerResponse(container_id=create_container(core, request).id)


def _remove_container(core: Core, request: pb.RemoveContainerRequest) -> pb.RemoveContainerResponse:
    container: Container | None = _known(core.find_container, request.container_id)
    if container is not None:
        remove_container(core, container)
    return pb.RemoveContainerResponse()


def _container_status(core: Core, request: pb.ContainerStatusRequest) -> pb.ContainerStatusResponse:
    container = core.find_container(request.container_id)
    response = pb.ContainerStatusResponse(status=container_status(container, core.images))
    if request.verbose:
        response.info["info"] = json.dumps(verbose.of_container(container))
    return response


def _update_container_resources(
    core: Core, request: pb.UpdateContainerResourcesRequest
) -> pb.UpdateContainerResourcesResponse:
    container = core.find_container(request.container_id, "UpdateContainerResources")
    if container.cgroup is not None:
        container.cgroup.limit(request.linux)
    resources.update(container.resources, request.linux)
    running.limits_changed(core, container)
    return pb.UpdateContainerResourcesResponse()


def _update_pod_sandbox_resources(
    core: Core, request: pb.UpdatePodSandboxResourcesRequest
) -> pb.UpdatePodSandboxResourcesResponse:
    """CRI-122: kept, whatever the state; nothing else changes."""
    sandbox = core.find_sandbox(request.pod_sandbox_id)
    sandbox.overhead, sandbox.resources = request.overhead, request.resources
    return pb.UpdatePodSandboxResourcesResponse()


def _reopen_container_log(
    core: Core, request: pb.ReopenContainerLogRequest
) -> pb.ReopenContainerLogResponse:
    container = core.find_container(request.container_id)
    if container.state is not State.RUNNING:
        raise unknown("container is not running")
    running.open_log(core, container)
    return pb.ReopenContainerLogResponse()


# -- statistics --------------------------------------------------------------------------------


def _container_stats(core: Core, request: pb.ContainerStatsRequest) -> pb.ContainerStatsResponse:
    container = core.find_container(request.container_id, "ContainerStats")
    if container.state is not State.RUNNING:
        raise unknown("unexpected metrics response: []")
    response = pb.ContainerStatsResponse()
    fill_container_stats(response.stats, container, core.now_ns(), core.node.image_root)
    return response


def _list_container_stats(
    core: Core, request: pb.ListContainerStatsRequest
) -> pb.ListContainerStatsResponse:
    wanted = request.filter
    ids = matching_ids(core.containers, wanted.id) if wanted.id else None
    sandbox = wanted.pod_sandbox_id
    sandboxes = matching_ids(core.sandboxes, sandbox) if sandbox else None
    labels, now_ns, mountpoint = wanted.label_selector, core.now_ns(), core.node.image_root
    response = pb.ListContainerStatsResponse()
    for c in core.containers.values():
        if (
            (ids is None or c.id in ids)
            and (sandboxes is None or c.sandbox.id in sandboxes)
            and (not labels or labels_fit(c.config.labels, labels))
        ):
            fill_container_stats(response.stats.add(), c, now_ns, mountpoint)
    return response


# -- streaming ---------------------------------------------------------------------------------


def check_streams(
    core: Core, request: pb.ExecRequest | pb.AttachRequest | pb.PortForwardRequest
) -> None:
    """CRI-116, in the order of containerd: unknown id, not RUNNING, no stream at all, tty with
    stderr. Raises: CriError."""
    if isinstance(request, pb.PortForwardRequest):
        if not core.find_sandbox(request.pod_sandbox_id, "PortForward").ready:
            raise unknown("sandbox container is not running")
        return
    method = "Exec" if isinstance(request, pb.ExecRequest) else "Attach"
    container = core.find_container(request.container_id, method)
    if container.state is not State.RUNNING:
        raise unknown(f"container is in CONTAINER_{container.state.name} state")
    if not (request.stdin or request.stdout or request.stderr):
        text = "one of stdin, stdout, or stderr must be set"
        raise CriError(grpc.StatusCode.INVALID_ARGUMENT, text)
    if request.tty and request.stderr:
        text = "tty and stderr cannot both be true"
        raise CriError(grpc.StatusCode.INVALID_ARGUMENT, text)


READINGS: Final = frozenset(
    {"Version", "RuntimeConfig", "PodSandboxStatus", "ContainerStatus", *often_asked.HANDLERS}
)
"""Those that change nothing."""
HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    **often_asked.HANDLERS,
    "Version": _version,
    "RuntimeConfig": _runtime_config,
    "UpdateRuntimeConfig": _update_runtime_config,
    "RunPodSandbox": _run_pod_sandbox,
    "StopPodSandbox": _stop_pod_sandbox,
    "RemovePodSandbox": _remove_pod_sandbox,
    "PodSandboxStatus": _pod_sandbox_status,
    "CreateContainer": _create_container,
    "RemoveContainer": _remove_container,
    "ContainerStatus": _container_status,
    "UpdateContainerResources": _update_container_resources,
    "UpdatePodSandboxResources": _update_pod_sandbox_resources,
    "ReopenContainerLog": _reopen_container_log,
    "ContainerStats": _container_stats,
    "ListContainerStats": _list_container_stats,
}
