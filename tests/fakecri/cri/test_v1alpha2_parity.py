"""CRI-010: a pod lives the same life over v1alpha2 as over v1, but for the name of the version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
from kubecri.v1 import api_pb2 as cri
from runtime_calls import container_config, pod_config

from fakecri import FakeCRI, exits, replies
from fakecri.recording.plain import plain
from fakecri.server import GrpcUpstream, serve
from simclock import Clock

POD = pod_config("shop", labels={"a": "1"})


class StandingClock(Clock):
    """The same instant for ever, so that answers can be compared."""

    def monotonic_s(self) -> float:
        return 0.0

    def wall_ns(self) -> int:
        return 1_700_000_000_000_000_000


async def life(path: Path, version: str) -> list[Any]:
    """Every answer, or code and text of the error."""
    fake = FakeCRI(StandingClock())
    fake.behaves(exits(3), container="job")
    fake.behaves(replies("ready", 1, "no"), container="web")
    answers: list[Any] = []

    async with serve(fake, f"unix://{path}") as server:
        async with GrpcUpstream(server.endpoint, api_version=version) as client:

            async def call(method: str, request: Any) -> Any:
                try:
                    answer = await client.call(method, request, timeout_s=10)
                except grpc.RpcError as error:
                    answers.append((method, error.code().name, error.details()))
                    return None
                answers.append((method, plain(answer)))
                return answer

            await call("Version", cri.VersionRequest())
            await call("Status", cri.StatusRequest(verbose=True))
            pod = (await call("RunPodSandbox", cri.RunPodSandboxRequest(config=POD))).pod_sandbox_id
            await call("RunPodSandbox", cri.RunPodSandboxRequest(config=POD))
            for name in ("job", "web"):
                config = container_config(name, labels={"b": "2", "a": "1"})
                create = cri.CreateContainerRequest(
                    pod_sandbox_id=pod, config=config, sandbox_config=POD
                )
                made = (await call("CreateContainer", create)).container_id
                await call("StartContainer", cri.StartContainerRequest(container_id=made))
                await call("StartContainer", cri.StartContainerRequest(container_id=made))
                await call("ContainerStatus", cri.ContainerStatusRequest(container_id=made))
                await call("ContainerStats", cri.ContainerStatsRequest(container_id=made))
                execute = cri.ExecSyncRequest(container_id=made, cmd=["ready"], timeout=5)
                await call("ExecSync", execute)
                await call("StopContainer", cri.StopContainerRequest(container_id=made))
            await call("ListContainers", cri.ListContainersRequest())
            await call("ListPodSandbox", cri.ListPodSandboxRequest())
            await call("PodSandboxStatus", cri.PodSandboxStatusRequest(pod_sandbox_id=pod))
            await call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image="a:1")))
            await call("ListImages", cri.ListImagesRequest())
            await call("ImageStatus", cri.ImageStatusRequest(image=cri.ImageSpec(image="a:1")))
            await call("ImageFsInfo", cri.ImageFsInfoRequest())
            await call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
            await call("ContainerStatus", cri.ContainerStatusRequest(container_id=made))
    return answers


async def test_a_pod_lives_the_same_life_over_v1alpha2_CRI_010(tmp_path: Path) -> None:
    new = await life(tmp_path / "v1.sock", "v1")
    old = await life(tmp_path / "v1alpha2.sock", "v1alpha2")
    assert [answer[0] for answer in new] == [answer[0] for answer in old]
    assert new[0][1].pop("runtime_api_version") == "v1"
    assert old[0][1].pop("runtime_api_version") == "v1alpha2"
    assert new == old
