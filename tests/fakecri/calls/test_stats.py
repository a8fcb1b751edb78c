"""Statistics and resources of containers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import started, status, stop

from fakecri import (
    FakeCRI,
    uses,
)


@pytest.mark.virtual_time
async def test_stats_of_containers_without_programmed_use_CRI_123() -> None:
    fake = FakeCRI()
    container = await started(fake)
    answer: Any = await fake.call("ListContainerStats", cri.ListContainerStatsRequest())
    assert [s.attributes.id for s in answer.stats] == [container]
    memory, cpu = answer.stats[0].memory, answer.stats[0].cpu
    assert 0 < memory.rss_bytes.value <= memory.working_set_bytes.value
    assert memory.working_set_bytes.value <= memory.usage_bytes.value < 2**20
    assert 0 < cpu.usage_core_nano_seconds.value < 10**9


@pytest.mark.virtual_time
async def test_stats_follow_the_curves_CRI_123() -> None:
    fake = FakeCRI()
    fake.behaves(uses(memory_bytes=[(0, 100), (5, 300)], cpu_millicores=500, disk_bytes=[(2, 7)]))
    container = await started(fake)
    await asyncio.sleep(10)
    request = cri.ContainerStatsRequest(container_id=container)
    answer: Any = await fake.call("ContainerStats", request)
    assert answer.stats.memory.working_set_bytes.value == 300
    assert answer.stats.writable_layer.used_bytes.value == 7
    assert answer.stats.cpu.usage_nano_cores.value == 500_000_000
    assert answer.stats.cpu.usage_core_nano_seconds.value == pytest.approx(5e9, rel=1e-3)


@pytest.mark.virtual_time
async def test_the_node_sees_what_containers_use() -> None:
    fake = FakeCRI()
    memory, disk = fake.node.memory(), fake.node.filesystem("/var/lib/kubelet")
    fake.behaves(uses(memory_bytes=1000, disk_bytes=5000))
    container = await started(fake)
    assert fake.node.memory().working_set_bytes == memory.working_set_bytes + 1000
    used = fake.node.filesystem("/var/lib/kubelet").available_bytes
    assert used == disk.available_bytes - 5000
    await stop(fake, container, 0)
    assert fake.node.memory().working_set_bytes == memory.working_set_bytes


@pytest.mark.virtual_time
async def test_resources_are_echoed_and_updated_CRI_120_CRI_121() -> None:
    fake = FakeCRI()
    resources = cri.LinuxContainerResources(cpu_shares=512, memory_limit_in_bytes=1 << 20)
    container = await started(fake, linux=cri.LinuxContainerConfig(resources=resources))
    update = cri.LinuxContainerResources(cpu_quota=5000)
    request = cri.UpdateContainerResourcesRequest(container_id=container, linux=update)
    await fake.call("UpdateContainerResources", request)
    seen = (await status(fake, container)).resources.linux
    assert (seen.cpu_shares, seen.cpu_quota, seen.memory_limit_in_bytes) == (512, 5000, 1 << 20)
