"""Statistics and metrics of pods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import UNKNOWN_ID, created, pod_config, refused, run_pod, started

from fakecri import FakeCRI, uses


@pytest.mark.virtual_time
async def test_pod_statistics_are_those_of_its_running_containers_CRI_124() -> None:
    fake = FakeCRI()
    fake.behaves(uses(memory_bytes=1000, cpu_millicores=500, pids=3), container="a")
    fake.behaves(uses(memory_bytes=20, pids=2), container="b")
    await started(fake, "a")
    sandbox = fake.sandboxes()[0].id
    await started(fake, "b")
    await created(fake, "c")
    await asyncio.sleep(4)
    request = cri.PodSandboxStatsRequest(pod_sandbox_id=sandbox[:6])
    stats: Any = (await fake.call("PodSandboxStats", request)).stats
    assert stats.attributes.metadata.name == "web"
    assert stats.linux.memory.working_set_bytes.value == 1020
    used_ns = stats.linux.cpu.usage_core_nano_seconds.value
    assert used_ns == pytest.approx(2e9)
    assert stats.linux.cpu.usage_nano_cores.value == 500_000_000
    assert stats.linux.process.process_count.value == 6  # and the sandbox itself
    assert stats.linux.network.default_interface.name == "eth0"
    assert [c.attributes.metadata.name for c in stats.linux.containers] == ["a", "b", "c"]
    assert not stats.linux.containers[2].HasField("memory")


@pytest.mark.virtual_time
async def test_pod_statistics_of_stopped_and_unknown_pods_CRI_124() -> None:
    fake = FakeCRI()
    first = await run_pod(fake, pod_config("one", labels={"app": "x"}))
    await run_pod(fake, pod_config("two"))
    wanted = cri.PodSandboxStatsFilter(label_selector={"app": "x"})
    listed: Any = await fake.call(
        "ListPodSandboxStats", cri.ListPodSandboxStatsRequest(filter=wanted)
    )
    assert [s.attributes.id for s in listed.stats] == [first]
    await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=first))
    request = cri.PodSandboxStatsRequest(pod_sandbox_id=first)
    code, text = await refused(fake.call("PodSandboxStats", request))
    assert code == "UNKNOWN"
    assert "is not in ready state" in text
    listed = await fake.call("ListPodSandboxStats", cri.ListPodSandboxStatsRequest())
    assert [s.attributes.metadata.name for s in listed.stats] == ["two"]
    request = cri.PodSandboxStatsRequest(pod_sandbox_id=UNKNOWN_ID)
    assert (await refused(fake.call("PodSandboxStats", request)))[0] == "NOT_FOUND"


@pytest.mark.virtual_time
async def test_metrics_have_the_labels_that_their_descriptors_name_CRI_125() -> None:
    fake = FakeCRI()
    fake.behaves(uses(memory_bytes=4096))
    container = await started(fake)
    sandbox = fake.sandboxes()[0].id
    described: Any = await fake.call("ListMetricDescriptors", cri.ListMetricDescriptorsRequest())
    keys = {d.name: list(d.label_keys) for d in described.descriptors}
    answer: Any = await fake.call("ListPodSandboxMetrics", cri.ListPodSandboxMetricsRequest())
    (of_pod,) = answer.pod_metrics
    (of_container,) = of_pod.container_metrics
    assert (of_pod.pod_sandbox_id, of_container.container_id) == (sandbox, container)
    metrics = {m.name: m for m in of_container.metrics}
    of_network = {m.name for m in of_pod.metrics}
    assert set(metrics) | of_network == set(keys)
    for metric in (*of_pod.metrics, *of_container.metrics):
        assert len(metric.label_values) == len(keys[metric.name])
    assert {"container_fs_reads_total", "container_memory_cache"} <= set(metrics)
    assert "container_network_receive_bytes_total" in of_network
    used = metrics["container_memory_working_set_bytes"]
    assert used.value.value == 4096
    labels = dict(zip(keys[used.name], used.label_values, strict=True))
    assert (labels["pod"], labels["container"], labels["id"]) == ("web", "c", container)


@pytest.mark.virtual_time
async def test_an_idle_container_has_the_metrics_of_cadvisor_CRI_125() -> None:
    fake = FakeCRI()
    await started(fake)
    answer: Any = await fake.call("ListPodSandboxMetrics", cri.ListPodSandboxMetricsRequest())
    rows = answer.pod_metrics[0].container_metrics[0].metrics
    values = {m.name: m.value.value for m in rows}
    assert values["container_memory_working_set_bytes"] > 0
    assert (values["container_processes"], values["container_file_descriptors"]) == (1, 3)
    assert values["container_ulimits_soft"] == 1_048_576
    assert {
        "container_pressure_io_stalled_seconds_total",
        "container_hugetlb_max_usage_bytes",
        "container_spec_cpu_quota",
        "container_spec_memory_reservation_limit_bytes",
    } <= set(values)
