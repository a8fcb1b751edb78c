"""The D-Bus side of shutdowns: refkubelet's logind against the fake one, on a bus of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakecri.machine.logind import FakeLogind
from fakecri.machine.logind_bus import can_serve, serve_logind
from refkubelet.host.places import ROOT_DIR, logind_config
from refkubelet.node.logind import Logind
from refkubelet.node.shutdown_manager import ShutdownSourceError

pytestmark = [pytest.mark.skipif(not can_serve(), reason="needs dbus-daemon and dbus-fast")]


@pytest.fixture
def fake() -> FakeLogind:
    return FakeLogind(delay_s=7.5)


@pytest.fixture
async def address(fake: FakeLogind, tmp_path: Path) -> AsyncIterator[str]:
    async with serve_logind(fake, tmp_path) as where:
        assert fake.listening == 1
        yield where
    assert fake.listening == 0


async def test_the_longest_delay_is_read_NODE_060(address: str) -> None:
    logind = Logind(None, address=address)
    assert await logind.longest_delay_s() == 7.5
    logind.disconnect()


async def test_a_lock_holds_until_it_is_released_NODE_060(address: str, fake: FakeLogind) -> None:
    logind = Logind(None, address=address)
    lock = await logind.inhibit()
    assert len(fake.locks) == 1
    await lock.release()
    await lock.release()
    async with asyncio.timeout(60):
        while fake.locks:  # noqa: ASYNC110 - the bus tells the fake alone
            await asyncio.sleep(0.01)
    logind.disconnect()


async def test_shutdowns_are_told_and_so_is_their_end_NODE_061(
    address: str, fake: FakeLogind
) -> None:
    logind = Logind(None, address=address)
    signals = logind.signals()
    first = asyncio.ensure_future(anext(signals))
    await asyncio.sleep(0.3)
    fake.shut_down()
    assert await first is True
    fake.call_off()
    assert await anext(signals) is False
    await signals.aclose()


async def test_more_time_is_asked_for_in_a_file_of_its_own_NODE_064(
    address: str, tmp_path: Path
) -> None:
    file = tmp_path / "logind.conf.d" / "99-kubelet.conf"
    logind = Logind(file, address)
    with pytest.raises(ShutdownSourceError, match="KillUnit"):  # there is no systemd here
        await logind.set_longest_delay(30.0)
    assert file.read_text().splitlines()[1:] == ["[Login]", "InhibitDelayMaxSec=30"]
    os.utime(file, (0, 0))
    with pytest.raises(ShutdownSourceError, match="KillUnit"):
        await logind.set_longest_delay(30.0)
    assert file.stat().st_mtime == 0  # it said so already
    (tmp_path / "file").write_text("")
    with pytest.raises(ShutdownSourceError, match="file/x: cannot be written: "):
        await Logind(tmp_path / "file" / "x", address).set_longest_delay(30.0)
    logind.disconnect()


async def test_only_the_machines_own_kubelet_changes_logind_NODE_064(address: str) -> None:
    logind = Logind(logind_config(Path("/tmp/k")), address)
    with pytest.raises(ShutdownSourceError, match=r"for 30 s, .* set InhibitDelayMaxSec in logind"):
        await logind.set_longest_delay(30.0)
    logind.disconnect()
    assert logind_config(ROOT_DIR) == Path("/etc/systemd/logind.conf.d/99-kubelet.conf")


async def test_a_bus_that_is_not_there_is_told(tmp_path: Path) -> None:
    logind = Logind(None, address=f"unix:path={tmp_path}/none")
    with pytest.raises(ShutdownSourceError, match="the system bus cannot be reached"):
        await logind.inhibit()


async def test_a_bus_that_goes_away_ends_the_signals(fake: FakeLogind, tmp_path: Path) -> None:
    async with serve_logind(fake, tmp_path) as where:
        logind = Logind(None, address=where)
        heard = asyncio.ensure_future(anext(logind.signals()))
        await asyncio.sleep(0.3)
    with pytest.raises(ShutdownSourceError, match="broke off"):
        await heard
