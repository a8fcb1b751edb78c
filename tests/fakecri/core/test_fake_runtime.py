"""The fake runtime's rules, in virtual time. The contract it shares with real runtimes is in
tests/verified; here is what only a programmed runtime can show."""

from __future__ import annotations

from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import pod_config, refused, run_pod, started, status

from fakecri import (
    FakeCRI,
    exits,
)
from simclock import run_virtual


@pytest.mark.virtual_time
async def test_a_dead_sandbox_keeps_its_address_and_containers_CRI_039() -> None:
    fake = FakeCRI()
    linux = cri.LinuxContainerConfig()
    linux.security_context.namespace_options.pid = cri.CONTAINER
    container = await started(fake, linux=linux)
    sandbox = fake.kill_sandbox(pod="web")
    request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id)
    answer: Any = await fake.call("PodSandboxStatus", request)
    assert answer.status.state == cri.SANDBOX_NOTREADY
    assert answer.status.network.ip.startswith("10.88.")
    assert (await status(fake, container)).state == cri.CONTAINER_RUNNING


@pytest.mark.virtual_time
async def test_a_pod_on_the_hosts_network_has_no_address_CRI_033() -> None:
    fake = FakeCRI()
    options = cri.NamespaceOption(network=cri.NODE)
    security = cri.LinuxSandboxSecurityContext(namespace_options=options)
    config = pod_config(linux=cri.LinuxPodSandboxConfig(security_context=security))
    request = cri.PodSandboxStatusRequest(pod_sandbox_id=await run_pod(fake, config))
    answer: Any = await fake.call("PodSandboxStatus", request)
    assert answer.status.network.ip == ""
    assert answer.status.linux.namespaces.options.network == cri.NODE


@pytest.mark.virtual_time
async def test_addresses_differ_CRI_035() -> None:
    fake = FakeCRI()
    for number in range(300):
        await run_pod(fake, pod_config(f"p{number}"))
    addresses = [sandbox.ip for sandbox in fake.sandboxes()]
    assert len(set(addresses)) == 300


@pytest.mark.virtual_time
async def test_without_network_pods_fail_but_host_pods_run_CRI_130() -> None:
    fake = FakeCRI()
    fake.core.network.ready = False
    answer: Any = await fake.call("Status", cri.StatusRequest())
    network = {c.type: c for c in answer.status.conditions}["NetworkReady"]
    assert (network.status, network.reason) == (False, "NetworkPluginNotReady")
    _, text = await refused(run_pod(fake, pod_config()))
    assert "cni plugin not initialized" in text
    assert fake.sandboxes() == []


@pytest.mark.virtual_time
async def test_a_runtime_that_is_down_answers_unavailable_and_keeps_all_CRI_160() -> None:
    fake = FakeCRI()
    fake.behaves(exits(4, after_s=5))
    container = await started(fake)
    fake.crash()
    assert (await refused(status(fake, container)))[0] == "UNAVAILABLE"
    fake.restart()
    assert (await status(fake, container)).state == cri.CONTAINER_RUNNING


@pytest.mark.virtual_time
async def test_after_a_reboot_nothing_runs() -> None:
    fake = FakeCRI()
    container = await started(fake)
    boot_id = fake.node.boot_id()
    fake.reboot()
    ended = await status(fake, container)
    assert (ended.state, ended.exit_code) == (cri.CONTAINER_EXITED, 255)
    assert not any(sandbox.ready for sandbox in fake.sandboxes())
    assert fake.node.boot_id() != boot_id


def test_one_seed_gives_the_same_ids() -> None:
    first, second = [run_virtual(lambda: started(FakeCRI())) for _ in range(2)]
    assert first == second
