"""When a kubelet without a client certificate ends (SRV-005)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from certificate_world import CSRS, HOUR, World

from refkubelet.certificates.guard import ClientGuard, trouble
from refkubelet.certificates.store import CertificateError

pytestmark = pytest.mark.virtual_time


async def ends_after_s(world: World, *, within_s: float = 2 * HOUR) -> float | None:
    """How long a guard looks until it ends the kubelet; None: longer."""
    async with world.running() as manager:
        began_s = world.clock.monotonic_s()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                with pytest.raises(CertificateError, match="the API server is responsive"):
                    await ClientGuard(manager, world.clock).run()
                return world.clock.monotonic_s() - began_s
    return None


async def test_without_one_for_five_minutes_it_ends_if_the_server_refuses_SRV_005(
    tmp_path: Path,
) -> None:
    """SRV-005.5."""
    world = World(tmp_path)
    with world.api.fails("POST", CSRS, 403):
        assert await ends_after_s(world) == pytest.approx(300, abs=11)


async def test_it_goes_on_while_the_server_is_away_SRV_005(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SRV-005.5."""
    world = World(tmp_path)
    with world.api.down():
        assert await ends_after_s(world) is None
    assert "but the API server is not responsive" in caplog.text


async def test_it_goes_on_with_a_certificate_SRV_005(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.hold(lasts_s=100 * HOUR)
    assert await ends_after_s(world) is None


async def test_it_ends_with_its_certificate_if_the_server_refuses_SRV_005(tmp_path: Path) -> None:
    """SRV-005.5."""
    world = World(tmp_path)
    world.hold(lasts_s=HOUR)
    with world.api.fails("POST", CSRS, 401):
        assert await ends_after_s(world) == pytest.approx(HOUR, abs=11)


async def test_when_it_is_trouble_SRV_005(tmp_path: Path) -> None:
    world = World(tmp_path)
    held = world.hold(lasts_s=HOUR)
    assert trouble(None, held.not_before, 299) == ""
    assert "for 5 minutes" in trouble(None, held.not_before, 300)
    assert trouble(held, held.not_after, 0) == ""
    assert "expired" in trouble(held, held.not_after + timedelta(seconds=1), 0)
