"""Device plugins that register, die and come again (CG-084)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from device_world import WIDGET, DeviceWorld, asking
from pods import make_pod, named

from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice
from fakecri.errors import CriError
from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.container_manager.providers.hints import AllocationError

pytestmark = pytest.mark.virtual_time


async def test_a_plugin_that_died_gives_nothing_and_counts_for_five_minutes_CG_084(
    world: DeviceWorld,
) -> None:
    plugin = await world.plugin("a", "b")
    one = make_pod(asking(1), name="one")
    await world.admit(one)
    await world.plugins.stop(plugin)
    await world.clock.sleep(1)
    assert world.manager.amounts() == Amounts({WIDGET: 2}, {WIDGET: 0})
    assert world.manager.allocatable() == {WIDGET: 1}
    assert "no healthy devices present" in str(await world.admit(make_pod(asking(1), name="two")))
    await world.clock.sleep(298)
    assert world.manager.amounts().capacity == {WIDGET: 2}
    await world.clock.sleep(2)
    assert world.manager.amounts() == Amounts({WIDGET: 0}, {WIDGET: 0})
    rejected = await world.admit(make_pod(asking(1), name="two"))
    assert f"cannot allocate unregistered device {WIDGET}" in str(rejected)
    with pytest.raises(AllocationError, match="endpoint not found in cache"):
        await world.manager.settings(one, named(one))
    assert world.given(one) == ["a"]


async def test_a_plugin_that_registers_again_takes_over_CG_084(world: DeviceWorld) -> None:
    old = await world.plugin("a")
    new = FakeDevicePlugin(WIDGET, "ab", endpoint="new.sock")
    await world.plugins.start(new)
    await world.clock.sleep(0.1)
    await world.plugins.stop(old)  # its end is not the end of the new one
    await world.clock.sleep(1)
    assert world.manager.amounts().allocatable == {WIDGET: 2}
    assert await world.admit(make_pod(asking(2), name="one")) is None
    assert (old.allocated, new.allocated) == ([], [("a", "b")])


@pytest.mark.parametrize(("old_s", "new_s"), [(5.0, 0.0), (0.0, 5.0), (5.0, 5.0), (5.0, 4.0)])
async def test_of_two_registrations_at_a_time_the_newer_wins_whole_CG_084(
    world: DeviceWorld, old_s: float, new_s: float
) -> None:
    await world.plugin("z")  # both replace it
    old = FakeDevicePlugin(WIDGET, "abc", endpoint="old.sock")
    new = FakeDevicePlugin(WIDGET, "de", endpoint="new.sock")
    old.delays("GetDevicePluginOptions", old_s)
    new.delays("GetDevicePluginOptions", new_s)
    first = asyncio.create_task(world.plugins.start(old))
    await asyncio.sleep(0)
    await asyncio.gather(first, world.plugins.start(new))  # neither is refused
    await world.clock.sleep(0.1)
    assert world.manager.amounts().capacity == {WIDGET: 2}
    old.set_devices("f")
    await world.plugins.stop(old)
    new.set_devices("d", "e", "g")
    await world.clock.sleep(0.1)
    assert world.manager.amounts().allocatable == {WIDGET: 3}
    assert await world.admit(make_pod(asking(3), name="one")) is None
    assert (old.allocated, new.allocated) == ([], [("d", "e", "g")])


async def test_a_newer_registration_that_fails_leaves_the_older_CG_084(world: DeviceWorld) -> None:
    old = FakeDevicePlugin(WIDGET, "abc", endpoint="old.sock")
    new = FakeDevicePlugin(WIDGET, "de", endpoint="new.sock")
    old.delays("GetDevicePluginOptions", 1.0)
    new.fails("GetDevicePluginOptions", "no")
    first = asyncio.create_task(world.plugins.start(old))
    await asyncio.sleep(0)
    with pytest.raises(CriError, match="failed to get device plugin options"):
        await world.plugins.start(new)
    await first
    await world.clock.sleep(0.1)
    assert world.manager.amounts().allocatable == {WIDGET: 3}


async def test_devices_change_while_they_are_given_CG_084(world: DeviceWorld) -> None:
    plugin = await world.plugin("a", "b")
    one = make_pod(asking(1), name="one")
    await world.admit(one)
    plugin.set_devices("b", "c")
    await world.clock.sleep(0.1)
    assert world.manager.amounts() == Amounts({WIDGET: 2}, {WIDGET: 2})
    with pytest.raises(AllocationError, match="previously allocated devices are no longer"):
        await world.manager.allocate(one, named(one))
    two = make_pod(asking(2), name="two")
    assert await world.admit(two) is None
    assert world.given(two) == ["b", "c"]


async def test_two_devices_with_one_id_are_one_CG_084(world: DeviceWorld) -> None:
    await world.plugin("a", PluginDevice("a", health="Broken"), "b")
    assert world.manager.amounts() == Amounts({WIDGET: 2}, {WIDGET: 1})


async def test_numa_nodes_that_cannot_be_are_left_out(
    world: DeviceWorld, caplog: pytest.LogCaptureFixture
) -> None:
    await world.plugin(PluginDevice("a", nodes=(-5, 1, 10**12)))
    one = make_pod(asking(1), name="one")
    await world.admit(one)
    assert world.manager.given("uid-one", "main") == ((WIDGET, "a", 1),)
    assert "device a has invalid NUMA nodes in [-5, 1, 1000000000000]" in caplog.text


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (
            {"version": "v1"},
            'requested API version "v1" is not supported by kubelet. '
            'Supported version is ["v1beta1"]',
        ),
        ({"resource": "cpu"}, 'the ResourceName "cpu" is invalid'),
        ({"resource": ""}, 'the ResourceName "" is invalid'),
    ],
)
async def test_registrations_that_are_refused_CG_084(
    world: DeviceWorld, change: dict[str, str], answer: str
) -> None:
    plugin = FakeDevicePlugin(WIDGET, "a", endpoint="p.sock")
    for name, value in change.items():
        setattr(plugin, name, value)
    with pytest.raises(CriError) as error:
        await world.plugins.start(plugin)
    assert error.value.details() == answer
    assert world.manager.amounts().capacity == {}


async def test_a_plugin_that_registers_before_it_listens_CG_084(world: DeviceWorld) -> None:
    plugin = FakeDevicePlugin(WIDGET, "a")
    with pytest.raises(Exception, match="failed to dial device plugin: no plugin listens"):
        await world.manager.register(plugin.registration())


async def test_a_plugin_whose_options_fail_CG_084(world: DeviceWorld) -> None:
    plugin = FakeDevicePlugin(WIDGET, "a")
    plugin.fails("GetDevicePluginOptions", "busy")
    with pytest.raises(CriError) as error:
        await world.plugins.start(plugin)
    assert error.value.details() == (
        "failed to get device plugin options: rpc error: code = Unknown desc = busy"
    )


async def test_a_directory_that_cannot_be_used_is_told_and_the_kubelet_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        world = DeviceWorld(tmp_path)
        refused = PermissionError(13, "Permission denied", "/x/device-plugins")
        world.plugins.open = AsyncMock(side_effect=refused)  # type: ignore[method-assign]
        await world.start()
        await world.clock.sleep(1)
        await world.stop()
    assert "device plugins cannot register: /x/device-plugins: " in caplog.text
