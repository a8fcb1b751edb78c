"""Device plugins on real sockets (CG-084)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from device_world import WIDGET, asking
from pods import make_pod, named

from fakecri.deviceplugin import FakeDevicePlugin
from fakecri.deviceplugin.serving import ServedPlugins, serve
from fakecri.errors import CriError
from refkubelet.container_manager.devices.allocator import DeviceDeps
from refkubelet.container_manager.devices.manager import DeviceManager
from refkubelet.container_manager.devices.sockets import PluginSockets, remove_sockets
from refkubelet.container_manager.providers.hints import AllocationError
from simclock import RealClock

pytestmark = pytest.mark.slow
ONE = make_pod(asking(1), name="one")


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("k")  # a socket's path must be short


@asynccontextmanager
async def running_manager(root: Path) -> AsyncIterator[DeviceManager]:
    directory = root / "device-plugins"
    manager = DeviceManager(
        DeviceDeps(
            RealClock(),
            PluginSockets(directory),
            root,
            active_pods=lambda: (ONE,),
            sources_ready=lambda: True,
            running=AsyncMock(return_value=()),
        )
    )
    run = asyncio.create_task(manager.run())
    await until((directory / "kubelet.sock").exists)
    try:
        yield manager
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    assert not (directory / "kubelet.sock").exists()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what happens in another process's threads
            await asyncio.sleep(0.02)


async def test_a_plugin_over_sockets_from_registration_to_its_end_CG_084(root: Path) -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a", "b"])
    plugin.pre_start_required = plugin.preferred_allocation = True
    plugin.prefers = lambda available, must, size: ["b"]
    async with running_manager(root) as manager:
        async with serve(plugin, root / "device-plugins"):
            await until(lambda: manager.amounts().allocatable == {WIDGET: 2})
            await manager.allocate(ONE, named(ONE))
            settings = await manager.settings(ONE, named(ONE))
            assert settings.envs == {"DEVICES_VENDOR_EXAMPLE_WIDGET": "b"}
            plugin.set_health("a", "Unhealthy")
            await until(lambda: manager.amounts().allocatable == {WIDGET: 1})
            methods = {call.method for call in plugin.calls}
            assert len(methods) == 5
        await until(lambda: manager.amounts().allocatable == {WIDGET: 0})
        with pytest.raises(AllocationError, match="no healthy devices present"):
            await manager.allocate(ONE, named(ONE))


async def test_an_absolute_endpoint_is_below_the_directory_too_CG_084(root: Path) -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a"], endpoint="p.sock")
    async with running_manager(root) as manager:
        plugins = ServedPlugins(root / "device-plugins")
        await plugins.start(plugin)
        request = plugin.registration()
        request.endpoint = "/p.sock"
        await manager.register(request)
        await until(lambda: manager.amounts().allocatable == {WIDGET: 1})
        await plugins.close()


async def test_errors_of_plugins_come_in_a_go_clients_words_CG_084(root: Path) -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a"])
    plugin.fails("Allocate", "no power", code="RESOURCE_EXHAUSTED")
    async with running_manager(root) as manager, serve(plugin, root / "device-plugins"):
        await until(lambda: manager.amounts().allocatable == {WIDGET: 1})
        with pytest.raises(AllocationError) as error:
            await manager.allocate(ONE, named(ONE))
        assert str(error.value) == "rpc error: code = ResourceExhausted desc = no power"


async def test_a_refused_plugin_is_told_why_CG_084(root: Path) -> None:
    plugin = FakeDevicePlugin("cpu", ["a"], endpoint="p.sock")
    async with running_manager(root):
        plugins = ServedPlugins(root / "device-plugins")
        with pytest.raises(CriError, match='the ResourceName "cpu" is invalid'):
            await plugins.start(plugin, faithful=False)
        await plugins.close()
    assert plugin.refusals == ['the ResourceName "cpu" is invalid']


async def test_a_plugin_that_does_not_listen_is_told_CG_084(root: Path) -> None:
    async with running_manager(root) as manager:
        with pytest.raises(Exception, match=r"failed to dial device plugin: .*No such file"):
            await manager.register(FakeDevicePlugin(WIDGET).registration())


async def test_a_faithful_plugin_comes_back_after_a_restart_CG_084(root: Path) -> None:
    plugins = ServedPlugins(root / "device-plugins")
    async with running_manager(root) as manager:
        await plugins.start(FakeDevicePlugin(WIDGET, ["a"]))
        await until(lambda: manager.amounts().allocatable == {WIDGET: 1})
    async with running_manager(root) as manager:
        await until(lambda: manager.amounts().allocatable == {WIDGET: 1})
    await plugins.close()
    assert not list((root / "device-plugins").glob("*.sock"))


def test_only_sockets_are_removed_at_start_CG_084(root: Path) -> None:
    (root / "directory").mkdir()
    (root / "kubelet_internal_checkpoint").write_text("kept")
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(root / "old.sock"))
    remove_sockets(root)
    assert sorted(path.name for path in root.iterdir()) == [
        "directory",
        "kubelet_internal_checkpoint",
    ]


async def test_a_plugin_that_ends_while_it_allocates_fails_that_pod_only_CG_084(root: Path) -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a"])
    plugin.hangs("Allocate")
    async with running_manager(root) as manager, serve(plugin, root / "device-plugins"):
        await until(lambda: manager.amounts().allocatable == {WIDGET: 1})
        allocating = asyncio.create_task(manager.allocate(ONE, named(ONE)))
        await until(lambda: plugin.allocated)
        plugin.end_streams()  # the manager closes the connection, and with it the call
        async with asyncio.timeout(60):
            await asyncio.wait([allocating])
        assert isinstance(allocating.exception(), AllocationError)
        assert "the connection was closed" in str(allocating.exception())
