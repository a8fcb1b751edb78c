"""Pods and containers on a fake runtime in virtual time, made call by call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import pytest
from criapi.v1 import api_pb2 as cri

from fakecri import (
    FakeCRI,
)
from simtime import run_virtual

T = TypeVar("T")


IMAGE = "localhost/busybox:1"


def pod_config(name: str = "web", attempt: int = 0, **fields: Any) -> cri.PodSandboxConfig:
    metadata = cri.PodSandboxMetadata(
        name=name, uid=f"uid-{name}", namespace="default", attempt=attempt
    )
    return cri.PodSandboxConfig(metadata=metadata, **fields)


async def run_pod(fake: FakeCRI, config: cri.PodSandboxConfig) -> str:
    answer: Any = await fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=config))
    return str(answer.pod_sandbox_id)


async def create(
    fake: FakeCRI, sandbox: str, config: cri.PodSandboxConfig, name: str = "c", **fields: Any
) -> str:
    attempt = fields.pop("attempt", 0)
    container = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=name, attempt=attempt),
        image=cri.ImageSpec(image=IMAGE),
        **fields,
    )
    request = cri.CreateContainerRequest(
        pod_sandbox_id=sandbox, config=container, sandbox_config=config
    )
    answer: Any = await fake.call("CreateContainer", request)
    return str(answer.container_id)


async def start(fake: FakeCRI, container: str) -> None:
    await fake.call("StartContainer", cri.StartContainerRequest(container_id=container))


async def started(fake: FakeCRI, name: str = "c", pod: str = "web", **fields: Any) -> str:
    """A started container in a new pod."""
    config = pod_config(pod)
    container = await create(fake, await run_pod(fake, config), config, name, **fields)
    await start(fake, container)
    return container


async def status(fake: FakeCRI, container: str) -> cri.ContainerStatus:
    answer: Any = await fake.call(
        "ContainerStatus", cri.ContainerStatusRequest(container_id=container)
    )
    return answer.status  # type: ignore[no-any-return]


async def stop(
    fake: FakeCRI, container: str, timeout_s: int, *, deadline_s: float | None = None
) -> None:
    request = cri.StopContainerRequest(container_id=container, timeout=timeout_s)
    await fake.call("StopContainer", request, timeout_s=deadline_s)


async def refused(call: Awaitable[Any]) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as failure:
        await call
    return failure.value.code().name, failure.value.details()


def now_s() -> float:
    return asyncio.get_running_loop().time()


def virtual(main: Callable[[FakeCRI], Awaitable[T]], **options: Any) -> T:
    """Run `main` with a fresh FakeCRI in virtual time."""

    async def body() -> T:
        return await main(FakeCRI(**options))

    return run_virtual(body)
