"""Clauses about containers, from create to statistics, on the fake and on a real containerd."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from contract_runtime import (
    APP_IMAGE,
    IDLE,
    IMAGE,
    RUNS,
    Program,
    Runtime,
    containerd_since,
    execute,
)
from kubecri.v1 import api_pb2 as cri
from test_cri_contract import IGNORES_TERM

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


async def image_of(runtime: Runtime, name: str) -> cri.Image:
    request = cri.ImageStatusRequest(image=cri.ImageSpec(image=name))
    image = (await runtime.call("ImageStatus", request)).image
    assert isinstance(image, cri.Image)
    return image


async def listed(runtime: Runtime, **wanted: Any) -> list[cri.Container]:
    request = cri.ListContainersRequest(filter=cri.ContainerFilter(**wanted))
    return list((await runtime.call("ListContainers", request)).containers)


# -- create and start ---------------------------------------------------------------------------


async def test_every_name_of_an_image_will_do_CRI_051(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    image = await image_of(runtime, IMAGE)
    names = [image.id, *image.repo_tags, *image.repo_digests]
    for attempt, name in enumerate(names):
        await runtime.create(sandbox, config, attempt=attempt, image=cri.ImageSpec(image=name))
    with pytest.raises(grpc.RpcError) as failure:
        await runtime.create(sandbox, config, attempt=99, image=cri.ImageSpec())
    assert failure.value.code() is grpc.StatusCode.UNKNOWN


async def test_the_config_of_the_sandbox_is_required_CRI_052(runtime: Runtime) -> None:
    containerd_since(runtime, "2.2", "older ones crash")
    sandbox = await runtime.run_sandbox(runtime.pod())
    request = cri.CreateContainerRequest(pod_sandbox_id=sandbox)
    request.config.metadata.name = "c"
    request.config.image.image = IMAGE
    code, text = await runtime.refused("CreateContainer", request)
    assert (code, "pod sandbox config must include metadata" in text) == ("UNKNOWN", True)


async def test_what_is_starting_is_not_started_again_nor_removed_CRI_055_CRI_066(
    runtime: Runtime,
) -> None:
    if runtime.fake is None:
        pytest.skip("a start of a real runtime is over before the next call comes")
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    slow = Program("", lambda fake: (fake.start_hangs(0.5),))
    container = await runtime.create(sandbox, config, slow)
    begun = asyncio.ensure_future(runtime.start(container))
    await asyncio.sleep(0.1)
    request: Any = cri.StartContainerRequest(container_id=container)
    code, text = await runtime.refused("StartContainer", request)
    assert (code, "container is already in starting state" in text) == ("UNKNOWN", True)
    request = cri.RemoveContainerRequest(container_id=container)
    code, text = await runtime.refused("RemoveContainer", request)
    assert code == "UNKNOWN"
    assert "container is in starting state, can't be removed" in text
    await begun
    assert (await runtime.status(container)).state == cri.CONTAINER_RUNNING


async def test_a_container_that_failed_to_start_can_only_be_removed_CRI_056(
    runtime: Runtime,
) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    program = Program("", lambda fake: (fake.start_fails("exec: /no/such: not found"),))
    container = await runtime.create(sandbox, config, program, command=["/no/such"])
    start = cri.StartContainerRequest(container_id=container)
    _, why = await runtime.refused("StartContainer", start)
    failed = await runtime.status(container)
    assert failed.message in why
    assert not failed.message.startswith("failed to start container")
    code, text = await runtime.refused("StartContainer", start)
    assert (code, "container is in CONTAINER_EXITED state" in text) == ("UNKNOWN", True)
    assert await runtime.status(container) == failed
    await runtime.call("RemoveContainer", cri.RemoveContainerRequest(container_id=container))
    assert await listed(runtime, id=container) == []


async def test_a_process_that_ends_at_once_was_running_CRI_057(runtime: Runtime) -> None:
    program = Program("exit 7", lambda fake: (fake.exits(7),))
    _, container = await runtime.running(program)
    status = await runtime.exited(container)
    assert (status.exit_code, status.reason) == (7, "Error")
    assert min(status.started_at, status.finished_at) > status.created_at


# -- stop and remove ----------------------------------------------------------------------------


async def test_a_stop_of_what_does_not_run_changes_nothing_CRI_062(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config, RUNS)
    before = await runtime.status(container)
    for timeout_s in (0, 1):
        await runtime.stop(container, timeout_s)
        assert await runtime.status(container) == before
    await runtime.start(container)
    await runtime.stop(container)
    before = await runtime.status(container)
    for timeout_s in (0, 1):
        await runtime.stop(container, timeout_s)
        assert await runtime.status(container) == before


async def test_the_shorter_of_two_stops_kills_CRI_063(runtime: Runtime) -> None:
    _, container = await runtime.running(IGNORES_TERM)
    before = asyncio.get_running_loop().time()
    first = asyncio.ensure_future(runtime.stop(container, 25))
    await asyncio.sleep(0.2)
    await runtime.stop(container, 1)
    await first
    assert 1 <= asyncio.get_running_loop().time() - before < 10
    assert (await runtime.status(container)).exit_code == 137


async def test_the_signal_of_the_request_stops_CRI_061_CRI_084(runtime: Runtime) -> None:
    containerd_since(runtime, "2.3", "stop signals of requests")
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    plain = await runtime.create(sandbox, config)
    assert (await runtime.status(plain)).stop_signal == cri.SIGTERM
    container = await runtime.create(sandbox, config, attempt=1, stop_signal=cri.SIGUSR1)
    await runtime.start(container)
    assert (await runtime.status(container)).stop_signal == cri.SIGUSR1
    await runtime.stop(container, 20)
    assert (await runtime.status(container)).exit_code == 138


async def test_whatever_does_not_run_is_removed_CRI_066(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    created, ended = [await runtime.create(sandbox, config, attempt=n) for n in range(2)]
    await runtime.start(ended)
    await runtime.stop(ended)
    for container in (created, ended):
        for _ in range(2):
            request = cri.RemoveContainerRequest(container_id=container)
            await runtime.call("RemoveContainer", request)
        assert await listed(runtime, id=container) == []


# -- lists and statuses -------------------------------------------------------------------------


async def test_each_field_of_a_filter_counts_CRI_080(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    labels = {"a": "1", "b": "2"}
    container = await runtime.create(sandbox, config, labels=labels)
    other = await runtime.create(sandbox, config, attempt=1)
    elsewhere, _ = await runtime.running()
    created = cri.ContainerStateValue(state=cri.CONTAINER_CREATED)
    fits: dict[str, Any] = {
        "id": container, "pod_sandbox_id": sandbox, "state": created, "label_selector": labels
    }  # fmt: skip
    assert [c.id for c in await listed(runtime, **fits)] == [container]
    assert [c.id for c in await listed(runtime, label_selector={"a": "1"})] == [container]
    for wrong in (
        {"id": other},
        {"pod_sandbox_id": elsewhere},
        {"state": cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)},
        {"label_selector": {"a": "1", "b": "3"}},
        {"label_selector": {"a": "1", "c": ""}},
    ):
        assert await listed(runtime, **fits | wrong) == []
    whole = await runtime.call("ListContainers", cri.ListContainersRequest())
    assert {container, other} <= {c.id for c in whole.containers}
    assert {c.id for c in whole.containers} == {c.id for c in await listed(runtime)}


async def test_lists_of_sandboxes_have_filters_too_CRI_080(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    other = await runtime.run_sandbox(runtime.pod())

    async def found(**wanted: Any) -> list[str]:
        request = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(**wanted))
        return [item.id for item in (await runtime.call("ListPodSandbox", request)).items]

    ready = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
    fits: dict[str, Any] = {"id": sandbox, "state": ready, "label_selector": config.labels}
    assert await found(**fits) == [sandbox]
    assert await found(label_selector=config.labels) == [sandbox]
    for wrong in (
        {"id": other},
        {"state": cri.PodSandboxStateValue(state=cri.SANDBOX_NOTREADY)},
        {"label_selector": {"io.kubernetes.pod.uid": "no"}},
    ):
        assert await found(**fits | wrong) == []
    assert {sandbox, other} <= set(await found())


async def test_an_image_that_is_gone_is_told_as_it_was_asked_for_CRI_083_CRI_095(
    runtime: Runtime,
) -> None:
    """What runs of it goes on."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    image = await image_of(runtime, APP_IMAGE)
    asked = cri.ImageSpec(image=APP_IMAGE)
    container = await runtime.create(sandbox, config, RUNS, image=asked)
    await runtime.start(container)
    for _ in range(2):
        await runtime.call("RemoveImage", cri.RemoveImageRequest(image=asked))
    for name in (image.id, *image.repo_tags, *image.repo_digests):
        assert not (await image_of(runtime, name)).id
    images = (await runtime.call("ListImages", cri.ListImagesRequest())).images
    assert image.id not in [one.id for one in images]
    status = await runtime.status(container)
    assert status.state == cri.CONTAINER_RUNNING
    assert (status.image.image, status.image_ref) == (APP_IMAGE, image.id)
    (row,) = await listed(runtime, id=container)
    assert (row.image.image, row.image_ref) == (APP_IMAGE, image.id)


