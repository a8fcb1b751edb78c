"""What the cases of volumes share: a pod with one volume, and how it is waited for."""

import base64
import stat
from typing import Any, Final

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.manifests import Container, PodPlan, container, pod
from kubelet_conformance.harness.node import Node

VOLUME: Final = "v"
UPDATE_S: Final = 95.0
"""Until a pod was synced again and its volumes were filled anew: 60 s times [1, 1.5), a tick of the
sync loop, and a moment for the watch."""


def main(name: str = "main", **fields: Any) -> Container:
    """A container that mounts the volume."""
    return container(name, volumeMounts=[{"name": VOLUME, "mountPath": "/v"}], **fields)


def with_volume(name: str, source: dict[str, Any], *containers: Container, **spec: Any) -> PodPlan:
    """A pod with the volume, and a container that mounts it unless `containers` are given."""
    volumes = [{"name": VOLUME, **source}]
    return pod(name, *(containers or (main(),)), volumes=volumes, **spec)


def secret(name: str, **data: str) -> dict[str, Any]:
    """The manifest of a Secret with these texts."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": name}, "data": encoded}


def config_map(name: str, **data: str) -> dict[str, Any]:
    """The manifest of a ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


async def run_with(node: Node, plan: PodPlan) -> dict[str, str]:
    """Create the pod, wait until it runs, and tell the files of its volume."""
    await node.api.create_pod(plan)
    await node.wait_running(plan.name)
    return node.machine.volume_files(plan.name, VOLUME)


async def wait_files(node: Node, pod_name: str, wanted: dict[str, str]) -> None:
    """Run until the volume holds exactly these files."""
    await node.run_until(
        lambda: node.machine.volume_files(pod_name, VOLUME) == wanted,
        within_s=UPDATE_S,
        what=f"the volume holds {wanted}",
    )


async def wait_failed(node: Node, pod_name: str) -> str:
    """Run until an event tells that a volume cannot be mounted, and return its message."""
    await node.run_until(
        lambda: node.events("FailedMount", pod=pod_name),
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="an event FailedMount",
    )
    return str(node.events("FailedMount", pod=pod_name)[0]["message"])


def mode(node: Node, pod_name: str, file: str) -> str:
    """The permissions of a file of the volume, links followed, in octal digits."""
    status = (node.machine.made_volume(pod_name, VOLUME) / file).stat()
    return oct(stat.S_IMODE(status.st_mode))
