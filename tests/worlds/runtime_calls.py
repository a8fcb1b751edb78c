"""Pods and containers on a runtime, made call by call: on a fake, a proxy or a client of either."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri

from fakecri import FakeCRI
from fakecri.cri.services import CriTarget

IMAGE: Final = "localhost/busybox:1"
"""The image of all containers; a fake has it from the start."""
UNKNOWN_ID: Final = "f" * 64


def pod_config(name: str = "web", attempt: int = 0, **fields: Any) -> cri.PodSandboxConfig:
    """What a kubelet asks for; `fields` are those of PodSandboxConfig."""
    metadata = cri.PodSandboxMetadata(
        name=name, uid=f"uid-{name}", namespace="default", attempt=attempt
    )
    return cri.PodSandboxConfig(metadata=metadata, **fields)


def container_config(
    name: str = "c", attempt: int = 0, *, image: str = IMAGE, **fields: Any
) -> cri.ContainerConfig:
    """What a kubelet asks for; `fields` are those of ContainerConfig."""
    metadata = cri.ContainerMetadata(name=name, attempt=attempt)
    return cri.ContainerConfig(metadata=metadata, image=cri.ImageSpec(image=image), **fields)


async def run_pod(
    target: CriTarget,
    config: cri.PodSandboxConfig | None = None,
    handler: str = "",
    *,
    timeout_s: float | None = None,
) -> str:
    """The ID of a new sandbox."""
    request = cri.RunPodSandboxRequest(config=config or pod_config(), runtime_handler=handler)
    answer: Any = await target.call("RunPodSandbox", request, timeout_s=timeout_s)
    return str(answer.pod_sandbox_id)


async def create(
    target: CriTarget, sandbox: str, config: cri.PodSandboxConfig, name: str = "c", **fields: Any
) -> str:
    """The ID of a new container in that sandbox; `fields` are those of `container_config`."""
    request = cri.CreateContainerRequest(
        pod_sandbox_id=sandbox, config=container_config(name, **fields), sandbox_config=config
    )
    answer: Any = await target.call("CreateContainer", request)
    return str(answer.container_id)


async def start(target: CriTarget, container: str, *, timeout_s: float | None = None) -> None:
    request = cri.StartContainerRequest(container_id=container)
    await target.call("StartContainer", request, timeout_s=timeout_s)


async def created(target: CriTarget, name: str = "c", pod: str = "web", **fields: Any) -> str:
    """A new container in the newest sandbox of that pod; in a new one, where a fake knows of none
    and where the target is not a fake."""
    config = pod_config(pod)
    known = target.sandboxes(pod=pod) if isinstance(target, FakeCRI) else []
    sandbox = known[-1].id if known else await run_pod(target, config)
    return await create(target, sandbox, config, name, **fields)


async def started(target: CriTarget, name: str = "c", pod: str = "web", **fields: Any) -> str:
    """The same, started."""
    container = await created(target, name, pod, **fields)
    await start(target, container)
    return container


async def left_by_a_kubelet(target: CriTarget, pod: str, *containers: str) -> None:
    """A new pod with running containers, labelled as an earlier kubelet would have left it."""
    labels = {
        "io.kubernetes.pod.name": pod,
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": f"uid-{pod}",
    }
    config = pod_config(pod, labels=labels)
    sandbox = await run_pod(target, config)
    for name in containers:
        own = {**labels, "io.kubernetes.container.name": name}
        await start(target, await create(target, sandbox, config, name, labels=own))


async def run_exec(target: CriTarget, container: str, *command: str, timeout_s: int = 0) -> Any:
    """The answer of ExecSync."""
    request = cri.ExecSyncRequest(container_id=container, cmd=command, timeout=timeout_s)
    return await target.call("ExecSync", request)


async def status(target: CriTarget, container: str) -> cri.ContainerStatus:
    answer: Any = await target.call(
        "ContainerStatus", cri.ContainerStatusRequest(container_id=container)
    )
    return answer.status  # type: ignore[no-any-return]


async def sandbox_status(target: CriTarget, sandbox: str) -> cri.PodSandboxStatus:
    request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox)
    answer: Any = await target.call("PodSandboxStatus", request)
    return answer.status  # type: ignore[no-any-return]


async def stop(
    target: CriTarget, container: str, timeout_s: int, *, deadline_s: float | None = None
) -> None:
    request = cri.StopContainerRequest(container_id=container, timeout=timeout_s)
    await target.call("StopContainer", request, timeout_s=deadline_s)


async def hear(target: CriTarget, events: list[Any]) -> None:
    """Subscribes to events, and keeps what comes."""
    async for event in target.stream("GetContainerEvents", cri.GetEventsRequest()):
        events.append(event)


async def refused(call: Awaitable[Any]) -> tuple[str, str]:
    """Code and text of a call that must fail."""
    with pytest.raises(grpc.RpcError) as failure:
        await call
    return failure.value.code().name, failure.value.details()


def now_s() -> float:
    return asyncio.get_running_loop().time()
