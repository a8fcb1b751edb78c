"""Plug-ins on real sockets, over gRPC (CG-086)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakecri.deviceplugin import FakeDevicePlugin
from fakecri.deviceplugin.registered import RegisteredPlugin, ServedRegistry
from refkubelet.plugin_manager.registration import (
    NotSupported,
    PluginEntry,
    RegistrationError,
    register_plugin,
)
from refkubelet.plugin_manager.sockets import GrpcSockets


class Taken:
    def __init__(self) -> None:
        self.entries: list[PluginEntry] = []

    def validate(self, entry: PluginEntry) -> None:
        """Everything is."""

    async def register(self, entry: PluginEntry) -> None:
        self.entries.append(entry)

    async def let_go(self, entry: PluginEntry) -> None:
        """Not here."""


async def test_a_plugin_is_registered_over_a_socket_CG_086(tmp_path: Path) -> None:
    device = FakeDevicePlugin("vendor.example/widget", ["w1"])
    plugin = RegisteredPlugin("DevicePlugin", "vendor.example/widget", device=device)
    path, taken, registry = tmp_path / "a.sock", Taken(), ServedRegistry()
    await registry.plug_in(path, plugin)
    known: list[PluginEntry] = []
    try:
        handlers = {"DevicePlugin": taken}
        await register_plugin(str(path), GrpcSockets(), handlers, known.append)
        assert plugin.told == [(True, "")]
        assert known == taken.entries
        plugin.type = "DRAPlugin"
        refused = {"DRAPlugin": NotSupported("DRA drivers")}
        with pytest.raises(RegistrationError, match="DRA drivers are not supported"):
            await register_plugin(str(path), GrpcSockets(), refused, known.append)
        assert plugin.told[1][0] is False
        plugin.broken = "not now"
        with pytest.raises(RegistrationError, match="code = Unknown desc = not now"):
            await register_plugin(str(path), GrpcSockets(), handlers, known.append)
    finally:
        await registry.close()
    assert not path.exists()
    with pytest.raises(RegistrationError, match="dial failed at socket"):
        await register_plugin(str(path), GrpcSockets(), {}, known.append)
