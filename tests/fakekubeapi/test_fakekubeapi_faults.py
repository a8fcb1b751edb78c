"""Programmed trouble, and the record of what clients asked."""

import asyncio

import pytest
from fakekubeapi_helpers import NODES, PODS, create, ok, pod, refused

from fakekubeapi import ApiUnreachable, FakeApi

pytestmark = pytest.mark.virtual_time


async def test_fails_the_asked_number_of_times_MIRR_021() -> None:
    api = FakeApi()
    rule = api.fails("POST", "/pods$", status=503, message="not now", times=2)
    for _ in range(2):
        answer = await api.request("POST", PODS, body=pod())
        assert refused(answer, 503, "ServiceUnavailable") == "not now"
    ok(await api.request("POST", PODS, body=pod()))
    assert rule.hits == 2


async def test_a_rule_for_one_of_the_requests_spares_those_before_and_after() -> None:
    api = FakeApi()
    rule = api.fails("GET", "/pods$", nth=2)
    statuses = []
    for path in (PODS, NODES, PODS, PODS):
        statuses.append((await api.request("GET", path)).status)
    assert statuses == [200, 200, 500, 200]
    assert rule.hits == 1
    late = api.delays("GET", "/pods$", 5, nth=2)
    await api.request("GET", PODS)
    assert asyncio.get_running_loop().time() == 0
    await api.request("GET", PODS)
    assert asyncio.get_running_loop().time() == 5
    late.remove()
    api.hangs("GET", "/pods$", nth=2)
    await api.request("GET", PODS)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(api.request("GET", PODS), 60)
    with pytest.raises(ValueError, match="nth: wanted 1 or more, got 0"):
        api.fails("GET", "", nth=0)


async def test_a_rule_ends_with_its_block_and_spares_others() -> None:
    api = FakeApi()
    with api.fails(None, "/nodes", reason="Because"):
        assert (await api.request("GET", PODS)).ok
        answer = await api.request("GET", NODES)
        refused(answer, 500, "Because")
    assert (await api.request("GET", NODES)).ok


async def test_delays_and_hangs() -> None:
    api = FakeApi()
    loop = asyncio.get_running_loop()
    api.delays("GET", "/pods", 2.5, times=1)
    await api.request("GET", PODS)
    assert loop.time() == 2.5
    rule = api.hangs("GET", "/pods")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(api.request("GET", PODS), 60)
    waiting = asyncio.create_task(api.request("GET", PODS))
    await asyncio.sleep(100)
    assert not waiting.done()
    rule.remove()
    assert (await waiting).ok
    assert [record.status for record in api.requests()] == [200, 0, 200]


async def test_down_is_unreachable_also_for_requests_under_way() -> None:
    api = FakeApi()
    api.delays("GET", "/nodes", 5)
    under_way = asyncio.create_task(api.request("GET", NODES))
    await asyncio.sleep(1)
    with api.down():
        with pytest.raises(ApiUnreachable):
            await api.request("GET", PODS)
    with pytest.raises(ApiUnreachable):
        await under_way
    assert (await api.request("GET", PODS)).ok
    assert [record.status for record in api.requests(path="pods")] == [0, 200]


async def test_requests_are_recorded_in_order_of_arrival() -> None:
    api = FakeApi()
    api.delays("GET", f"{PODS}/slow", 3)
    slow = asyncio.create_task(api.request("GET", f"{PODS}/slow"))
    await asyncio.sleep(1)
    body = pod()
    await create(api, PODS, body)
    await slow
    body["metadata"]["name"] = "changed later"
    first, second = api.requests()
    assert (first.method, first.path, first.status) == ("GET", f"{PODS}/slow", 404)
    assert (first.started_s, first.ended_s) == (0.0, 3.0)
    assert (second.started_s, second.body["metadata"]["name"]) == (1.0, "a")
    assert api.requests("POST") == [second]
    assert api.requests(path="/slow$") == [first]


async def test_bodies_that_are_no_json() -> None:
    api = FakeApi()
    broken = await api.request("POST", PODS, body=b'{"kind": ')
    assert "not JSON" in refused(broken, 400, "BadRequest")
    binary = await api.request("POST", PODS, body=b"k8s\x00", content_type="application/cbor")
    assert "application/json" in refused(binary, 415, "UnsupportedMediaType")
    assert [record.status for record in api.requests()] == [400, 415]
