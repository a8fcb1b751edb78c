"""The fake runtime's rules, in virtual time. The contract it shares with real runtimes is in
tests/verified; here is what only a programmed runtime can show."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest
from criapi.v1 import api_pb2 as cri

from fakecri import (
    CriError,
    FakeCRI,
    RegistryImage,
    exits,
    ignores,
    prints,
    registry_of,
    replies,
    start_fails,
    stops,
    uses,
    writes_termination_message,
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


async def run_exec(fake: FakeCRI, container: str, *command: str, timeout_s: int = 0) -> Any:
    request = cri.ExecSyncRequest(container_id=container, cmd=command, timeout=timeout_s)
    return await fake.call("ExecSync", request)


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


def test_a_container_ends_when_its_behaviour_says_CRI_070() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(exits(3, after_s=2.5), container="c")
        container = await started(fake)
        await asyncio.sleep(2.4)
        assert (await status(fake, container)).state == cri.CONTAINER_RUNNING
        await asyncio.sleep(0.2)
        ended = await status(fake, container)
        assert (ended.state, ended.exit_code, ended.reason) == (cri.CONTAINER_EXITED, 3, "Error")
        assert ended.finished_at - ended.started_at == pytest.approx(2.5e9, abs=1e6)

    virtual(main)


@pytest.mark.parametrize(
    ("behaviours", "timeout_s", "code", "took_s"),
    [
        ((), 10, 143, 0.0),
        ((stops(0, after_s=1.5),), 10, 0, 1.5),
        ((ignores("SIGTERM"),), 7, 137, 7.0),
        ((ignores("SIGTERM"),), 0, 137, 0.0),
        ((stops(0, after_s=9),), 4, 137, 4.0),
        ((exits(5, after_s=3), ignores("SIGTERM")), 30, 5, 3.0),
    ],
)
def test_stop_signals_waits_and_kills_CRI_060(
    behaviours: tuple[Any, ...], timeout_s: int, code: int, took_s: float
) -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(*behaviours)
        container = await started(fake)
        before = now_s()
        await stop(fake, container, timeout_s)
        assert now_s() - before == pytest.approx(took_s, abs=1e-3)
        ended = await status(fake, container)
        assert (ended.state, ended.exit_code) == (cri.CONTAINER_EXITED, code)

    virtual(main)


def test_of_two_stops_the_shorter_kills_CRI_063() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(ignores("SIGTERM"))
        container = await started(fake)
        before = now_s()
        await asyncio.gather(stop(fake, container, 30), stop(fake, container, 2))
        assert now_s() - before == pytest.approx(2.0, abs=1e-3)

    virtual(main)


def test_a_deadline_before_the_time_out_kills_nothing_CRI_064() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(ignores("SIGTERM"))
        container = await started(fake)
        code, _ = await refused(stop(fake, container, 30, deadline_s=1.0))
        assert code == "DEADLINE_EXCEEDED"
        await asyncio.sleep(60)
        assert (await status(fake, container)).state == cri.CONTAINER_RUNNING

    virtual(main)


def test_a_failed_start_is_128_and_final_CRI_056() -> None:
    async def main(fake: FakeCRI) -> None:
        config = pod_config()
        container = await create(fake, await run_pod(fake, config), config)
        with fake.behaves(start_fails("exec: no such file")):
            code, text = await refused(start(fake, container))
        assert code == "UNKNOWN"
        assert "exec: no such file" in text
        ended = await status(fake, container)
        assert (ended.exit_code, ended.reason, ended.started_at) == (128, "StartError", 0)
        assert ended.finished_at > 0
        assert "CONTAINER_EXITED" in (await refused(start(fake, container)))[1]

    virtual(main)


def test_a_container_cannot_start_in_a_stopped_sandbox_CRI_040() -> None:
    async def main(fake: FakeCRI) -> None:
        config = pod_config()
        sandbox = await run_pod(fake, config)
        container = await create(fake, sandbox, config)
        await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
        assert (
            f'sandbox container "{sandbox}" is not running'
            in (await refused(start(fake, container)))[1]
        )
        assert (await refused(create(fake, sandbox, config, attempt=1)))[0] == "NOT_FOUND"

    virtual(main)


def test_memory_over_the_limit_is_an_oom_kill_CRI_070() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(uses(memory_bytes=[(0, 10), (4, 2000)]))
        limits = cri.LinuxContainerConfig(
            resources=cri.LinuxContainerResources(memory_limit_in_bytes=1000)
        )
        container = await started(fake, linux=limits)
        await asyncio.sleep(4.1)
        ended = await status(fake, container)
        assert (ended.exit_code, ended.reason) == (137, "OOMKilled")

    virtual(main)


def test_exec_answers_in_turn_and_the_last_one_stays_CRI_111() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(replies("cat /ready", exit_code=1, stderr="not yet", until_s=5))
        fake.behaves(replies("cat /ready", stdout="ok", from_s=5), container="other")
        container = await started(fake)
        first = await run_exec(fake, container, "cat", "/ready")
        assert (first.exit_code, first.stderr) == (1, b"not yet")
        assert (await run_exec(fake, container, "true")).exit_code == 0
        await asyncio.sleep(6)
        assert (await run_exec(fake, container, "cat", "/ready")).exit_code == 0

    virtual(main)


def test_exec_stops_at_its_time_out_CRI_112() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(replies("slow", delay_s=10))
        container = await started(fake)
        before = now_s()
        code, text = await refused(run_exec(fake, container, "slow", timeout_s=1))
        assert code == "DEADLINE_EXCEEDED"
        assert "timeout 1s exceeded" in text
        assert now_s() - before == pytest.approx(1.0, abs=1e-3)

    virtual(main)


def test_a_termination_message_is_a_file_CRI_072(tmp_path: Path) -> None:
    message = tmp_path / "termination"

    async def main(fake: FakeCRI) -> str:
        fake.behaves(exits(1, after_s=1), writes_termination_message("out of cheese"))
        mount = cri.Mount(container_path="/dev/termination-log", host_path=str(message))
        container = await started(fake, mounts=[mount])
        await asyncio.sleep(1.1)
        return (await status(fake, container)).message

    assert virtual(main) == ""
    assert message.read_text() == "out of cheese"


def test_log_lines_have_the_cri_form_CRI_100_CRI_101(tmp_path: Path) -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(prints("hello", at_s=0.5), prints("", at_s=1.25, stream="stderr"))
        config = pod_config(log_directory=str(tmp_path))
        sandbox = await run_pod(fake, config)
        container = await create(fake, sandbox, config, log_path="c/0.log")
        assert (await status(fake, container)).log_path == f"{tmp_path}/c/0.log"
        await start(fake, container)
        await asyncio.sleep(2)

    virtual(main, write_logs=True)
    first, second = (tmp_path / "c/0.log").read_text().splitlines()
    assert first.startswith("2026-01-01T00:00:00.5")
    assert first.endswith("Z stdout F hello")
    assert second.endswith("Z stderr F ")


def test_a_dead_sandbox_keeps_its_address_and_containers_CRI_039() -> None:
    async def main(fake: FakeCRI) -> None:
        container = await started(fake)
        sandbox = fake.kill_sandbox(pod="web")
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id)
        answer: Any = await fake.call("PodSandboxStatus", request)
        assert answer.status.state == cri.SANDBOX_NOTREADY
        assert answer.status.network.ip.startswith("10.88.")
        assert (await status(fake, container)).state == cri.CONTAINER_RUNNING

    virtual(main)


def test_a_pod_on_the_hosts_network_has_no_address_CRI_033() -> None:
    async def main(fake: FakeCRI) -> None:
        options = cri.NamespaceOption(network=cri.NODE)
        security = cri.LinuxSandboxSecurityContext(namespace_options=options)
        config = pod_config(linux=cri.LinuxPodSandboxConfig(security_context=security))
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=await run_pod(fake, config))
        answer: Any = await fake.call("PodSandboxStatus", request)
        assert answer.status.network.ip == ""
        assert answer.status.linux.namespaces.options.network == cri.NODE

    virtual(main)


def test_addresses_differ_CRI_035() -> None:
    async def main(fake: FakeCRI) -> list[str]:
        for number in range(300):
            await run_pod(fake, pod_config(f"p{number}"))
        return [sandbox.ip for sandbox in fake.sandboxes()]

    addresses = virtual(main)
    assert len(set(addresses)) == 300


def test_without_network_pods_fail_but_host_pods_run_CRI_130() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.core.network_ready = False
        answer: Any = await fake.call("Status", cri.StatusRequest())
        network = {c.type: c for c in answer.status.conditions}["NetworkReady"]
        assert (network.status, network.reason) == (False, "NetworkPluginNotReady")
        _, text = await refused(run_pod(fake, pod_config()))
        assert "cni plugin not initialized" in text
        assert fake.sandboxes() == []

    virtual(main)


def test_a_runtime_that_is_down_answers_unavailable_and_keeps_all_CRI_160() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(exits(4, after_s=5))
        container = await started(fake)
        fake.crash()
        assert (await refused(status(fake, container)))[0] == "UNAVAILABLE"
        fake.restart()
        assert (await status(fake, container)).state == cri.CONTAINER_RUNNING

    virtual(main)


def test_after_a_reboot_nothing_runs() -> None:
    async def main(fake: FakeCRI) -> None:
        container = await started(fake)
        boot_id = fake.node.boot_id()
        fake.reboot()
        ended = await status(fake, container)
        assert (ended.state, ended.exit_code) == (cri.CONTAINER_EXITED, 255)
        assert not any(sandbox.ready for sandbox in fake.sandboxes())
        assert fake.node.boot_id() != boot_id

    virtual(main)


def test_events_tell_every_change_with_the_whole_pod_CRI_140_CRI_141() -> None:
    async def main(fake: FakeCRI) -> list[int]:
        seen: list[Any] = []

        async def listen() -> None:
            async for event in fake.stream("GetContainerEvents", cri.GetEventsRequest()):
                seen.append(event)

        listener = asyncio.create_task(listen())
        await asyncio.sleep(0)
        container = await started(fake)
        await stop(fake, container, 0)
        await asyncio.sleep(1)
        listener.cancel()
        assert seen[-1].containers_statuses[0].exit_code == 137
        assert seen[-1].pod_sandbox_status.metadata.name == "web"
        return [event.container_event_type for event in seen]

    created, begun = cri.CONTAINER_CREATED_EVENT, cri.CONTAINER_STARTED_EVENT
    expected = [created, begun, created, begun, cri.CONTAINER_STOPPED_EVENT]
    assert virtual(main) == expected


def test_a_failed_start_is_told_by_the_next_event_only_CRI_142() -> None:
    async def main(fake: FakeCRI) -> None:
        seen: list[Any] = []

        async def listen() -> None:
            async for event in fake.stream("GetContainerEvents", cri.GetEventsRequest()):
                seen.append(event)

        fake.behaves(start_fails("no such program"), pod="web")
        listener = asyncio.create_task(listen())
        await asyncio.sleep(0)
        with pytest.raises(CriError):
            await started(fake)
        await asyncio.sleep(1)
        kinds = [event.container_event_type for event in seen]
        created, begun = cri.CONTAINER_CREATED_EVENT, cri.CONTAINER_STARTED_EVENT
        assert kinds == [created, begun, created]  # of the sandbox two, of the container one
        sandbox = seen[0].pod_sandbox_status.id
        await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
        await asyncio.sleep(1)
        listener.cancel()
        assert [status.reason for status in seen[-1].containers_statuses] == ["StartError"]

    virtual(main)


def test_stats_of_containers_without_programmed_use_CRI_123() -> None:
    async def main(fake: FakeCRI) -> None:
        container = await started(fake)
        answer: Any = await fake.call("ListContainerStats", cri.ListContainerStatsRequest())
        assert [s.attributes.id for s in answer.stats] == [container]
        memory, cpu = answer.stats[0].memory, answer.stats[0].cpu
        assert 0 < memory.rss_bytes.value <= memory.working_set_bytes.value
        assert memory.working_set_bytes.value <= memory.usage_bytes.value < 2**20
        assert 0 < cpu.usage_core_nano_seconds.value < 10**9

    virtual(main)


def test_stats_follow_the_curves_CRI_123() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(
            uses(memory_bytes=[(0, 100), (5, 300)], cpu_millicores=500, disk_bytes=[(2, 7)])
        )
        container = await started(fake)
        await asyncio.sleep(10)
        request = cri.ContainerStatsRequest(container_id=container)
        answer: Any = await fake.call("ContainerStats", request)
        assert answer.stats.memory.working_set_bytes.value == 300
        assert answer.stats.writable_layer.used_bytes.value == 7
        assert answer.stats.cpu.usage_nano_cores.value == 500_000_000
        assert answer.stats.cpu.usage_core_nano_seconds.value == pytest.approx(5e9, rel=1e-3)

    virtual(main)


def test_the_node_sees_what_containers_use() -> None:
    async def main(fake: FakeCRI) -> None:
        memory, disk = fake.node.memory(), fake.node.filesystem("/var/lib/kubelet")
        fake.behaves(uses(memory_bytes=1000, disk_bytes=5000))
        container = await started(fake)
        assert fake.node.memory().working_set_bytes == memory.working_set_bytes + 1000
        used = fake.node.filesystem("/var/lib/kubelet").available_bytes
        assert used == disk.available_bytes - 5000
        await stop(fake, container, 0)
        assert fake.node.memory().working_set_bytes == memory.working_set_bytes

    virtual(main)


def test_resources_are_echoed_and_updated_CRI_120_CRI_121() -> None:
    async def main(fake: FakeCRI) -> None:
        resources = cri.LinuxContainerResources(cpu_shares=512, memory_limit_in_bytes=1 << 20)
        container = await started(fake, linux=cri.LinuxContainerConfig(resources=resources))
        update = cri.LinuxContainerResources(cpu_quota=5000)
        request = cri.UpdateContainerResourcesRequest(container_id=container, linux=update)
        await fake.call("UpdateContainerResources", request)
        seen = (await status(fake, container)).resources.linux
        assert (seen.cpu_shares, seen.cpu_quota, seen.memory_limit_in_bytes) == (512, 5000, 1 << 20)

    virtual(main)


@pytest.mark.parametrize(
    "written", ["busybox", "docker.io/library/busybox:latest", "busybox:latest"]
)
def test_image_names_are_one_after_normalisation_CRI_090(written: str) -> None:
    async def main(fake: FakeCRI) -> None:
        await fake.call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image="busybox")))
        request = cri.ImageStatusRequest(image=cri.ImageSpec(image=written))
        answer: Any = await fake.call("ImageStatus", request)
        assert list(answer.image.repo_tags) == ["docker.io/library/busybox:latest"]
        assert answer.image.size > 0

    virtual(main, images=())


def test_pulls_take_their_time_and_can_fail_CRI_092_CRI_096() -> None:
    registry = registry_of(
        {"r.io/slow:1": RegistryImage(pull_s=30), "r.io/bad:1": RegistryImage(error="no disk")}
    )

    async def main(fake: FakeCRI) -> None:
        def pull(name: str) -> Awaitable[Any]:
            return fake.call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image=name)))

        answer = await pull("r.io/slow:1")
        assert now_s() == pytest.approx(30)
        request = cri.ImageStatusRequest(image=cri.ImageSpec(image=answer.image_ref))
        found: Any = await fake.call("ImageStatus", request)
        assert found.image.id == answer.image_ref
        assert await refused(pull("r.io/bad:1")) == ("UNKNOWN", "no disk")
        assert (await refused(pull("r.io/none:1")))[0] == "NOT_FOUND"
        assert "invalid reference format" in (await refused(pull("UPPER CASE")))[1]

    virtual(main, registry=registry)


def test_removing_an_image_by_one_name_removes_all_CRI_095() -> None:
    content = RegistryImage(content="same")
    registry = registry_of({"r.io/a:1": content, "r.io/b:1": content})

    async def main(fake: FakeCRI) -> None:
        for name in ("r.io/a:1", "r.io/b:1"):
            await fake.call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image=name)))
        listed: Any = await fake.call("ListImages", cri.ListImagesRequest())
        assert [list(i.repo_tags) for i in listed.images] == [["r.io/a:1", "r.io/b:1"]]
        request = cri.RemoveImageRequest(image=cri.ImageSpec(image="r.io/b:1"))
        for _ in range(2):
            await fake.call("RemoveImage", request)
        listed = await fake.call("ListImages", cri.ListImagesRequest())
        assert not listed.images

    virtual(main, images=(), registry=registry)


def test_one_seed_gives_the_same_ids() -> None:
    async def main(fake: FakeCRI) -> str:
        return await started(fake)

    assert virtual(main) == virtual(main)
