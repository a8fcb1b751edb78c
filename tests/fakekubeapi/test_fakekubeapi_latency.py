"""Requests that take time: their effect lies inside it, and watches hear of it a little later."""

import asyncio

import pytest
from fakekubeapi_helpers import CONFIGMAPS, NODES, PODS, configmap, create, ok, pod, refused

from fakekubeapi import ApiUnreachable, FakeApi, ServerOptions, api_latency
from fakekubeapi.latency import EVENT
from simclock import Delay, Latency, Rng

pytestmark = pytest.mark.virtual_time


class Fixed(Latency):
    """Known delays instead of drawn ones."""

    def __init__(self, **delays: Delay) -> None:
        super().__init__(Rng(0), {"x": 1.0}, purpose="test")
        self._delays = delays

    def of(self, kind: str) -> Delay:
        return self._delays.get(kind.replace(" ", "_"), Delay(0, 0))


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def test_the_effect_of_a_request_lies_inside_its_time() -> None:
    api = FakeApi(latency=Fixed(POST=Delay(2, 3)))
    making = asyncio.create_task(api.request("POST", PODS, body=pod()))
    await asyncio.sleep(1.9)
    assert not list(api.store.items("pods"))
    await asyncio.sleep(0.2)
    assert len(list(api.store.items("pods"))) == 1
    assert not making.done()
    ok(await making)
    (record,) = api.requests("POST")
    assert (record.started_s, record.ended_s) == (0, 5)


async def test_a_refusal_takes_its_time_too_and_a_rule_decides_at_the_arrival() -> None:
    api = FakeApi(latency=Fixed(GET=Delay(1, 1)))
    with api.fails("GET", "/nodes"):
        asking = asyncio.create_task(api.request("GET", NODES))
        await asyncio.sleep(0.1)
    refused(await asking, 500, "InternalError")
    assert now_s() == 2
    refused(await api.request("GET", f"{PODS}/none"), 404, "NotFound")
    assert now_s() == 4


async def test_an_outage_breaks_off_requests_before_and_after_their_effect() -> None:
    api = FakeApi(latency=Fixed(POST=Delay(2, 3)))
    for made, wait_s in enumerate((1, 3)):
        making = asyncio.create_task(api.request("POST", PODS, body=pod()))
        await asyncio.sleep(wait_s)
        with api.down(), pytest.raises(ApiUnreachable):
            await making
        assert len(list(api.store.items("pods"))) == made


async def test_a_watch_hears_of_changes_in_order_and_late() -> None:
    api = FakeApi(latency=Fixed(watch_event=Delay(1, 1)))
    assert EVENT == "watch event"
    events = api.watch(PODS)
    hearing = asyncio.create_task(_heard(events, 3))
    await asyncio.sleep(5)
    for name in ("a", "b"):
        await create(api, PODS, pod(name))
    await asyncio.sleep(3)
    await create(api, PODS, pod("c"))
    assert await hearing == [("a", 7), ("b", 7), ("c", 10)]


@pytest.mark.parametrize(("apart", "draws"), [(False, [3, 5]), (True, [1, 1])])
async def test_watches_wait_over_all_changes_or_over_their_own(
    apart: bool, draws: list[int]
) -> None:
    """What they hear, and when, is the same."""
    drawn = 0

    class Counting(Fixed):
        def of(self, kind: str) -> Delay:
            nonlocal drawn
            drawn += kind == EVENT
            return super().of(kind)

    latency = Counting(watch_event=Delay(1, 1))
    api = FakeApi(latency=latency, options=ServerOptions(waits_apart=apart))
    paths = [(PODS, "spec.nodeName=n1"), (PODS, "spec.nodeName=n2"), (NODES, "")]
    watches = [api.watch(path, params={"fieldSelector": fields}) for path, fields in paths]
    hearing = [asyncio.create_task(_heard(events, 1)) for events in watches]
    await asyncio.sleep(5)
    await create(api, PODS, pod("a", node="n1"))
    await asyncio.sleep(3)
    assert drawn == draws[0]
    await create(api, CONFIGMAPS, configmap("other"))
    await asyncio.sleep(3)
    assert drawn == draws[1]  # the first has heard what it waited for
    assert await hearing[0] == [("a", 7)]
    for task in hearing[1:]:
        task.cancel()
    await asyncio.gather(*hearing, return_exceptions=True)


async def _heard(events, number):
    found = []
    async for event in events:
        found.append((event["object"]["metadata"]["name"], now_s()))
        if len(found) == number:
            break
    return found


async def test_every_request_has_a_latency() -> None:
    api = FakeApi(latency=api_latency(Rng(3), 10))
    await create(api, PODS, pod())
    assert 0.01 < now_s() < 0.3
