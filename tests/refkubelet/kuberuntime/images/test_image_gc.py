"""Garbage collection of images: the choice, the collector on a scripted runtime, the whole run."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from pods import IMAGE
from runtime_doubles import Events, Failure, ScriptedTarget

from kubeobjects.machine import FilesystemStats
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import ImageRecord
from refkubelet.cri.target import CriCallError
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.images.choice import (
    ImageGcPolicy,
    KnownImage,
    bytes_to_free,
    detect,
    images_to_remove,
    images_too_old,
    unused,
)
from refkubelet.kuberuntime.images.gc import IMAGE_GC_PERIOD_S, ImageGC, ImageGcError
from simclock import Ids, Rng, VirtualLoop

pytestmark = pytest.mark.virtual_time

GIB = 1024**3


def known(*images: KnownImage) -> dict[str, KnownImage]:
    return {image.id: image for image in images}


def test_a_look_keeps_first_times_and_renews_last_use_GC_103() -> None:
    first = detect({}, [ImageRecord("a", 1), ImageRecord("b", 1)], {"a"}, 10.0)
    assert first["a"] == KnownImage("a", 1, 10.0, last_used_s=10.0, in_use=True)
    assert first["b"] == KnownImage("b", 1, 10.0)
    second = detect(first, [ImageRecord("a", 1, pinned=True)], set(), 20.0)
    assert second == {"a": KnownImage("a", 1, 10.0, last_used_s=10.0, pinned=True)}


def test_never_used_images_go_first_then_the_least_recently_used_GC_102_GC_103() -> None:
    images = known(
        KnownImage("late", 1, 0.0, last_used_s=50.0),
        KnownImage("early", 1, 5.0, last_used_s=20.0),
        KnownImage("new", 1, 9.0),
        KnownImage("old", 1, 3.0),
        KnownImage("used", 1, 0.0, last_used_s=60.0, in_use=True),
        KnownImage("kept", 1, 0.0, pinned=True),
    )
    assert [i.id for i in unused(images)] == ["old", "new", "early", "late"]


def test_young_images_stay_EVIC_072_GC_103() -> None:
    images = known(KnownImage("old", 1, 0.0), KnownImage("young", 1, 0.5))
    assert [i.id for i in images_to_remove(images, 120.0, 120.0)] == ["old"]


@pytest.mark.parametrize(
    ("now_s", "max_age_s", "gone"),
    [
        (900.0, 0.0, []),  # off
        (900.0, 900.0, []),  # the kubelet is no older than the age
        (901.0, 900.0, ["never"]),
        (951.0, 900.0, ["never", "at50"]),
    ],
)
def test_age_rule_waits_until_the_kubelet_is_old_enough_GC_104(
    now_s: float, max_age_s: float, gone: list[str]
) -> None:
    images = known(KnownImage("at50", 1, 0.0, 50.0), KnownImage("never", 1, 800.0))
    assert [i.id for i in images_too_old(images, now_s, max_age_s, 0.0)] == gone


@pytest.mark.parametrize(("available", "wanted"), [(160, 0), (159, 41), (150, 50), (0, 200)])
def test_usage_rule_frees_down_to_the_low_threshold_GC_101(available: int, wanted: int) -> None:
    assert bytes_to_free(1000, available, ImageGcPolicy()) == wanted


@given(
    st.lists(
        st.builds(
            KnownImage,
            id=st.text("abcdef", min_size=1, max_size=3),
            size_bytes=st.integers(0, 9),
            first_seen_s=st.floats(0, 300),
            last_used_s=st.none() | st.floats(0, 300),
            in_use=st.booleans(),
            pinned=st.booleans(),
        )
    ),
    st.floats(300, 900),
)
def test_no_used_pinned_or_young_image_is_ever_chosen_GC_102(
    images: list[KnownImage], now_s: float
) -> None:
    for image in images_to_remove(known(*images), now_s, 120.0):
        assert not image.in_use
        assert not image.pinned
        assert now_s - image.first_seen_s >= 120.0


class Disk:
    """A machine with one image filesystem."""

    def __init__(self, capacity_bytes: int, available_bytes: int) -> None:
        self.stats = FilesystemStats(
            "disk", capacity_bytes, available_bytes, inodes=1, inodes_free=1, time_ns=0
        )

    def filesystem(self, path: str) -> FilesystemStats:
        assert path == "/images"
        return self.stats


class Setup:
    """Images `a`, `b`, `c`, ... of 1 GiB each; one dead container uses `a`, one mounts `m`."""

    def __init__(
        self,
        loop: VirtualLoop,
        images: str = "abcm",
        disk: tuple[int, int] = (10 * GIB, 5 * GIB),
        **policy: Any,
    ) -> None:
        self.clock = loop.clock
        self.events = Events()
        container = cri.Container(
            id="x",
            metadata=cri.ContainerMetadata(name="main"),
            state=cri.CONTAINER_EXITED,
            image=cri.ImageSpec(image=IMAGE),
            image_ref="ref",
            image_id="a",
            created_at=1,
        )
        status = cri.ContainerStatus(
            id="x",
            metadata=cri.ContainerMetadata(name="main"),
            created_at=1,
            image=cri.ImageSpec(image=IMAGE),
            image_ref="ref",
            mounts=[cri.Mount(container_path="/m", image=cri.ImageSpec(image="m"))],
        )
        fs = cri.FilesystemUsage(fs_id=cri.FilesystemIdentifier(mountpoint="/images"))
        self.target = ScriptedTarget(
            ListContainers=cri.ListContainersResponse(containers=[container]),
            ContainerStatus=cri.ContainerStatusResponse(status=status),
            ListImages=cri.ListImagesResponse(images=[cri.Image(id=i, size=GIB) for i in images]),
            ImageFsInfo=cri.ImageFsInfoResponse(image_filesystems=[fs]),
        )
        machine: Any = Disk(*disk)
        deps = RuntimeDeps(self.clock, Ids(Rng(1)), self.events)
        self.kept: list[tuple[list[str], int]] = []
        self.gc = ImageGC(
            CriClient(self.target),
            machine,
            deps,
            ImageGcPolicy(**policy),
            lambda kept, began_ns: self.kept.append((list(kept), began_ns)),
        )

    def removed(self) -> list[str]:
        return [request.image.image for request in self.target.requests("RemoveImage")]


async def test_images_of_dead_containers_and_mounted_ones_stay_EVIC_072_GC_102() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    await s.gc.delete_unused_images()
    assert s.removed() == []  # all are seen for the first time
    await loop.clock.sleep(120)
    await s.gc.delete_unused_images()
    assert s.removed() == ["b", "c"]


async def test_an_image_that_cannot_be_removed_does_not_keep_the_others_GC_106() -> None:
    loop = virtual_loop()
    s = Setup(loop, min_age_s=0.0)

    def remove(request: Any) -> Any:
        stuck = request.image.image == "b"
        return Failure(grpc.StatusCode.UNKNOWN, "busy") if stuck else cri.RemoveImageResponse()

    s.target.answers["RemoveImage"] = remove
    with pytest.raises(ImageGcError) as raised:
        await s.gc.delete_unused_images()
    assert s.removed() == ["b", "c"]
    assert str(raised.value) == (
        f"wanted to free 9223372036854775807 bytes, but freed {GIB} bytes space with errors in "
        "image deletion: rpc error: code = Unknown desc = busy"
    )
    assert s.kept == []  # what may be kept is told after a good run only


async def test_usage_rule_stops_when_enough_is_freed_GC_101_GC_103() -> None:
    loop = virtual_loop()
    s = Setup(loop, "abcdm", disk=(10 * GIB, GIB), min_age_s=0.0)
    await s.gc.garbage_collect()
    assert s.removed() == ["b"]
    assert s.events.seen == []


async def test_after_freeing_the_kept_ones_are_told() -> None:
    """The young ones that were looked at. Images in use, and those that come after enough was
    freed, are not looked at: their pull records go, too (upstream: PostImageGCHook)."""

    loop = virtual_loop()
    s = Setup(loop, "abm", disk=(10 * GIB, GIB))
    await s.gc.delete_unused_images()
    assert s.kept == [(["b"], loop.clock.wall_ns())]
    await loop.clock.sleep(120)
    more = [cri.Image(id=i, size=GIB) for i in "abcdm"]
    s.target.answers["ListImages"] = cri.ListImagesResponse(images=more)
    await s.gc.garbage_collect()
    assert s.removed() == ["b"]
    assert s.kept[1:] == [([], loop.clock.wall_ns())]
    await s.gc.delete_unused_images()
    assert s.kept[2:] == [(["b", "c", "d"], loop.clock.wall_ns())]


async def test_usage_rule_leaves_a_disk_with_room_alone_GC_101() -> None:
    loop = virtual_loop()
    s = Setup(loop, min_age_s=0.0)
    await s.gc.garbage_collect()
    assert s.removed() == []


async def test_nothing_is_collected_when_both_rules_are_off_GC_101() -> None:
    loop = virtual_loop()
    s = Setup(loop, disk=(10 * GIB, 0), min_age_s=0.0, high_percent=100)
    await s.gc.garbage_collect()
    assert s.target.methods() == ["ListContainers", "ContainerStatus", "ListImages"]


async def test_age_rule_removes_what_was_not_used_for_long_GC_104() -> None:
    loop = virtual_loop()
    s = Setup(loop, max_age_s=600.0)
    await s.gc.garbage_collect()
    await loop.clock.sleep(601)
    await s.gc.garbage_collect()
    assert s.removed() == ["b", "c"]


async def test_too_little_freed_is_an_event_each_time_and_a_failure_from_the_second_GC_105() -> (
    None
):
    loop = virtual_loop()
    s = Setup(loop, "abm", disk=(10 * GIB, 0), min_age_s=0.0)
    await s.gc.collect()
    text = (
        "Insufficient free disk space on the node's image filesystem (100% of 10.0 GiB used). "
        "Failed to free sufficient space by deleting unused images (freed 1073741824 bytes). "
        "Investigate disk usage, as it could be used by active images, logs, volumes, or other "
        "data."
    )
    assert s.events.seen == [("Warning", "FreeDiskSpaceFailed", text, "")]
    await s.gc.collect()
    assert s.events.reasons()[1:] == ["FreeDiskSpaceFailed", "ImageGCFailed"]


async def test_a_disk_without_capacity_is_an_event_GC_105() -> None:
    loop = virtual_loop()
    s = Setup(loop, disk=(0, 0))
    await s.gc.collect()
    message = "invalid capacity 0 on image filesystem"
    assert s.events.seen == [("Warning", "InvalidDiskCapacity", message, "")]


async def test_a_failing_look_fails_the_run_and_one_good_run_forgets_failures_GC_105_GC_106() -> (
    None
):
    loop = virtual_loop()
    s = Setup(loop)
    good = s.target.answers["ContainerStatus"]
    s.target.answers["ContainerStatus"] = Failure(grpc.StatusCode.NOT_FOUND, "gone")
    with pytest.raises(CriCallError, match="gone"):
        await s.gc.delete_unused_images()
    await s.gc.collect()
    s.target.answers["ContainerStatus"] = good
    await s.gc.collect()
    s.target.answers["ContainerStatus"] = ValueError("surprise")
    await s.gc.collect()
    assert s.events.seen == []
    await s.gc.collect()
    assert s.events.seen == [("Warning", "ImageGCFailed", "surprise", "")]


async def test_the_collector_looks_every_five_minutes_GC_101() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    task = asyncio.ensure_future(s.gc.run())
    await loop.clock.sleep(2 * IMAGE_GC_PERIOD_S + 1)
    task.cancel()
    assert s.target.methods().count("ListImages") == 3
