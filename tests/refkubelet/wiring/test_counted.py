"""Counts are what has happened: metrics of a node that lives through something (SRV-036 to 039)."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_world import running_node
from pods import manifest
from prometheus_client.parser import text_string_to_metric_families
from render_metrics import theirs

from fakecri import exits

pytestmark = pytest.mark.virtual_time


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """(name, labels) -> value of a page, as the Prometheus library reads it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_what_the_library_reads_has_the_kubelets_labels_SRV_036(tmp_path: Path) -> None:
    table = theirs()
    async with running_node(tmp_path, api=True) as node:
        node.cri.behaves(exits(3), pod="job")
        await node.create(manifest())
        await node.create(manifest(name="job", restartPolicy="Never"))
        await node.until(lambda: node.phase("job") == "Failed")
        await node.clock.sleep(15)
        text = node.kubelet.metrics.text()
    found = 0
    for name, labels in samples(text):
        base = name
        for ending in ("_bucket", "_sum", "_count", "_total"):  # the library adds the last one
            if name.removesuffix(ending) in table and name not in table:
                base = name.removesuffix(ending)
        wanted = set(table[base]["labels"])
        assert {label for label, _ in labels} - {"le"} == wanted, name
        found += 1
    assert found > 300


async def test_a_life_of_a_pod_is_counted_SRV_037_SRV_038(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.cri.behaves(exits(3), pod="job")
        node.cri.on("RunPodSandbox", pod="job").fails("UNKNOWN", "no network", times=1)
        await node.create(manifest(name="job", restartPolicy="Never"))
        await node.until(lambda: node.phase("job") == "Failed", 60)
        await node.clock.sleep(15)
        seen = samples(node.kubelet.metrics.text())
        calls = node.cri.calls("RunPodSandbox")
    of_sandbox = (("operation_type", "run_podsandbox"),)
    assert len(calls) == 2
    assert seen["kubelet_runtime_operations_total", of_sandbox] == 2
    assert seen["kubelet_runtime_operations_errors_total", of_sandbox] == 1
    assert seen["kubelet_started_pods_total", ()] == 2
    assert seen["kubelet_started_pods_errors_total", ()] == 1
    ended = (("container_type", "container"), ("exit_code", "3"), ("reason", "Error"))
    assert seen["kubelet_terminated_containers_total", ended] == 1
    of_create = (("operation_type", "create"),)
    assert seen["kubelet_pod_worker_duration_seconds_count", of_create] == 1
    assert seen["kubelet_pod_worker_start_duration_seconds_count", ()] == 1
    assert seen["kubelet_containers_per_pod_count_sum", ()] == 1
    wrote = [value for (name, _), value in seen.items() if name == "rest_client_requests_total"]
    assert sum(wrote) > 5
    took_s = seen["kubelet_pod_status_sync_duration_seconds_sum", ()]
    count = seen["kubelet_pod_status_sync_duration_seconds_count", ()]
    assert count >= 2
    assert took_s < 0.5 * count  # not since the first status of the pod
