"""The pod cache: what readers get and when waiters wake (PLEG-101..105)."""

from __future__ import annotations

import asyncio

import pytest

from refkubelet.cri.records import (
    RuntimePodStatus,
)
from refkubelet.cri.target import CriCallError
from refkubelet.pleg import PodCache
from refkubelet.pleg.cache import PodStatusError
from simclock import Clock

pytestmark = pytest.mark.virtual_time


async def test_unknown_pod_has_an_empty_status_PLEG_101(clock: Clock) -> None:
    assert PodCache(clock).get("u") == RuntimePodStatus("u")


async def test_stamps_order_what_happens_at_one_instant_PLEG_105(clock: Clock) -> None:
    """A listing made before the end of a step at the same virtual instant is older than it."""

    cache = PodCache(clock)
    listed = cache.stamp_s()
    step_end = cache.stamp_s()
    assert step_end > listed
    waiter = asyncio.ensure_future(cache.get_newer_than("u", step_end))
    await asyncio.sleep(0)
    cache.update_time(listed)
    await asyncio.sleep(0)
    assert not waiter.done()
    cache.update_time(cache.stamp_s())
    assert await waiter == RuntimePodStatus("u")


async def test_get_newer_than_returns_at_once_if_newer_PLEG_102(clock: Clock) -> None:
    cache = PodCache(clock)
    cache.set("u", RuntimePodStatus("u", "web"), None, cache.stamp_s())
    async with asyncio.timeout(0):
        assert (await cache.get_newer_than("u", -1.0)).name == "web"


@pytest.mark.parametrize("how", ["set", "observed", "global"])
async def test_waiters_wake_on_a_time_not_before_theirs_PLEG_102(how: str, clock: Clock) -> None:
    cache = PodCache(clock)
    t = cache.stamp_s()
    cache.set("u", RuntimePodStatus("u", "old"), None, t)
    waiter = asyncio.ensure_future(cache.get_newer_than("u", t))
    await asyncio.sleep(1)
    assert not waiter.done()
    later = cache.stamp_s()
    if how == "set":
        cache.set("u", RuntimePodStatus("u", "old"), None, later)
    elif how == "observed":
        cache.observed("u", later)
    else:
        cache.update_time(later)
    assert (await waiter).name == "old"


async def test_cached_error_is_raised_PLEG_104(clock: Clock) -> None:
    cache = PodCache(clock)
    cache.set("u", RuntimePodStatus("u"), CriCallError("X", "UNKNOWN", "boom"), cache.stamp_s())
    with pytest.raises(PodStatusError, match="desc = boom"):
        await cache.get_newer_than("u", -1.0)


async def test_delete_does_not_wake_and_a_cancelled_waiter_leaves_nothing_PLEG_103(
    clock: Clock,
) -> None:
    cache = PodCache(clock)
    t = cache.stamp_s()
    waiter = asyncio.ensure_future(cache.get_newer_than("u", t))
    await asyncio.sleep(0)
    cache.delete("u")
    await asyncio.sleep(1)
    assert not waiter.done()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    cache.update_time(cache.stamp_s())
