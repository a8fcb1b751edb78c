"""Devices in a whole kubelet: metrics, static pods, and a kubelet that is killed in between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from node_world import Node, Tap, running_node
from pods import container, manifest

from fakecri.deviceplugin import FakeDevicePlugin, InProcessPlugins

pytestmark = pytest.mark.virtual_time

WIDGET = "vendor.example/widget"


def wanting(name: str, count: int = 1) -> dict[str, Any]:
    limits = {WIDGET: str(count)}
    return manifest(container(limits=limits), name=name)


async def started_with(node: Node, plugin: FakeDevicePlugin) -> None:
    """A kubelet with a directory of plugins, and one plugin."""
    node.world.device_plugins = InProcessPlugins()
    await node.start()
    await node.clock.sleep(1)
    await node.world.device_plugins.start(plugin)


class StopsAt(Tap):
    """Holds the kubelet up at its first call of a method; `there` is set then."""

    def __init__(self, method: str, when: str) -> None:
        self._method = method
        self._when = when
        self.there = asyncio.Event()

    async def before(self, method: str) -> None:
        await self._stop("before", method)

    async def after(self, method: str) -> None:
        await self._stop("after", method)

    async def _stop(self, when: str, method: str) -> None:
        if (when, method) == (self._when, self._method) and not self.there.is_set():
            self.there.set()
            await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["RunPodSandbox", "CreateContainer", "StartContainer"])
async def test_a_killed_kubelet_gives_no_device_twice_CG_084(
    tmp_path: Path, method: str, when: str
) -> None:
    """Killed at a call for the pod, the next kubelet runs it with one device, the same one, and
    gives another to the next pod."""

    async with running_node(tmp_path, api=True, started=False) as node:
        plugin = FakeDevicePlugin(WIDGET, ["a", "b"])
        tap = node.tap = StopsAt(method, when)
        await started_with(node, plugin)
        await node.create(wanting("first"))
        await tap.there.wait()
        await node.kill()
        await node.start()
        await node.until(lambda: node.phase("first") == "Running")
        await node.create(wanting("second"))
        await node.until(lambda: node.phase("second") == "Running")
        devices = node.kubelet.resources.devices
        assert devices is not None
        given = [
            [device for _, device, _ in devices.given(str(pod.metadata.uid), "main")]
            for name in ("first", "second")
            if (pod := await node.live(name)).metadata is not None
        ]
        assert given == [["a"], ["b"]]
        assert plugin.allocated == [("a",), ("b",)]


async def test_a_kubelet_killed_while_a_plugin_allocates_asks_again_CG_084(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True, started=False) as node:
        plugin = FakeDevicePlugin(WIDGET, ["a"])
        plugin.hangs("Allocate", times=1)
        await started_with(node, plugin)
        await node.create(wanting("first"))
        await node.until(lambda: plugin.allocated)
        await node.kill()
        await node.start()
        await node.until(lambda: node.phase("first") == "Running")
        assert plugin.allocated == [("a",), ("a",)]


async def test_a_plugin_that_hangs_holds_up_nobody_but_new_pods_CG_084(tmp_path: Path) -> None:
    """Meanwhile containers are started again and pods end; new pods come in their order, and the
    one that is asked about has no worker."""

    async with running_node(tmp_path, api=True, started=False) as node:
        plugin = FakeDevicePlugin(WIDGET, ["a"])
        await started_with(node, plugin)
        await node.create(manifest(name="crashing"))
        await node.until(lambda: node.phase("crashing") == "Running")
        await node.create(manifest(name="leaving"))
        await node.until(lambda: node.phase("leaving") == "Running")
        plugin.hangs("Allocate", times=1)
        await node.create(wanting("hanging"))
        await node.until(lambda: plugin.allocated)
        began_s = node.clock.monotonic_s()
        await node.create(manifest(name="next"))
        node.cri.exit("main", pod="crashing", code=1)
        await node.delete("leaving", grace_s=1)
        await node.until(lambda: node.cri.count("StartContainer", pod="crashing") == 2)
        await node.until(lambda: node.phase("leaving") is None)
        assert node.clock.monotonic_s() - began_s < 20
        await node.clock.sleep(60)
        sandboxes = [c.subject.pod for c in node.writes() if c.method == "RunPodSandbox"]
        assert sandboxes == ["crashing", "leaving"]
        await node.until(lambda: node.phase("next") == "Running")
        assert node.phase("hanging") == "Failed"


async def test_a_static_pod_without_a_plugin_runs_without_a_device_CG_084(tmp_path: Path) -> None:
    """A resource that no plugin registered is not looked at."""

    async with running_node(tmp_path, started=False) as node:
        node.world.device_plugins = InProcessPlugins()
        await node.start()
        node.apply(wanting("web"))
        await node.until(lambda: node.phase("web-golden") == "Running")
        (create,) = [c for c in node.writes() if c.method == "CreateContainer"]
        names = [env.key for env in create.request.config.envs]
        assert not [name for name in names if name.startswith("DEVICES_")]


async def test_extended_resources_that_only_the_node_tells_of_are_counted_LIFE_225(
    tmp_path: Path,
) -> None:
    """They were written into the Node's status by hand: there is no plugin, and no Allocate."""

    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        amounts = {"capacity": {WIDGET: "1"}, "allocatable": {WIDGET: "1"}}
        path = "/api/v1/nodes/golden/status"
        kind = "application/merge-patch+json"
        await node.api.request("PATCH", path, body={"status": amounts}, content_type=kind)
        await node.clock.sleep(1)
        await node.create(wanting("greedy", 2))
        await node.until(lambda: node.phase("greedy") == "Failed")
        await node.create(wanting("modest", 1))
        await node.until(lambda: node.phase("modest") == "Running")
        status = node.status("greedy")
        assert status is not None
        assert status.message == (
            f"Pod was rejected: Node didn't have enough resource: {WIDGET}, requested: 2, used: 0, "
            "capacity: 1"
        )


async def test_the_page_of_metrics_shows_plugins_CG_084(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True, started=False) as node:
        plugin = FakeDevicePlugin(WIDGET, ["a"])
        await started_with(node, plugin)
        await node.create(wanting("first"))
        await node.until(lambda: node.phase("first") == "Running")
        text = node.kubelet.metrics.text()
        label = f'{{resource_name="{WIDGET}"}}'
        assert f"kubelet_device_plugin_registration_total{label} 1.0" in text
        assert f"kubelet_device_plugin_alloc_duration_seconds_count{label} 1.0" in text
