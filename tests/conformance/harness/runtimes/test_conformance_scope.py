"""What a scope shows of a shared runtime, and what it leaves behind."""

import asyncio
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from fakecri import FakeCRI
from fakecri.errors import unknown
from kubelet_conformance.harness.runtimes.scope import LeftBehind, Scope


def sandbox_config(name: str) -> cri.PodSandboxConfig:
    metadata = cri.PodSandboxMetadata(name=name, uid=name, namespace="default")
    return cri.PodSandboxConfig(metadata=metadata)


async def run_sandbox(scope: Scope, name: str) -> str:
    request = cri.RunPodSandboxRequest(config=sandbox_config(name))
    answer: Any = await scope.call("RunPodSandbox", request)
    return str(answer.pod_sandbox_id)


async def listed(target: Any) -> list[str]:
    answer: Any = await target.call("ListPodSandbox", cri.ListPodSandboxRequest())
    return [item.metadata.name for item in answer.items]


@pytest.mark.virtual_time
async def test_scopes_of_one_runtime_do_not_see_each_other() -> None:
    shared = FakeCRI()
    one, two = Scope(shared), Scope(shared)
    await run_sandbox(one, "a")
    await run_sandbox(two, "b")
    assert (await listed(one), await listed(two)) == (["a"], ["b"])
    await one.call("RemoveImage", cri.RemoveImageRequest())
    images: Any = await shared.call("ListImages", cri.ListImagesRequest())
    assert len(images.images) == 3
    await one.clean_up()
    assert await listed(shared) == ["b"]


@pytest.mark.virtual_time
async def test_scopes_of_one_runtime_do_not_hear_of_each_other() -> None:
    shared = FakeCRI()
    one, two = Scope(shared), Scope(shared)
    heard: list[str] = []

    async def listen() -> None:
        async for event in one.stream("GetContainerEvents", cri.GetEventsRequest()):
            heard.append(event.container_id)  # type: ignore[attr-defined]

    listening = asyncio.create_task(listen())
    mine = await run_sandbox(one, "a")
    await run_sandbox(two, "b")
    await one.clean_up()
    await two.clean_up()
    await asyncio.sleep(1)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert set(heard) == {mine}


class Busy:
    """A runtime that cannot remove sandboxes for a while."""

    def __init__(self, failures: int) -> None:
        self.cri = FakeCRI()
        self.failures = failures

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        if method == "RemovePodSandbox" and self.failures:
            self.failures -= 1
            raise unknown("cannot delete running task")
        return await self.cri.call(method, request, timeout_s=timeout_s)


@pytest.mark.virtual_time
async def test_a_clean_up_tries_again_when_a_removal_fails() -> None:
    runtime = Busy(failures=3)
    scope = Scope(runtime)
    await run_sandbox(scope, "a")
    await scope.clean_up()
    assert await listed(runtime.cri) == []


@pytest.mark.virtual_time
async def test_a_clean_up_says_what_stays_when_removals_keep_failing() -> None:
    scope = Scope(Busy(failures=1000))
    await run_sandbox(scope, "a")
    with pytest.raises(LeftBehind, match="cannot delete running task"):
        await scope.clean_up()
