"""A fake runtime with a pod and containers, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import pytest
from criapi.v1 import api_pb2 as cri

from fakecri import FakeCRI
from simtime import run_virtual

T = TypeVar("T")


IMAGE = "localhost/busybox:1"


UNKNOWN_ID = "f" * 64


def virtual(main: Callable[[FakeCRI], Awaitable[T]], **options: Any) -> T:
    async def body() -> T:
        return await main(FakeCRI(**options))

    return run_virtual(body)


def pod(name: str = "web", **fields: Any) -> cri.PodSandboxConfig:
    metadata = cri.PodSandboxMetadata(name=name, uid=f"uid-{name}", namespace="ns")
    return cri.PodSandboxConfig(metadata=metadata, **fields)


async def run_pod(fake: FakeCRI, config: cri.PodSandboxConfig, handler: str = "") -> str:
    request = cri.RunPodSandboxRequest(config=config, runtime_handler=handler)
    answer: Any = await fake.call("RunPodSandbox", request)
    return str(answer.pod_sandbox_id)


async def new_container(
    fake: FakeCRI, name: str = "c", *, in_pod: str = "web", start: bool = True, **fields: Any
) -> tuple[str, str]:
    config = pod(in_pod)
    known = fake.sandboxes(pod=in_pod)
    sandbox = known[-1].id if known else await run_pod(fake, config)
    fields.setdefault("image", cri.ImageSpec(image=IMAGE))
    container = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), **fields)
    answer: Any = await fake.call(
        "CreateContainer",
        cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=config),
    )
    if start:
        request = cri.StartContainerRequest(container_id=answer.container_id)
        await fake.call("StartContainer", request)
    return sandbox, str(answer.container_id)


async def refused(call: Awaitable[Any]) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as failure:
        await call
    return failure.value.code().name, failure.value.details()
