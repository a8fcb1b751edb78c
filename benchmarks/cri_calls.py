"""What CRI calls to the fake runtime cost: a container's whole life, and a long list."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from criapi.v1 import api_pb2 as pb
from measure import Row

from fakecri import FakeCRI
from fakecri.server import serve
from refkubelet.runtime.transport import GrpcTarget
from simtime import run_virtual


class Target(Protocol):
    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any: ...


def sandbox_config(number: int) -> pb.PodSandboxConfig:
    name = f"pod-{number}"
    labels = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.uid": name}
    meta = pb.PodSandboxMetadata(name=name, uid=name, namespace="default")
    return pb.PodSandboxConfig(metadata=meta, labels=labels)


async def create(target: Target, sandbox_id: str, pod: pb.PodSandboxConfig) -> str:
    config = pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name="main"),
        image=pb.ImageSpec(image="localhost/busybox:1"),
        labels={"io.kubernetes.container.name": "main", **pod.labels},
    )
    request = pb.CreateContainerRequest(
        pod_sandbox_id=sandbox_id, config=config, sandbox_config=pod
    )
    return str((await target.call("CreateContainer", request)).container_id)


async def cycle(target: Target, number: int) -> None:
    """Run, create, start, stop, remove, stop and remove the sandbox: seven calls."""
    pod = sandbox_config(number)
    answer = await target.call("RunPodSandbox", pb.RunPodSandboxRequest(config=pod))
    sandbox = answer.pod_sandbox_id
    container = await create(target, sandbox, pod)
    for method, request in (
        ("StartContainer", pb.StartContainerRequest(container_id=container)),
        ("StopContainer", pb.StopContainerRequest(container_id=container, timeout=0)),
        ("RemoveContainer", pb.RemoveContainerRequest(container_id=container)),
        ("StopPodSandbox", pb.StopPodSandboxRequest(pod_sandbox_id=sandbox)),
        ("RemovePodSandbox", pb.RemovePodSandboxRequest(pod_sandbox_id=sandbox)),
    ):
        await target.call(method, request, timeout_s=120.0)


async def best_us(number: int, work: Callable[[int], Awaitable[object]], rounds: int = 5) -> float:
    """Microseconds of one `work`: the best average of `rounds` rounds of `number`."""
    averages = []
    for round_number in range(rounds):
        began = time.perf_counter()
        for i in range(number):
            await work(round_number * number + i)
        averages.append((time.perf_counter() - began) / number)
    return min(averages) * 1e6


async def in_process(number: int) -> float:
    cri = FakeCRI()
    return await best_us(number, lambda i: cycle(cri, i))


async def over_socket(number: int) -> float:
    with tempfile.TemporaryDirectory() as directory:
        async with serve(FakeCRI(), f"unix://{directory}/cri.sock") as server:
            target = GrpcTarget(server.endpoint)
            try:
                return await best_us(number, lambda i: cycle(target, i))
            finally:
                await target.close()


async def long_list(containers: int, number: int) -> float:
    """ListContainers over that many running containers."""
    cri = FakeCRI()
    for i in range(containers):
        pod = sandbox_config(i)
        answer = await cri.call("RunPodSandbox", pb.RunPodSandboxRequest(config=pod))
        container = await create(cri, answer.pod_sandbox_id, pod)
        await cri.call("StartContainer", pb.StartContainerRequest(container_id=container))
    request = pb.ListContainersRequest()
    return await best_us(number, lambda _: cri.call("ListContainers", request))


def rows(number: int = 200, containers: int = 1000) -> list[Row]:
    """`number` cycles a round."""
    what = "Run/Create/Start/Stop/Remove cycle (7 calls)"
    listed_us = run_virtual(lambda: long_list(containers, max(5, number // 10)))
    return [
        Row(f"{what}, in-process", run_virtual(lambda: in_process(number)), "us"),
        Row(f"{what}, unix socket", asyncio.run(over_socket(number)), "us"),
        Row(f"ListContainers with {containers} containers", listed_us / 1000, "ms"),
    ]


if __name__ == "__main__":
    for row in rows():
        print(row)
