"""The CRI requests that benchmarks send, the clients that send them, and the fakes that answer."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import grpc
from kubecri.v1 import api_pb2 as pb

from fakecri import FakeCRI
from fakecri.cri.endpoint import socket_path
from fakecri.cri.services import METHODS

IMAGE: Final = "localhost/busybox:1"
READY_S: Final = 20.0


class Target(Protocol):
    """What calls can be made to: the fake itself, or a client."""

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any: ...


def sandbox_config(number: int, cgroup_parent: str = "") -> pb.PodSandboxConfig:
    """The configuration of a sandbox as a kubelet makes it; `cgroup_parent` "": without a
    cgroup."""
    name = f"pod-{number}"
    labels = {
        "io.kubernetes.pod.name": name,
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": name,
    }
    meta = pb.PodSandboxMetadata(name=name, uid=name, namespace="default")
    linux = pb.LinuxPodSandboxConfig(cgroup_parent=cgroup_parent)
    return pb.PodSandboxConfig(metadata=meta, labels=labels, linux=linux if cgroup_parent else None)


def create_request(sandbox_id: str, pod: pb.PodSandboxConfig) -> pb.CreateContainerRequest:
    """The request for a container that sleeps, in a sandbox with the configuration `pod`."""
    config = pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name="main"),
        image=pb.ImageSpec(image=IMAGE),
        command=["sleep", "3600"],
        labels={"io.kubernetes.container.name": "main", **pod.labels},
        annotations={
            "io.kubernetes.container.restartCount": "0",
            "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        },
    )
    return pb.CreateContainerRequest(pod_sandbox_id=sandbox_id, config=config, sandbox_config=pod)


async def start_pod(target: Target, number: int, cgroup_parent: str = "") -> tuple[str, str]:
    """Run a sandbox with one container; returns the ids of both."""
    pod = sandbox_config(number, cgroup_parent)
    answer = await target.call("RunPodSandbox", pb.RunPodSandboxRequest(config=pod))
    created = await target.call("CreateContainer", create_request(answer.pod_sandbox_id, pod))
    start = pb.StartContainerRequest(container_id=created.container_id)
    await target.call("StartContainer", start)
    return answer.pod_sandbox_id, created.container_id


async def end_container(target: Target, container_id: str) -> None:
    """Stop the container without a grace period, and remove it."""
    stop = pb.StopContainerRequest(container_id=container_id, timeout=0)
    await target.call("StopContainer", stop, timeout_s=120.0)
    await target.call("RemoveContainer", pb.RemoveContainerRequest(container_id=container_id))


async def end_sandbox(target: Target, sandbox_id: str) -> None:
    """Stop the sandbox and remove it."""
    await target.call("StopPodSandbox", pb.StopPodSandboxRequest(pod_sandbox_id=sandbox_id))
    await target.call("RemovePodSandbox", pb.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id))


async def cycle(target: Target, number: int) -> None:
    """Create and remove a pod: seven calls."""
    sandbox, container = await start_pod(target, number)
    await end_container(target, container)
    await end_sandbox(target, sandbox)


async def populated(containers: int, **options: Any) -> tuple[FakeCRI, list[tuple[str, str]]]:
    """A fake with that many running containers, each in a pod of its own, and the ids of sandboxes
    and containers. `options`: those of `FakeCRI`."""
    cri = FakeCRI(**options)
    return cri, [await start_pod(cri, number) for number in range(containers)]


async def best_s(number: int, work: Callable[[int], Awaitable[object]], rounds: int = 5) -> float:
    """Seconds of one call of `work`: the best average of `rounds` rounds with `number` calls."""
    averages = []
    for round_number in range(rounds):
        began = time.perf_counter()
        for i in range(number):
            await work(round_number * number + i)
        averages.append((time.perf_counter() - began) / number)
    return min(averages)


class BlockingClient:
    """A client that blocks while it waits: it takes less time itself than gRPC's asyncio client."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._calls = {
            method.name: channel.unary_unary(
                method.path(),
                request_serializer=method.request_type.SerializeToString,
                response_deserializer=method.response_type.FromString,
            )
            for method in METHODS.values()
            if not method.streams
        }

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        return self._calls[method](request, timeout=timeout_s)


@contextmanager
def blocking_client(endpoint: str) -> Iterator[BlockingClient]:
    """A client of the runtime at `unix:///...`."""
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix:{socket_path(endpoint)}", options=options) as channel:
        yield BlockingClient(channel)


@dataclass(frozen=True, slots=True)
class FakeProcess:
    """A running `fakecri serve`; its CRI and control endpoints are `unix:///...`."""

    pid: int
    endpoint: str
    control: str


@asynccontextmanager
async def fake_process(*options: str) -> AsyncIterator[FakeProcess]:
    """Run `fakecri serve` with these options until the block ends."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        listen, control = f"unix://{directory}/cri.sock", f"unix://{directory}/ctl.sock"
        command = [sys.executable, "-m", "fakecri", "serve"]
        endpoints = ["--listen", listen, "--control", control]
        process = await asyncio.create_subprocess_exec(
            *command, *endpoints, *options, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(READY_S):
                while b"control on" not in (line := await process.stdout.readline()):
                    assert line, "fakecri serve ended at once"
            yield FakeProcess(process.pid, listen, control)
        finally:
            process.terminate()
            await process.wait()