async def test_mounts_are_told_as_they_were_asked_for_CRI_084(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    place = runtime.log_root / "mounted"
    place.mkdir(exist_ok=True)
    mounts = [
        cri.Mount(container_path="/a", host_path=str(place), readonly=True),
        cri.Mount(container_path="/b", host_path=str(place)),
    ]
    status = await runtime.status(await runtime.create(sandbox, config, mounts=mounts))
    assert list(status.mounts) == mounts


# -- exec and streams ---------------------------------------------------------------------------


async def test_a_command_that_a_signal_kills_answers_CRI_111(runtime: Runtime) -> None:
    _, container = await runtime.running(IDLE)
    assert (await execute(runtime, container, "sh", "-c", "kill -9 $$"))[0] == 137
    request = cri.ExecSyncRequest(container_id=container)
    code, text = await runtime.refused("ExecSync", request)
    assert code == "UNKNOWN"
    assert text.startswith("failed to exec in container: failed to start exec ")


async def test_a_command_that_is_too_late_is_killed_CRI_112(runtime: Runtime) -> None:
    """By its time limit, or by the caller who waits no longer; without a limit it goes on."""
    from kubeobjects.golang.grpc_deadlines import within_deadline

    _, container = await runtime.running(IDLE)
    late = cri.ExecSyncRequest(container_id=container, cmd=["sleep", "77"], timeout=1)
    code, _ = await runtime.refused("ExecSync", late)
    assert code == "DEADLINE_EXCEEDED"
    late.timeout = 0
    with pytest.raises(grpc.RpcError) as failure:
        await within_deadline(runtime.target.call("ExecSync", late, timeout_s=0.5), 0.5)
    assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    async with asyncio.timeout(10):
        while (await execute(runtime, container, "pidof", "sleep"))[1] != "1\n":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    slow = cri.ExecSyncRequest(container_id=container, cmd=["sleep", "1.5"])
    assert (await runtime.call("ExecSync", slow)).exit_code == 0


@pytest.mark.parametrize("streams", [{}, {"stdout": True, "stderr": True, "tty": True}])
async def test_streams_that_cannot_be_CRI_116(runtime: Runtime, streams: dict[str, bool]) -> None:
    """A container that does not run is refused for that first."""
    _, container = await runtime.running()
    requests = {
        "Exec": cri.ExecRequest(container_id=container, cmd=["true"], **streams),
        "Attach": cri.AttachRequest(container_id=container, **streams),
    }
    for method, request in requests.items():
        assert (await runtime.refused(method, request))[0] == "INVALID_ARGUMENT"
    await runtime.stop(container)
    for method, request in requests.items():
        assert (await runtime.refused(method, request))[0] == "UNKNOWN"


async def test_streams_are_at_an_address_of_their_own_CRI_115_CRI_116(runtime: Runtime) -> None:
    sandbox, container = await runtime.running()
    requests: dict[str, Any] = {
        "exec": ("Exec", cri.ExecRequest(container_id=container, cmd=["true"], stdout=True)),
        "attach": ("Attach", cri.AttachRequest(container_id=container, stdout=True)),
        "portforward": ("PortForward", cri.PortForwardRequest(pod_sandbox_id=sandbox)),
    }
    tokens = set()
    for word, (method, request) in requests.items():
        for _ in range(2):
            url = (await runtime.call(method, request)).url
            begun, path, token = url.rsplit("/", 2)
            scheme, host = begun.split("://")
            assert (scheme, path) == ("http", word)
            assert host.startswith("127.0.0.1:")
            assert int(host.rpartition(":")[2]) > 1024
            assert len(token) == 8
            assert token.replace("-", "").replace("_", "").isalnum()
            tokens.add(token)
    assert len(tokens) == 2 * len(requests)


# -- resources and statistics -------------------------------------------------------------------


LIMITS = cri.LinuxContainerResources(
    cpu_period=50_000, cpu_quota=25_000, cpu_shares=512, memory_limit_in_bytes=64 << 20
)


async def limited(runtime: Runtime) -> str:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    linux = cri.LinuxContainerConfig(resources=LIMITS)
    linux.security_context.namespace_options.pid = cri.CONTAINER
    return await runtime.create(sandbox, config, RUNS, linux=linux)


async def limits(runtime: Runtime, container: str) -> tuple[int, ...]:
    told = (await runtime.status(container)).resources.linux
    return told.cpu_period, told.cpu_quota, told.cpu_shares, told.memory_limit_in_bytes


async def test_a_status_tells_the_limits_CRI_084_CRI_120(runtime: Runtime) -> None:
    container = await limited(runtime)
    assert await limits(runtime, container) == (50_000, 25_000, 512, 64 << 20)
    told = (await runtime.status(container)).resources.linux
    assert told.memory_swap_limit_in_bytes == told.memory_limit_in_bytes


@pytest.mark.parametrize("state", ["created", "running", "exited"])
async def test_an_update_changes_what_it_names_CRI_121(runtime: Runtime, state: str) -> None:
    container = await limited(runtime)
    if state != "created":
        await runtime.start(container)
    if state == "exited":
        await runtime.stop(container)
    request = cri.UpdateContainerResourcesRequest(container_id=container)
    await runtime.call("UpdateContainerResources", request)
    assert await limits(runtime, container) == (50_000, 25_000, 512, 64 << 20)
    request.linux.cpu_shares = 256
    await runtime.call("UpdateContainerResources", request)
    assert await limits(runtime, container) == (50_000, 25_000, 256, 64 << 20)


async def stats_of(runtime: Runtime, **wanted: Any) -> list[cri.ContainerStats]:
    request = cri.ListContainerStatsRequest(filter=cri.ContainerStatsFilter(**wanted))
    return list((await runtime.call("ListContainerStats", request)).stats)


async def test_statistics_of_all_and_of_what_is_left_of_the_limit_CRI_123(
    runtime: Runtime,
) -> None:
    """A list has those that do not run, too, without CPU and memory."""
    container = await limited(runtime)
    labels = {"no": "such"}
    (stats,) = await stats_of(runtime, id=container)
    assert stats.attributes.id == container
    assert not stats.HasField("cpu") or not stats.cpu.HasField("usage_core_nano_seconds")
    assert not stats.HasField("memory") or not stats.memory.HasField("working_set_bytes")
    await runtime.start(container)
    assert await stats_of(runtime, id=container, label_selector=labels) == []
    (stats,) = await stats_of(runtime, id=container)
    assert stats.attributes.metadata.name == "c"
    left = stats.memory.available_bytes.value
    assert left == (64 << 20) - stats.memory.working_set_bytes.value


async def test_statistics_of_a_pod_CRI_124(runtime: Runtime) -> None:
    containerd_since(runtime, "1.7", "statistics of pods")
    sandbox, container = await runtime.running()
    request = cri.PodSandboxStatsRequest(pod_sandbox_id=sandbox)
    stats = (await runtime.call("PodSandboxStats", request)).stats
    assert stats.attributes.id == sandbox
    assert stats.linux.cpu.usage_core_nano_seconds.value > 0
    assert stats.linux.memory.working_set_bytes.value > 0
    assert stats.linux.process.process_count.value > 0
    assert stats.linux.network.default_interface.name == "eth0"
    assert [one.attributes.id for one in stats.linux.containers] == [container]
    assert stats.linux.cpu.usage_nano_cores.value == 0
    wanted = cri.PodSandboxStatsFilter(id=sandbox)
    listing = await runtime.call(
        "ListPodSandboxStats", cri.ListPodSandboxStatsRequest(filter=wanted)
    )
    assert [one.attributes.id for one in listing.stats] == [sandbox]
    await runtime.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    assert (await runtime.refused("PodSandboxStats", request))[0] in ("UNKNOWN", "UNAVAILABLE")


async def test_limits_of_a_pod_are_kept_and_change_nothing_CRI_122(runtime: Runtime) -> None:
    containerd_since(runtime, "2.3", "limits of pods")
    container = await limited(runtime)
    sandbox = (await listed(runtime, id=container))[0].pod_sandbox_id
    request = cri.UpdatePodSandboxResourcesRequest(pod_sandbox_id=sandbox)
    request.resources.memory_limit_in_bytes = 1 << 20
    await runtime.call("UpdatePodSandboxResources", request)
    assert await limits(runtime, container) == (50_000, 25_000, 512, 64 << 20)
    await runtime.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    await runtime.call("UpdatePodSandboxResources", request)


async def test_a_runtime_tells_its_cgroup_driver_CRI_133(runtime: Runtime) -> None:
    containerd_since(runtime, "2.0", "RuntimeConfig")
    answer = await runtime.call("RuntimeConfig", cri.RuntimeConfigRequest())
    assert answer.HasField("linux")
    assert answer.linux.cgroup_driver == cri.CGROUPFS == 1
