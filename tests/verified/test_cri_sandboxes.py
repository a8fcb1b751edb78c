"""Clauses about pod sandboxes, on the fake and on a real containerd."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from cgroup_pods import directories
from contract_runtime import IDLE, RUNS, Runtime, execute
from kubecri.v1 import api_pb2 as cri

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


async def sandboxes_of(runtime: Runtime, config: cri.PodSandboxConfig) -> list[str]:
    """The ids that a list of the pod's sandboxes has."""
    wanted = cri.PodSandboxFilter(label_selector=config.labels)
    listing = await runtime.call("ListPodSandbox", cri.ListPodSandboxRequest(filter=wanted))
    return [item.id for item in listing.items]


def kill_sandbox(runtime: Runtime, config: cri.PodSandboxConfig, sandbox: str) -> None:
    """The process of the sandbox dies."""
    if runtime.fake is not None:
        runtime.fake.kill_sandbox(pod=config.metadata.name)
    else:
        runtime.node.kill(sandbox)


async def not_ready(runtime: Runtime, sandbox: str) -> cri.PodSandboxStatus:
    """The status in which it is that, which is soon."""
    async with asyncio.timeout(5):
        while True:
            status = await runtime.sandbox_status(sandbox)
            if status.state == cri.SANDBOX_NOTREADY:
                return status
            await asyncio.sleep(0.05)


async def test_handlers_are_known_or_refused_and_told_CRI_030_CRI_032(runtime: Runtime) -> None:
    """A refused run leaves nothing behind: no sandbox in a list, and the name is free."""
    config = runtime.pod()
    request = cri.RunPodSandboxRequest(config=config, runtime_handler="nosuch")
    code, text = await runtime.refused("RunPodSandbox", request)
    assert code == "UNKNOWN"
    assert text.endswith('no runtime for "nosuch" is configured')
    assert await sandboxes_of(runtime, config) == []
    request.runtime_handler = "runc"
    sandbox = (await runtime.call("RunPodSandbox", request)).pod_sandbox_id
    assert (await runtime.sandbox_status(sandbox)).runtime_handler == "runc"
    assert (await runtime.listed_sandbox(sandbox)).runtime_handler == "runc"
    default = await runtime.run_sandbox(runtime.pod())
    assert (await runtime.sandbox_status(default)).runtime_handler == ""
    assert (await runtime.listed_sandbox(default)).runtime_handler == ""


async def test_a_run_that_fails_half_way_leaves_nothing_CRI_032(runtime: Runtime) -> None:
    config = runtime.pod()
    config.linux.sysctls["kernel.nosuch"] = "1"
    await runtime.refused("RunPodSandbox", cri.RunPodSandboxRequest(config=config))
    assert await sandboxes_of(runtime, config) == []
    config.linux.sysctls.clear()
    sandbox = await runtime.run_sandbox(config)
    assert await sandboxes_of(runtime, config) == [sandbox]


async def test_a_sandbox_on_the_hosts_network_has_no_address_CRI_033_CRI_034(
    runtime: Runtime,
) -> None:
    config = runtime.pod()
    options = config.linux.security_context.namespace_options
    options.network = cri.NODE
    status = await runtime.sandbox_status(await runtime.run_sandbox(config))
    assert status.network.ip == ""
    assert status.linux.namespaces.options == options


async def test_stopping_a_sandbox_gives_no_grace_CRI_036(runtime: Runtime) -> None:
    """A handler of SIGTERM is not asked."""
    from test_cri_contract import STOPS_WITH_5

    sandbox, container = await runtime.running(STOPS_WITH_5)
    await runtime.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    status = await runtime.status(container)
    assert (status.state, status.exit_code) == (cri.CONTAINER_EXITED, 137)


async def test_all_is_dead_before_the_network_is_torn_down_CRI_036(runtime: Runtime) -> None:
    """So a stop that fails for the network has killed everything, and keeps the address."""
    if runtime.fake is None:
        pytest.skip("nothing takes the network away from a real containerd here")
    sandbox, container = await runtime.running(RUNS)
    address = (await runtime.sandbox_status(sandbox)).network.ip
    request = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox)
    with runtime.fake.without_network():
        await runtime.refused("StopPodSandbox", request)
    assert (await runtime.status(container)).state == cri.CONTAINER_EXITED
    status = await runtime.sandbox_status(sandbox)
    assert (status.state, status.network.ip) == (cri.SANDBOX_NOTREADY, address)
    await runtime.call("StopPodSandbox", request)
    assert (await runtime.sandbox_status(sandbox)).network.ip == ""


async def test_a_removed_sandbox_takes_all_containers_and_leaves_logs_CRI_038(
    runtime: Runtime,
) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    ended, running, created = [
        await runtime.create(sandbox, config, attempt=attempt) for attempt in range(3)
    ]
    for container in (ended, running):
        await runtime.start(container)
    await runtime.stop(ended)
    logs = runtime.log_root / config.metadata.name / "c"
    remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
    for _ in range(2):
        await runtime.call("RemovePodSandbox", remove)
        status: Any = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox)
        assert (await runtime.refused("PodSandboxStatus", status))[0] == "NOT_FOUND"
        for container in (ended, running, created):
            status = cri.ContainerStatusRequest(container_id=container)
            assert (await runtime.refused("ContainerStatus", status))[0] == "NOT_FOUND"
    assert await sandboxes_of(runtime, config) == []
    assert sorted(file.name for file in logs.iterdir()) == ["0.log", "1.log"]


async def test_a_sandbox_whose_process_dies_CRI_039(runtime: Runtime) -> None:
    """It keeps its address; containers with processes of their own go on, and can be entered."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config, IDLE)
    await runtime.start(container)
    address = (await runtime.sandbox_status(sandbox)).network.ip
    kill_sandbox(runtime, config, sandbox)
    status = await not_ready(runtime, sandbox)
    assert status.network.ip == address != ""
    assert (await runtime.status(container)).state == cri.CONTAINER_RUNNING
    assert await execute(runtime, container, "echo", "here") == (0, "here\n", "")


async def test_containers_in_the_process_namespace_of_the_pod_die_with_it_CRI_039(
    runtime: Runtime,
) -> None:
    config = runtime.pod()
    config.linux.security_context.namespace_options.pid = cri.POD
    sandbox = await runtime.run_sandbox(config)
    linux = cri.LinuxContainerConfig(
        security_context=cri.LinuxContainerSecurityContext(
            namespace_options=cri.NamespaceOption(pid=cri.POD)
        )
    )
    container = await runtime.create(sandbox, config, RUNS, linux=linux)
    await runtime.start(container)
    kill_sandbox(runtime, config, sandbox)
    status = await runtime.exited(container)
    assert (status.exit_code, status.reason) == (137, "Error")


def cgroups_named(runtime: Runtime, name: str) -> set[str]:
    """The directories above those of that name, below the cgroup of any controller."""
    if runtime.fake is not None:
        paths = [path for path in directories(runtime.fake.node) if path.endswith(f"/{name}")]
    else:
        paths = [str(path) for path in Path("/sys/fs/cgroup").rglob(name) if path.is_dir()]
    return {path.rpartition("/")[0] for path in paths}


async def test_cgroups_are_side_by_side_below_that_of_the_pod_CRI_044(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config)
    await runtime.start(container)
    above = cgroups_named(runtime, sandbox)
    assert above == cgroups_named(runtime, container)
    assert above
    assert all(path.endswith(config.linux.cgroup_parent) for path in above)
