"""Plug-ins below plugins_registry: found, handed over, told, let go (CG-086, CG-087)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from loops import virtual_loop

from fakecri.deviceplugin import InProcessPlugins
from fakecri.deviceplugin.registered import InProcessRegistry, RegisteredPlugin
from refkubelet.plugin_manager import manager
from refkubelet.plugin_manager.manager import PluginManager, sockets_below
from refkubelet.plugin_manager.registration import (
    NotSupported,
    PluginEntry,
    PluginHandler,
    PluginRefused,
)
from simclock import aside


class Lamps:
    """A handler that notes what it takes."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, PluginEntry]] = []
        self.refuses: Exception | None = None
        self.takes_s = 0.0

    def validate(self, entry: PluginEntry) -> None:
        if "v1" not in entry.versions:
            raise PluginRefused("too old")

    async def register(self, entry: PluginEntry) -> None:
        self.seen.append(("register", entry))
        await asyncio.sleep(self.takes_s)
        if self.refuses is not None:
            raise self.refuses

    async def let_go(self, entry: PluginEntry) -> None:
        self.seen.append(("let go", entry))

    def steps(self) -> list[str]:
        return [f"{step} {entry.name}" for step, entry in self.seen]


class World:
    def __init__(self, root: Path) -> None:
        self.directory = root / "plugins_registry"
        self.registry = InProcessRegistry(InProcessPlugins())
        self.lamps = Lamps()
        handlers: dict[str, PluginHandler] = {
            "Lamp": self.lamps,
            "CSIPlugin": NotSupported("CSI drivers"),
        }
        self.manager = PluginManager(root, self.registry, handlers, virtual_loop().clock)

    async def offer(self, name: str, **fields: object) -> RegisteredPlugin:
        plugin = RegisteredPlugin("Lamp", name, versions=("v1",))
        for field, value in fields.items():
            setattr(plugin, field, value)
        await self.registry.plug_in(self.directory / f"{name}.sock", plugin)
        return plugin


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    found = World(tmp_path)
    run = asyncio.create_task(found.manager.run())
    yield found
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


pytestmark = pytest.mark.virtual_time


async def test_a_plugin_is_handed_to_its_handler_CG_086(world: World) -> None:
    plugin = await world.offer("one", endpoint="/run/one.sock")
    await asyncio.sleep(1.1)
    entry = PluginEntry("Lamp", "one", "/run/one.sock", ("v1",))
    assert world.lamps.seen == [("register", entry)]
    assert plugin.told == [(True, "")]
    other = await world.offer("two")
    await asyncio.sleep(5)
    assert world.lamps.seen[1][1].endpoint == str(world.directory / "two.sock")
    assert (plugin.asked, other.asked) == (1, 1)


async def test_what_is_not_taken_is_told_CG_086(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    old = await world.offer("old", versions=("v0",))
    odd = await world.offer("odd", type="Odd")
    csi = await world.offer("csi", type="CSIPlugin")
    await asyncio.sleep(1.1)
    start = "RegisterPlugin error -- "
    path = world.directory / "odd.sock"
    assert old.told == [(False, f"{start}plugin validation failed with err: too old")]
    assert odd.told == [
        (False, f"{start}no handler registered for plugin type: Odd at socket {path}")
    ]
    text = "csi: CSI drivers are not supported by refkubelet"
    assert csi.told == [(False, f"{start}plugin validation failed with err: {text}")]
    assert world.lamps.seen == []
    assert len(caplog.records) == 3


async def test_a_failed_one_is_tried_again_and_told_once_CG_086(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.lamps.refuses = PluginRefused("no power")
    plugin = await world.offer("one")
    await asyncio.sleep(20)
    assert 4 <= len(plugin.told) <= 6
    text = "RegisterPlugin error -- plugin registration failed with err: no power"
    assert set(plugin.told) == {(False, text)}
    assert len(caplog.records) == 1
    world.lamps.refuses = None
    await asyncio.sleep(40)
    assert plugin.told[-1] == (True, "")


async def test_an_unexpected_error_touches_one_plugin_CG_086(world: World) -> None:
    world.lamps.refuses = KeyError("bug")
    await world.offer("one")
    await asyncio.sleep(1.1)
    world.lamps.refuses = None
    other = await world.offer("two")
    await asyncio.sleep(1.1)
    assert other.told == [(True, "")]


async def test_a_socket_made_anew_is_registered_again_CG_086(world: World) -> None:
    await world.offer("one")
    await asyncio.sleep(1.1)
    again = await world.offer("one")
    await asyncio.sleep(2.1)
    assert world.lamps.steps() == ["register one", "let go one", "register one"]
    assert again.told == [(True, "")]
    await world.registry.unplug(world.directory / "one.sock")
    await asyncio.sleep(1.1)
    assert world.lamps.steps()[3:] == ["let go one"]


async def test_a_plugin_that_hangs_holds_up_no_other_CG_086(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    slow = await world.offer("slow", slow_s=1.5)
    other = await world.offer("other", slow_s=0.9)
    await asyncio.sleep(2.1)
    assert (slow.told, other.told) == ([], [(True, "")])
    path = world.directory / "slow.sock"
    assert (
        f"plug-in at {path} is not registered: failed to get plugin info using RPC GetInfo at "
        f"socket {path}, err: rpc error: code = DeadlineExceeded" in caplog.text
    )


async def test_a_socket_that_nobody_listens_at_is_told_CG_086(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.directory.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(world.directory / "dead.sock"))
    await asyncio.sleep(1.1)
    assert "dial failed at socket" in caplog.text


async def test_a_directory_that_is_none_is_told_CG_086(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "plugins_registry").write_text("")
    world = World(tmp_path)
    run = asyncio.create_task(world.manager.run())
    await asyncio.sleep(5)
    assert len(caplog.records) == 1
    (tmp_path / "plugins_registry").unlink()
    plugin = await world.offer("one")
    await asyncio.sleep(1.1)
    assert plugin.told == [(True, "")]
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_which_sockets_are_looked_at_CG_086(tmp_path: Path) -> None:
    for name in ("a.sock", "b/c.sock", ".d.sock", ".e/f.sock", "b/.g.sock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(tmp_path / name))
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "a.sock")
    found = await aside("sockets", sockets_below(tmp_path))
    assert sorted(found) == [str(tmp_path / "a.sock"), str(tmp_path / "b/c.sock")]
    (tmp_path / "a.sock").unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "a.sock"))
    again = await aside("sockets", sockets_below(tmp_path))
    assert again[str(tmp_path / "a.sock")] != found[str(tmp_path / "a.sock")]


async def test_half_a_list_is_not_acted_on_CG_086(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is missing from a list that was cut short would be let go."""
    world = World(tmp_path)
    monkeypatch.setattr(manager, "MOST_ENTRIES", 10)
    run = asyncio.create_task(world.manager.run())
    plugin = await world.offer("one")
    await asyncio.sleep(1.1)
    assert plugin.told == [(True, "")]
    (world.directory / "below").mkdir()
    for number in range(20):
        (world.directory / "below" / f"{number}.txt").touch()
    with pytest.raises(OSError, match="more than 10 entries"):
        await aside("sockets", sockets_below(world.directory))
    await asyncio.sleep(5)
    assert world.lamps.steps() == ["register one"]
    assert "cannot look for plug-ins" in caplog.text
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
