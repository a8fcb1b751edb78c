"""Rules for calls of a fake storage driver, and its death."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubecri.csi import api_pb2 as api

from fakecri.csi import CsiFault, FakeCsiDriver
from fakecri.csi.in_process import InProcessCsi
from fakecri.deviceplugin.registered import csi_plugin
from fakecri.errors import CriError

pytestmark = pytest.mark.virtual_time
METHOD = "NodeUnstageVolume"


def asked(volume: str = "v1") -> Any:
    return api.NodeUnstageVolumeRequest(volume_id=volume)


async def refused(driver: FakeCsiDriver, volume: str = "v1") -> tuple[str, str]:
    with pytest.raises(CriError) as caught:
        await driver.call(METHOD, asked(volume))
    return caught.value.code().name, caught.value.details()


async def test_a_rule_strikes_the_calls_that_it_is_for() -> None:
    driver = FakeCsiDriver("disks.example")
    rule = driver.add_fault(CsiFault(METHOD, "busy", "ABORTED", volume="v2", nth=2))
    for volume in ("v2", "v1", "v1"):
        await driver.call(METHOD, asked(volume))
    assert await refused(driver, "v2") == ("ABORTED", "busy")
    await driver.call(METHOD, asked("v2"))
    assert rule.hits == 1
    assert [call.disturbed for call in driver.calls] == [False, False, False, True, False]
    assert [call.error for call in driver.calls][3] == ("ABORTED", "busy")
    with pytest.raises(ValueError, match="is no method of a CSI driver"):
        driver.add_fault(CsiFault("NodeStage"))


async def test_the_newest_rule_counts_and_one_that_has_ended_does_not() -> None:
    driver = FakeCsiDriver("disks.example")
    driver.add_fault(CsiFault(METHOD, "old"))
    new = driver.add_fault(CsiFault(METHOD, "new", times=1))
    assert (await refused(driver))[1] == "new"
    assert (await refused(driver))[1] == "old"
    new.remove()
    driver.faults.end_all()
    await driver.call(METHOD, asked())
    assert list(driver.faults) == []


async def test_a_call_that_hangs_goes_on_when_its_rule_is_released() -> None:
    driver, struck = FakeCsiDriver("disks.example"), list[Any]()
    driver.staged["v1"] = "/x"
    rule = driver.add_fault(CsiFault(METHOD, hangs=True, on_strike=struck.append))
    waiting = asyncio.create_task(driver.call(METHOD, asked()))
    await asyncio.sleep(50)
    assert driver.staged
    assert struck == driver.calls
    assert driver.calls[0].ended_s is None
    rule.release()
    await waiting
    assert not driver.staged
    assert driver.calls[0].ended_s == 50


async def test_a_call_that_is_done_answers_late() -> None:
    driver = FakeCsiDriver("disks.example")
    driver.staged["v1"] = "/x"
    driver.add_fault(CsiFault(METHOD, delay_s=8, done=True))
    waiting = asyncio.create_task(driver.call(METHOD, asked()))
    await asyncio.sleep(1)
    assert not driver.staged
    await waiting
    assert asyncio.get_running_loop().time() == 8


async def test_a_caller_that_goes_leaves_a_call_that_was_cancelled() -> None:
    driver = FakeCsiDriver("disks.example")
    driver.hangs(METHOD)
    waiting = asyncio.create_task(driver.call(METHOD, asked()))
    await asyncio.sleep(1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert driver.calls[0].error == ("CANCELLED", "context canceled")


async def test_a_driver_that_dies_breaks_off_its_calls_and_refuses_others() -> None:
    driver, sockets = FakeCsiDriver("disks.example"), InProcessCsi()
    sockets.listen_at(__file__, driver)
    connection = sockets.connect(__file__)
    for fault in (CsiFault(METHOD, hangs=True, times=1), CsiFault(METHOD, delay_s=60, times=1)):
        driver.add_fault(fault)
    calls = [asyncio.create_task(connection.call(METHOD, asked())) for _ in range(2)]
    await asyncio.sleep(1)
    driver.kill()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(end) for end in ends] == ["UNAVAILABLE: error reading from server: EOF"] * 2
    assert asyncio.get_running_loop().time() == 1
    assert await refused(driver) == ("UNAVAILABLE", "connection refused")
    with pytest.raises(CriError, match="UNAVAILABLE"):
        await csi_plugin(driver).call("GetInfo", None)
    driver.restart()
    await driver.call(METHOD, asked())


async def test_nothing_is_mounted_after_a_boot(tmp_path: Any) -> None:
    driver, target = FakeCsiDriver("disks.example", capabilities=()), tmp_path / "mount"
    request = api.NodePublishVolumeRequest(volume_id="v1", target_path=str(target))
    await driver.call("NodePublishVolume", request)
    driver.staged["v1"] = "/x"
    driver.reboot()
    assert (driver.staged, driver.published, list(target.iterdir())) == ({}, {}, [])
