"""PodConfig and PodManager: queues, readiness of sources, names (SRC-064, SRC-070, MIRR-020)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from loops import virtual_loop
from pods import make_pod

from refkubelet.events.queued_recorder import QueuedEventRecorder
from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodOperation, PodSource
from refkubelet.pods import merge
from refkubelet.pods.config import Deliver, PodConfig
from refkubelet.pods.manager import PodManager
from simclock import Clock

pytestmark = pytest.mark.virtual_time


def pod(pod_uid: str, name: str = "", **annotations: str) -> Pod:
    marks = {f"kubernetes.io/config.{k}": v for k, v in annotations.items()}
    return make_pod(name=name or pod_uid, uid=pod_uid, meta={"annotations": marks})


class OneShot:
    """A source that delivers the given sets, `gap_s` apart."""

    def __init__(self, source: PodSource, *sets: Sequence[Pod], gap_s: float = 1.0) -> None:
        self.source = source
        self._sets = sets
        self._gap_s = gap_s

    async def run(self, deliver: Deliver) -> None:
        for pods in self._sets:
            await asyncio.sleep(self._gap_s)
            await deliver(pods)
        await asyncio.Event().wait()


def parts() -> tuple[Clock, QueuedEventRecorder]:
    loop = virtual_loop()
    return loop.clock, QueuedEventRecorder(None, loop.clock, "n1")


async def test_all_sources_must_have_delivered_and_been_consumed_SRC_070() -> None:
    clock, recorder = parts()
    file = OneShot(PodSource.FILE, [])
    api = OneShot(PodSource.API, [], gap_s=10)
    config = PodConfig([file, api], recorder, clock)
    both = frozenset({PodSource.FILE, PodSource.API})
    task = asyncio.create_task(config.run())
    update = await config.updates.get()
    assert (update.operation, update.source, update.pods) == (PodOperation.ADD, file.source, ())
    assert not config.seen_all_sources(both)
    await config.updates.get()
    assert clock.monotonic_s() == 10
    assert config.seen_all_sources(both)
    assert not config.seen_all_sources(frozenset({PodSource.API}))
    task.cancel()


async def test_without_sources_everything_is_seen_SRC_001() -> None:
    clock, recorder = parts()
    assert PodConfig([], recorder, clock).seen_all_sources(frozenset())


async def test_seen_times_have_nine_digits_SRC_034() -> None:
    clock, recorder = parts()
    config = PodConfig([OneShot(PodSource.FILE, [pod("1")])], recorder, clock)
    task = asyncio.create_task(config.run())
    update = await config.updates.get()
    marks = update.pods[0].metadata and update.pods[0].metadata.annotations
    assert marks == {
        "kubernetes.io/config.source": "file",
        "kubernetes.io/config.seen": "2026-01-01T00:00:01.000000000Z",
    }
    task.cancel()


async def test_a_duplicate_name_is_dropped_with_an_event_SRC_024_LIFE_002() -> None:
    clock, recorder = parts()
    config = PodConfig([], recorder, clock)
    await config.merge(PodSource.HTTP, [pod("1", "web"), pod("2", "web")])
    event = recorder.events[0]
    assert (event.type, event.reason) == ("Warning", "FailedValidation")
    assert event.message == (
        'Error validating pod web_default(2) from http due to duplicate pod name "web", ignoring'
    )


async def test_a_full_queue_holds_the_source_back_SRC_064() -> None:
    clock, recorder = parts()
    sets = [[pod(str(i))] for i in range(60)]
    config = PodConfig([OneShot(PodSource.FILE, *sets)], recorder, clock)
    task = asyncio.create_task(config.run())
    await asyncio.sleep(1000)
    assert config.updates.qsize() == 50
    taken = 0
    while taken < 2 * 60 - 1:  # a REMOVE and an ADD for each, but the first
        await config.updates.get()
        taken += 1
    task.cancel()


def test_mirrors_are_no_pods_of_the_node_MIRR_020() -> None:
    pods = PodManager()
    static, mirror = pod("s", "web", source="file"), pod("m", "web", source="api", mirror="x")
    for each in (static, mirror, pod("r", "plain", source="api")):
        pods.update(each)
    assert [p.metadata.uid for p in pods.pods() if p.metadata] == ["s", "r"]
    assert len(pods.pods_and_mirrors()) == 3
    assert pods.get("m") is None
    assert pods.mirror_of(static) is mirror
    assert pods.static_of(mirror) is static
    assert pods.translate_uid("m") == "s"
    assert pods.orphan_mirrors() == ()


def test_a_mirror_without_its_pod_is_an_orphan_MIRR_031_MIRR_033() -> None:
    pods = PodManager()
    static, mirror = pod("s", "web", source="file"), pod("m", "web", source="api", mirror="x")
    pods.update(static)
    pods.update(mirror)
    pods.remove(static)
    assert pods.orphan_mirrors() == (mirror,)
    assert pods.translate_uid("m") == "s"  # its last status still goes to the mirror (golden s20)
    pods.remove(mirror)
    assert pods.translate_uid("m") == "m"
    assert pods.orphan_mirrors() == ()


def test_removing_an_edited_pod_leaves_the_name_to_its_successor_SRC_067() -> None:
    pods = PodManager()
    old, new = pod("1", "web", source="file"), pod("2", "web", source="file")
    pods.update(old)
    pods.update(new)
    pods.remove(old)
    assert pods.static_of(pod("m", "web", source="api", mirror="x")) is new


async def test_a_change_of_one_pod_compares_that_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source tells of all its pods whenever one has changed."""
    compared = 0

    def differ(old: Pod, new: Pod) -> bool:
        nonlocal compared
        compared += 1
        return real(old, new)

    real = merge.differ_semantically
    monkeypatch.setattr(merge, "differ_semantically", differ)
    clock, recorder = parts()
    config = PodConfig([], recorder, clock)
    pods = [pod(str(number)) for number in range(100)]
    await config.merge(PodSource.API, pods)
    for number in range(40):
        pods[number] = pod(str(number), seen="later")
        await config.merge(PodSource.API, pods)
    assert compared == 40
