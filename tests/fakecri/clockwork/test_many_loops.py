"""A fake that is used on one loop after another, and what may be left of a loop that ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import started

import fakecri
from fakecri import FakeCRI, exits, replies
from fakecri.cri.endpoint import EndpointError
from fakecri.server import serve
from simclock import run_virtual


def test_time_goes_on_from_loop_to_loop(fakecri: FakeCRI) -> None:
    fakecri.behaves(exits(3, after_s=10), container="second")

    async def first() -> None:
        await asyncio.sleep(100)
        await started(fakecri, "first", "first")
        await asyncio.sleep(5)

    async def second() -> str:
        await started(fakecri, "second", "second")
        await asyncio.sleep(9)
        assert fakecri.container("second").state.name == "RUNNING"
        await asyncio.sleep(2)
        return fakecri.container("second").state.name

    run_virtual(first)
    assert run_virtual(second) == "EXITED"
    assert fakecri.times_s("StartContainer") == [100, 105]
    began, ended = [c.started_at_ns for c in fakecri.containers()]
    assert round((ended - began) / 1e9) == 5


def test_what_passes_on_a_loop_before_anybody_asks_counts(fakecri: FakeCRI) -> None:
    fakecri.behaves(exits(3, after_s=10), container="web")

    async def first() -> None:
        await asyncio.sleep(5)
        await started(fakecri, "web")

    async def second() -> tuple[float, str]:
        await asyncio.sleep(100)
        return fakecri.clock.monotonic_s(), fakecri.container("web").state.name

    run_virtual(first)
    assert run_virtual(second) == (105, "EXITED")


def test_real_time_can_follow_virtual_time(fakecri: FakeCRI) -> None:
    async def later() -> int:
        await started(fakecri, "second", "second")
        return fakecri.container("second").started_at_ns

    async def hour() -> None:
        await asyncio.sleep(3600)
        await started(fakecri, "web")

    run_virtual(hour)
    assert asyncio.run(later()) > fakecri.container("web").started_at_ns


def test_the_clock_of_a_served_fake_is_its_own() -> None:
    async def look_from_another_loop(fake: fakecri.ServedFake) -> None:
        fake.node.memory()

    with fakecri.serve(clock="manual") as fake:
        fake.advance(1000)
        asyncio.run(look_from_another_loop(fake))
        fake.advance(10)
        assert fake.ctl().request("GET", "/v1/clock")["since_start_s"] == 1010


def test_streams_start_anew_on_another_loop(fakecri: FakeCRI) -> None:
    fakecri.behaves(replies(stdout="hello"), container="web")

    async def url() -> str:
        request = cri.ExecRequest(container_id=container, cmd=["ls"], stdout=True)
        answer: Any = await fakecri.call("Exec", request)
        return str(answer.url)

    async def hear() -> list[bytes]:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(await url(), protocols=("v5.channel.k8s.io",)) as socket,
        ):
            heard = [message.data async for message in socket]
        await fakecri.stop_streaming()
        return heard

    container = asyncio.run(started(fakecri, "web"))
    asyncio.run(url())  # a test that forgets `stop_streaming`
    assert b"\x01hello" in asyncio.run(hear())


async def test_calls_that_gave_up_waiting_are_forgotten() -> None:
    fake = FakeCRI()
    fake.behaves(replies("probe", delay_s=0.001), container="web")
    container = await started(fake, "web")
    for command in ("probe", "cat"):
        for _ in range(3):
            request = cri.ExecSyncRequest(container_id=container, cmd=[command], timeout=1)
            await fake.call("ExecSync", request)
    assert fake._clockwork._exits == {}


@pytest.mark.parametrize(
    ("listen", "words"), [("tcp://x:1", "wanted unix:///"), (5, "wanted a text such as unix:///")]
)
def test_a_wrong_endpoint_leaves_no_directory(
    listen: Any, words: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(EndpointError, match=words), fakecri.serve(listen):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_clock_is_refused() -> None:
    clock: Any = "manul"
    with (
        pytest.raises(ValueError, match="clock: wanted real or manual, got 'manul'"),
        fakecri.serve(clock=clock),
    ):
        pass


@pytest.mark.virtual_time
async def test_a_socket_is_refused_in_virtual_time(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a gRPC server needs real time"):
        async with serve(FakeCRI(), f"unix://{tmp_path}/cri.sock"):
            pass
    assert list(tmp_path.iterdir()) == []
