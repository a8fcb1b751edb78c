"""/metrics/cadvisor of a running kubelet: the runtime's numbers and those of cgroups (SRV-034)."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_world import running_node
from pods import manifest

pytestmark = pytest.mark.virtual_time


async def test_limits_are_shown_as_the_cgroups_have_them_SRV_034(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        limits = {"limits": {"cpu": "50m", "memory": "64Mi"}}
        node.apply(manifest(containers=[{"name": "c", "image": "i", "resources": limits}]))
        await node.clock.sleep(10)
        text = await node.kubelet.servers.host.pages.cadvisor_metrics()
    rows = [line for line in text.splitlines() if 'container="c"' in line]
    found = {row.partition("{")[0]: float(row.rpartition("} ")[2].split()[0]) for row in rows}
    assert found["container_spec_memory_limit_bytes"] == 64 << 20
    assert found["container_spec_cpu_quota"] == 5000
    assert found["container_oom_events_total"] == 0
    assert "container_cpu_usage_seconds_total" in found
