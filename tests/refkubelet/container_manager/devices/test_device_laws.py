"""Whatever plugins, pods and kubelets do, no device is in two pods (CG-084)."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from device_world import WIDGET, DeviceWorld, asking
from hypothesis import given, settings
from hypothesis import strategies as st
from pods import make_pod

from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice
from refkubelet.model.pod import containers

IDS = ("a", "b", "c", "d")
Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["pod", "init pod", "end", "health", "devices", "die", "return", "fail", "restart"]
        ),
        st.integers(0, 15),
    ),
    max_size=25,
)


class Life:
    """One kubelet and one plugin, and pods that come and go."""

    def __init__(self, world: DeviceWorld) -> None:
        self.world = world
        self.plugin = FakeDevicePlugin(WIDGET, IDS)
        self.alive = False
        self.number = 0

    async def step(self, what: str, choice: int) -> None:
        match what:
            case "pod" | "init pod":
                self.number += 1
                init = [asking(1 + choice % 2, "setup")] if what == "init pod" else []
                name = f"p{self.number}"
                await self.world.admit(make_pod(asking(choice % 4), name=name, init=init))
            case "end" if self.world.pods:
                self.world.pods.pop(choice % len(self.world.pods))
            case "health":
                health = "Healthy" if choice % 2 else "Unhealthy"
                self.plugin.set_health(IDS[choice // 4], health)
            case "devices":
                self.plugin.set_devices(*(PluginDevice(one) for one in IDS[: choice % 5]))
            case "die" if self.alive:
                self.alive = False
                await self.world.plugins.stop(self.plugin)
            case "return" if not self.alive:
                self.alive = True
                await self.world.plugins.start(self.plugin)
            case "fail":
                self.plugin.fails("Allocate", "no", times=1)
            case "restart":
                await self.world.restart()
        await self.world.clock.sleep(1.0)

    def check(self) -> None:
        """Active pods share nothing; what a pod has was asked for; counts fit."""
        world = self.world
        owners = Counter(
            one for each in world.pods for one in {*world.given(each), *world.given(each, "setup")}
        )
        assert all(count == 1 for count in owners.values()), owners
        for each in world.pods:
            for one in containers(each):
                limits = one.resources.limits if one.resources else None
                wanted = int((limits or {})[WIDGET])
                assert len(world.given(each, one.name)) in (0, wanted)
        amounts = world.manager.amounts()
        assert amounts.allocatable.get(WIDGET, 0) <= amounts.capacity.get(WIDGET, 0)
        assert self.alive or amounts.allocatable.get(WIDGET, 0) == 0


@pytest.mark.virtual_time
@settings(max_examples=60)
@given(STEPS)
async def test_no_device_is_in_two_pods_CG_084(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        world = DeviceWorld(Path(directory))
        await world.start()
        life = Life(world)
        await life.step("return", 0)
        for what, choice in steps:
            await life.step(what, choice)
            life.check()
        await world.stop()
