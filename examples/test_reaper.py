"""pytest: an asyncio client called without a socket, in virtual time. Hours cost milliseconds.

The client is anything that can be given the call target instead of a gRPC channel.
"""

import asyncio

from kubecri.v1 import api_pb2 as cri

from fakecri import CriError, CriTarget, FakeCRI, exits
from simclock import run_virtual

CONFIG = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="jobs", uid="u1"))


async def reap(runtime: CriTarget) -> int:
    """The code under test: removes exited containers; what fails is left for the next time."""
    exited = cri.ContainerStateValue(state=cri.CONTAINER_EXITED)
    request = cri.ListContainersRequest(filter=cri.ContainerFilter(state=exited))
    removed = 0
    for container in (await runtime.call("ListContainers", request)).containers:
        try:
            remove = cri.RemoveContainerRequest(container_id=container.id)
            await runtime.call("RemoveContainer", remove, timeout_s=10)
            removed += 1
        except CriError:
            continue
    return removed


async def reap_every_minute(runtime: CriTarget) -> None:
    while True:
        await reap(runtime)
        await asyncio.sleep(60)


async def start(runtime: CriTarget, *names: str) -> None:
    sandbox = await runtime.call("RunPodSandbox", cri.RunPodSandboxRequest(config=CONFIG))
    for name in names:
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name),
            image=cri.ImageSpec(image="localhost/busybox:1"),
        )
        create = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox.pod_sandbox_id, config=config, sandbox_config=CONFIG
        )
        made = await runtime.call("CreateContainer", create)
        await runtime.call(
            "StartContainer", cri.StartContainerRequest(container_id=made.container_id)
        )


def test_removes_what_has_ended_and_nothing_else(fakecri: FakeCRI) -> None:
    fakecri.behaves(exits(0, after_s=2 * 3600), container="job")

    async def main() -> None:
        await start(fakecri, "job", "server")
        reaper = asyncio.create_task(reap_every_minute(fakecri))
        await asyncio.sleep(3 * 3600)
        reaper.cancel()

    run_virtual(main)
    assert [container.name for container in fakecri.containers()] == ["server"]
    fakecri.assert_called("RemoveContainer", container="job", times=1)


def test_tries_again_after_a_failure_and_a_hanging_call(fakecri: FakeCRI) -> None:
    fakecri.behaves(exits(0), container="job")
    fakecri.on("RemoveContainer").hangs(times=1)
    fakecri.on("RemoveContainer").fails("UNKNOWN", "device or resource busy", times=1)

    async def main() -> list[int]:
        await start(fakecri, "job")
        await asyncio.sleep(1)
        return [await reap(fakecri) for _ in range(3)]

    assert run_virtual(main) == [0, 0, 1]
