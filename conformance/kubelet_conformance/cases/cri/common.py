"""What the cases of this area share: the configurations that the kubelet gave to the runtime."""

from collections.abc import Sequence
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.node import Node


async def started(node: Node, *names: str, within_s: float = limits.START_S) -> None:
    """Run until a container of each of these pods has been started."""
    await node.run_until(
        lambda: all(node.count("StartContainer", pod=name) for name in names),
        within_s=within_s,
        what=f"containers of {', '.join(names)} start",
    )


def sandbox_config(node: Node, pod: str) -> Any:
    """The configuration of the pod's last sandbox."""
    return node.calls("RunPodSandbox", pod=pod)[-1].request.config


def container_config(node: Node, name: str, pod: str | None = None) -> Any:
    """The configuration in the last CreateContainer for that container."""
    return node.calls("CreateContainer", container=name, pod=pod)[-1].request.config


def mounts_at(config: Any, paths: Sequence[str]) -> list[Any]:
    """The mounts of a container's configuration at these paths, in the order of the mounts."""
    return [mount for mount in config.mounts if mount.container_path in paths]


async def waiting(node: Node, pod: str, name: str, reason: str) -> str:
    """Run until the container waits with that reason; its message."""

    def state() -> dict[str, Any]:
        return dict(node.container(pod, name).get("state", {}).get("waiting") or {})

    await node.run_until(
        lambda: state().get("reason") == reason,
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what=f"{name} of {pod} waits with {reason}",
    )
    return str(state().get("message", ""))
