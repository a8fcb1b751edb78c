"""A crash of the fake runtime ends whatever was under way (CRI-160)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import created, start

from fakecri import CriError, FakeCRI, RegistryImage, ignores, start_hangs

PULL = cri.PullImageRequest(image=cri.ImageSpec(image="registry.example/slow:1"))


def pull(fake: FakeCRI, _: str) -> Any:
    return fake.call("PullImage", PULL)


def held_up(fake: FakeCRI, _: str) -> Any:
    fake.on("Version").hangs()
    return fake.call("Version", cri.VersionRequest())


def late(fake: FakeCRI, _: str) -> Any:
    fake.on("Status").answers_late(60)
    return fake.call("Status", cri.StatusRequest(), timeout_s=100)


def stream_held_up(fake: FakeCRI, _: str) -> Any:
    fake.on("GetContainerEvents").hangs()
    return anext(aiter(fake.stream("GetContainerEvents", cri.GetEventsRequest())))


@pytest.mark.parametrize("under_way", [pull, start, held_up, late, stream_held_up])
@pytest.mark.virtual_time
async def test_a_crash_ends_calls_under_way_CRI_160(
    under_way: Callable[[FakeCRI, str], Any],
) -> None:
    fake = FakeCRI(registry=lambda _: RegistryImage(pull_s=20))
    fake.behaves(start_hangs(20), container="web")
    call = asyncio.create_task(under_way(fake, await created(fake, "web")))
    await asyncio.sleep(5)
    fake.crash()
    with pytest.raises(CriError) as caught:
        await call
    ended_s = asyncio.get_running_loop().time()
    await asyncio.sleep(60)
    fake.restart()
    listed: Any = await fake.call("ListImages", cri.ListImagesRequest())
    assert not any("slow" in tag for image in listed.images for tag in image.repo_tags)
    assert fake.calls()[-2].error == ("UNAVAILABLE", caught.value.details())
    assert (ended_s, caught.value.code()) == (5, grpc.StatusCode.UNAVAILABLE)


@pytest.mark.virtual_time
async def test_a_reboot_breaks_off_pulls_and_event_streams() -> None:
    fake = FakeCRI(registry=lambda _: RegistryImage(pull_s=20))
    events = fake.stream("GetContainerEvents", cri.GetEventsRequest())
    calls = [asyncio.ensure_future(anext(events)), asyncio.create_task(pull(fake, ""))]
    await asyncio.sleep(5)
    fake.reboot()
    for call in calls:
        with pytest.raises(CriError, match="UNAVAILABLE"):
            await call
    await fake.call("Version", cri.VersionRequest())


@pytest.mark.virtual_time
async def test_a_stop_that_a_crash_broke_off_is_done_by_the_next_one() -> None:
    fake = FakeCRI()
    fake.behaves(ignores(), container="web")
    container = await created(fake, "web")
    await start(fake, container)
    stop = cri.StopContainerRequest(container_id=container, timeout=30)
    call = asyncio.create_task(fake.call("StopContainer", stop))
    await asyncio.sleep(5)
    with fake.down():
        with pytest.raises(CriError, match="UNAVAILABLE"):
            await call
        assert fake.container("web").state.name == "RUNNING"
    await fake.call("StopContainer", stop)
    assert fake.container("web").exit_code == 137


@pytest.mark.virtual_time
async def test_a_crash_in_the_middle_of_a_call_of_its_own() -> None:
    fake = FakeCRI()

    def crash(_: Any) -> bool:
        fake.crash()
        return False

    fake.on("Version", where=crash).fails()
    with pytest.raises(CriError, match="UNAVAILABLE"):
        await fake.call("Version", cri.VersionRequest(), timeout_s=5)
    fake.restart()
    fake.faults.rules.clear()
    await fake.call("Version", cri.VersionRequest(), timeout_s=5)
    assert fake._under_way.unary == {}
