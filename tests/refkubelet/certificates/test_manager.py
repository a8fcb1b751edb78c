"""A certificate is asked for, kept, and replaced in time (SRV-004, SRV-005, SRV-006)."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path

import pytest
from certificate_world import CSRS, HOUR, WANTED, World
from fakekubeapi_helpers import MERGE_PATCH

from kubeobjects.structs import replace
from refkubelet.api.client import ApiError
from refkubelet.certificates.requests import CLIENT, SERVING

pytestmark = pytest.mark.virtual_time


async def test_it_is_asked_for_at_once_kept_and_told_SRV_004(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.api.signing.approve()
    async with world.running() as manager:
        assert manager.held is None
        assert manager.pair() is None
        await world.until(lambda: manager.held, 5)
        (request,) = world.requests()
        assert request["metadata"]["name"].startswith("csr-")
        assert request["spec"]["signerName"] == SERVING.signer
        current = tmp_path / "kubelet-server-current.pem"
        assert manager.pair() == (current, current)
        assert world.renewed == [current]
        assert manager.metrics.failures == 0


async def test_it_is_replaced_at_80_percent_and_its_life_is_measured_SRV_006(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, lasts_s=100 * HOUR)
    world.api.signing.approve()
    async with world.running(purpose=CLIENT) as manager:
        world.wanted = replace(WANTED, dns_names=(), addresses=())
        await world.until(lambda: len(world.posted_s()) == 2)
        first, second = world.posted_s()
        # made to begin 5 minutes before it was signed
        assert second - first == pytest.approx(0.8 * (100 * HOUR + 300) - 300, abs=5)
        await world.until(lambda: len(world.renewed) == 2, 5)
        assert manager.metrics.lives.sum_s == pytest.approx(0.8 * 100 * HOUR, abs=600)


async def test_after_a_restart_the_files_are_read_and_nothing_is_asked_SRV_006(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    held = world.hold(lasts_s=100 * HOUR)
    async with world.running() as manager:
        await world.clock.sleep(HOUR)
        assert manager.held == held
        assert world.posted_s() == []


async def test_one_that_expired_counts_as_none_SRV_006(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.hold(lasts_s=1)
    await world.clock.sleep(10)
    async with world.running() as manager:
        assert manager.held is None
        assert manager.pair() is None
        assert manager.last is not None
        await world.until(world.posted_s, 5)


async def test_a_forced_one_is_asked_for_whatever_is_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.api.signing.approve()
    world.hold(lasts_s=100 * HOUR)
    async with world.running(forced=True):
        await world.until(world.renewed.__len__, 5)
        await world.clock.sleep(HOUR)
        assert len(world.posted_s()) == 1


async def test_a_denied_request_is_made_anew_with_another_key_after_growing_pauses_SRV_006(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.api.signing.deny(reason="Unwanted", message="not this node")
    with caplog.at_level(logging.INFO):
        async with world.running() as manager:
            await world.until(lambda: len(world.posted_s()) == 7, HOUR)
    times = world.posted_s()
    pauses = [b - a for a, b in pairwise(times)]
    assert pauses == pytest.approx([2.1, 4.2, 8.4, 16.8, 32, 32], abs=0.2)
    assert len({one["spec"]["request"] for one in world.requests()}) == 7
    assert manager.metrics.failures >= 6
    assert "is denied, reason: Unwanted, message: not this node" in caplog.text
    assert "PRIVATE KEY" not in caplog.text


async def test_one_that_the_signer_refuses_is_told_SRV_006(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.api.signing.approve()
    world.wanted = replace(WANTED, organizations=("other",))
    async with world.running() as manager:
        await world.until(lambda: manager.metrics.failures, 60)
    assert "is failed, reason: SignerValidationFailure" in caplog.text


async def test_a_request_that_nobody_decides_is_given_up_after_15_minutes_SRV_006(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.until(lambda: len(world.posted_s()) == 2, HOUR)
    first, second = world.posted_s()
    assert second - first == pytest.approx(15 * 60 + 2.1, abs=1)
    assert "was not signed within 15 minutes" in caplog.text


async def test_it_may_be_approved_later_and_the_watch_end_meanwhile_SRV_006(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    async with world.running() as manager:
        await world.clock.sleep(11 * 60)
        (request,) = world.requests()
        approved = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
        path = f"{CSRS}/{request['metadata']['name']}/approval"
        body = {"status": {"conditions": [approved]}}
        await world.api.request("PATCH", path, body=body, content_type=MERGE_PATCH)
        await world.until(lambda: manager.held, 5)
    assert len(world.posted_s()) == 1


async def test_a_deleted_request_is_made_anew_SRV_006(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.until(world.requests, 5)
        await world.clock.sleep(1)
        await world.api.request("DELETE", f"{CSRS}/{world.requests()[0]['metadata']['name']}")
        await world.until(lambda: len(world.posted_s()) == 2, 60)
    assert "was deleted" in caplog.text


async def test_a_server_that_is_away_for_a_while_costs_no_second_request_SRV_006(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    async with world.running() as manager:
        await world.until(world.requests, 5)
        with world.api.down():
            await world.clock.sleep(60)
        world.api.signing.approve()
        request = world.requests()[0]["metadata"]["name"]
        await world.api.request(
            "PATCH", f"{CSRS}/{request}", body={"metadata": {"labels": {"a": "b"}}},
            content_type=MERGE_PATCH,
        )  # fmt: skip
        await world.until(lambda: manager.held, 60)
    assert len(world.posted_s()) == 1


@pytest.mark.parametrize(("status", "well"), [(403, True), (401, True), (404, True), (500, False)])
async def test_whether_the_server_is_well_is_known_by_its_refusals_SRV_005(
    tmp_path: Path, status: int, well: bool
) -> None:
    world = World(tmp_path)
    manager = world.manager()
    with world.api.fails("POST", CSRS, status), pytest.raises(ApiError):
        await manager.ask_once()
    assert manager.server_answers is well
    world.api.signing.approve()
    await manager.ask_once()
    assert manager.server_answers


async def test_other_addresses_are_asked_for_at_once_SRV_004(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.api.signing.approve()
    async with world.running(may_change=True) as manager:
        await world.until(lambda: manager.held, 5)
        world.wanted = replace(WANTED, addresses=("192.0.2.7",))
        await world.until(lambda: len(world.renewed) == 2, 5)
        held = manager.held
        assert held is not None
        assert held.addresses == {"192.0.2.7"}
        world.wanted = None  # the node has lost its addresses: what there is does
        await world.clock.sleep(60)
        assert len(world.posted_s()) == 2


async def test_other_addresses_end_a_request_that_waits_SRV_004(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running(may_change=True) as manager:
        await world.until(world.requests, 5)
        world.wanted = replace(WANTED, addresses=("192.0.2.7",))
        await world.until(lambda: len(world.posted_s()) == 2, 5)
        assert manager.metrics.failures == 0


async def test_without_an_address_nothing_is_asked_SRV_004(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.api.signing.approve()
    world.wanted = None
    async with world.running(may_change=True) as manager:
        await world.clock.sleep(60)
        assert world.posted_s() == []
        world.wanted = WANTED
        await world.until(lambda: manager.held, 40)


async def test_a_certificate_with_less_than_was_asked_for_is_no_reason_to_hurry(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.api.signing.approve()
    authority = world.api.authority
    assert authority is not None
    other, _ = world.issue(replace(WANTED, addresses=()))

    class Careless:
        root_pem = authority.root_pem

        def sign(self, pem: bytes, *how: object) -> str:
            return other.decode()

    world.api.authority = Careless()  # type: ignore[assignment]
    async with world.running() as manager:
        await world.clock.sleep(60)
    assert manager.held is None
    assert 4 <= len(world.posted_s()) <= 6
