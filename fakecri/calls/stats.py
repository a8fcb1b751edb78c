"""Statistics of containers and pods, one function a method (CRI-123, CRI-124).

What a pod uses is what its running containers use together. What must never happen here: a value
is made up that the fake does not model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.calls.filters import chosen_containers, chosen_sandboxes
from fakecri.core.messages import fill_container_stats
from fakecri.core.objects import Container, Sandbox, State
from fakecri.core.runtime import Core
from fakecri.errors import unknown


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
    now_ns, mountpoint = core.now_ns(), core.node.image_root
    response = pb.ListContainerStatsResponse()
    for container in chosen_containers(core, request.filter):
        fill_container_stats(response.stats.add(), container, now_ns, mountpoint)
    return response


def _pod_sandbox_stats(
    core: Core, request: pb.PodSandboxStatsRequest
) -> pb.PodSandboxStatsResponse:
    sandbox = core.find_sandbox(request.pod_sandbox_id, "PodSandboxStats")
    if not sandbox.ready:
        raise unknown(
            f"failed to decode pod sandbox metrics {sandbox.id}: failed to get pod sandbox stats "
            f'since sandbox container "{sandbox.id}" is not in ready state'
        )
    response = pb.PodSandboxStatsResponse()
    _fill(response.stats, core, sandbox)
    return response


def _list_pod_sandbox_stats(
    core: Core, request: pb.ListPodSandboxStatsRequest
) -> pb.ListPodSandboxStatsResponse:
    """Sandboxes that are not ready are left out, as containerd does since 1.7."""
    response = pb.ListPodSandboxStatsResponse()
    for sandbox in chosen_sandboxes(core, request.filter):
        if sandbox.ready:
            _fill(response.stats.add(), core, sandbox)
    return response


def _fill(stats: pb.PodSandboxStats, core: Core, sandbox: Sandbox) -> None:
    now_ns, mountpoint = core.now_ns(), core.node.image_root
    containers = core.containers_of(sandbox)
    stats.attributes.id = sandbox.id
    stats.attributes.metadata.CopyFrom(sandbox.config.metadata)
    stats.attributes.labels.update(sandbox.config.labels)
    stats.attributes.annotations.update(sandbox.config.annotations)
    linux = stats.linux
    for container in containers:
        fill_container_stats(linux.containers.add(), container, now_ns, mountpoint)
    rows = linux.containers
    linux.cpu.timestamp = linux.memory.timestamp = linux.process.timestamp = now_ns
    linux.cpu.usage_core_nano_seconds.value = sum(r.cpu.usage_core_nano_seconds.value for r in rows)
    linux.cpu.usage_nano_cores.value = sum(r.cpu.usage_nano_cores.value for r in rows)
    memory = linux.memory
    memory.working_set_bytes.value = sum(r.memory.working_set_bytes.value for r in rows)
    memory.usage_bytes.value = sum(r.memory.usage_bytes.value for r in rows)
    memory.rss_bytes.value = sum(r.memory.rss_bytes.value for r in rows)
    linux.process.process_count.value = 1 + sum(pids_of(c, now_ns) for c in containers)
    if not sandbox.on_host_network:
        linux.network.timestamp = now_ns
        linux.network.default_interface.name = "eth0"
        for field in _traffic(linux.network.default_interface):
            field.value = 0


def _traffic(interface: pb.NetworkInterfaceUsage) -> tuple[pb.UInt64Value, ...]:
    return interface.rx_bytes, interface.rx_errors, interface.tx_bytes, interface.tx_errors


def pids_of(container: Container, now_ns: int) -> int:
    """How many processes run in it."""
    running = container.state is State.RUNNING
    return container.pids_now(container.age_s(now_ns)) if running else 0


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "ContainerStats": _container_stats,
    "ListContainerStats": _list_container_stats,
    "PodSandboxStats": _pod_sandbox_stats,
    "ListPodSandboxStats": _list_pod_sandbox_stats,
}
