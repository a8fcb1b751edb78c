"""Files and volumes of pods, measured as `du` counts them."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loops import virtual_loop
from pods import make_pod

from refkubelet.failures import Complaints
from refkubelet.host.disk_use import NOTHING, DiskUse, VolumeSize
from refkubelet.host.untrusted_files import Met
from refkubelet.model.objects import Pod
from refkubelet.model.pod import name_and_namespace
from refkubelet.stats import files
from refkubelet.stats.files import PodFilesReader, measure, measured_volumes, plain_files
from refkubelet.stats.volumes import VolumeStats
from simclock import Clock

pytestmark = pytest.mark.virtual_time

KI = 1 << 10
CLAIMED = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def storing(name: str = "p", *volumes: dict[str, Any]) -> Pod:
    """A pod with these volumes."""
    return make_pod("main", "side", name=name, init=["init"], volumes=volumes)


def fill(path: Path, size_bytes: int) -> int:
    """A file of that size; what it takes on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size_bytes)
    return taken(path)


def taken(*paths: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in paths)


def volume_dir(root: Path, pod: str, volume: str) -> Path:
    return root / "pods" / f"uid-{pod}" / "volumes" / "kubernetes.io~empty-dir" / volume


def reader(tmp_path: Path) -> PodFilesReader:
    return PodFilesReader(str(tmp_path / "root"), str(tmp_path / "logs"))


def complaints() -> Complaints:
    return Complaints(logging.getLogger("volumes"), virtual_loop().clock)


def test_logs_are_the_plain_files_of_a_container_EVIC_029(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "default_p_uid-p"
    first, second = fill(logs / "main" / "0.log", 8 * KI), fill(logs / "main" / "1.log", 4 * KI)
    fill(logs / "main" / "deeper" / "0.log", 4 * KI)  # not counted
    (logs / "side").mkdir()
    own = fill(logs / "note", KI)
    found = reader(tmp_path).files(storing())
    assert found.logs == {"main": DiskUse(first + second, 2)}  # without a file nothing is known
    assert found.pod_logs == DiskUse(own, 1)
    assert found.volumes == {}


def test_init_containers_have_logs_too_EVIC_029(tmp_path: Path) -> None:
    size = fill(tmp_path / "logs" / "default_p_uid-p" / "init" / "0.log", KI)
    assert reader(tmp_path).files(storing()).logs == {"init": DiskUse(size, 1)}


def test_etc_hosts_counts_EVIC_101(tmp_path: Path) -> None:
    size = fill(tmp_path / "root" / "pods" / "uid-p" / "etc-hosts", 300)
    assert reader(tmp_path).files(storing()).etc_hosts == DiskUse(size, 1)
    assert reader(tmp_path / "other").files(storing()).etc_hosts == NOTHING


async def test_a_directory_counts_with_all_below_it_EVIC_029(tmp_path: Path) -> None:
    top = tmp_path / "top"
    inner = top / "a" / "b"
    fill(inner / "file", 40 * KI)
    os.link(inner / "file", top / "again")  # the same inode
    (top / "link").symlink_to(inner)  # not followed
    wanted = taken(top, top / "a", inner, inner / "file", top / "link")
    assert await measure(str(top)) == DiskUse(wanted, 5)
    assert await measure(str(tmp_path / "nothing")) == NOTHING
    assert plain_files(str(tmp_path / "nothing")) == NOTHING


async def test_many_files_do_not_hold_others_up_EVIC_029(tmp_path: Path) -> None:
    for number in range(600):
        fill(tmp_path / "many" / str(number), 0)
    order: list[str] = []

    asyncio.get_running_loop().call_soon(order.append, "other")
    found = await measure(str(tmp_path / "many"))
    order.append("measured")
    assert found.inodes == 601
    assert order == ["other", "measured"]


EMPTY, IN_MEMORY = {"emptyDir": {}}, {"emptyDir": {"medium": "Memory"}}


async def test_which_volumes_are_measured_EVIC_029_EVIC_044(tmp_path: Path) -> None:
    pod = storing(
        "p",
        {"name": "scratch", **EMPTY},
        {"name": "fast", **IN_MEMORY},
        {"name": "later", **EMPTY},
        {"name": "host", "hostPath": {"path": str(tmp_path)}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "key", "secret": {"secretName": "s"}},
    )
    root = tmp_path / "root"
    for name in ("scratch", "fast"):
        fill(volume_dir(root, "p", name) / "file", 4 * KI)
    for plugin, name in (("configmap", "config"), ("secret", "key")):
        volumes = root / "pods/uid-p/volumes"
        fill(volumes / f"kubernetes.io~{plugin}" / name / "file", 4 * KI)

    found = await reader(tmp_path).volumes(pod, 7, complaints())
    assert {name: seen.local for name, seen in found.items()} == {
        "scratch": True,
        "fast": False,
        "config": True,
        "key": False,
    }
    directory = volume_dir(root, "p", "scratch")
    assert found["scratch"].used == DiskUse(taken(directory, directory / "file"), 2)
    assert found["scratch"].time_ns == 7

    assert measured_volumes(pod)
    assert not measured_volumes(storing("p", {"name": "h", "hostPath": {"path": "/"}}))


async def test_a_volume_that_cannot_be_counted_is_told_of_once_a_minute_EVIC_029(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fill(volume_dir(tmp_path / "root", "p", "scratch") / "file", KI)

    def broken(top: int, **more: object) -> Iterator[Met]:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(files, "walked", broken)
    pod, told = storing("p", {"name": "scratch", **EMPTY}), complaints()
    for _ in range(5):
        found = await reader(tmp_path).volumes(pod, 7, told)
        assert found["scratch"].used.inodes == 1  # the directory itself
        await virtual_loop().clock.sleep(15.1)
    assert len(caplog.records) == 2
    assert "volume scratch of p_default(uid-p)" in caplog.text
    monkeypatch.undo()
    await reader(tmp_path).volumes(pod, 7, told)
    assert "no longer" in caplog.text


class Measured:
    """Counts when the volumes of each pod were measured; those of `hung` pods never are, if drivers
    have them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.times_s: dict[str, list[float]] = {}
        self.hung: set[str] = set()
        self.cancelled: list[str] = []

    async def claimed(self, pod: Pod) -> dict[str, VolumeSize]:
        pod_name, _ = name_and_namespace(pod)
        if pod_name in self.hung:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(pod_name)
                raise
        return {"data": VolumeSize(DiskUse(int(self.clock.monotonic_s())), 1, claim="data")}

    async def volumes(self, pod: Pod, now_ns: int, complaints: Complaints) -> dict[str, Any]:
        name = (pod.metadata.name if pod.metadata else None) or ""
        self.times_s.setdefault(name, []).append(self.clock.monotonic_s())
        return {"v": now_ns}


async def volumes_over(duration_s: float, pods: Any, period_s: float, jitter: float) -> Any:
    loop = virtual_loop()
    files: Any = Measured(loop.clock)
    volumes = stats_of(files, pods, period_s, jitter)
    task = asyncio.create_task(volumes.run())
    await loop.clock.sleep(duration_s)
    task.cancel()
    return files.times_s, volumes


def stats_of(files: Any, pods: Any, period_s: float = 60.0, jitter: float = 0.0) -> VolumeStats:
    return VolumeStats(
        files,
        claimed=files.claimed,
        pods=pods,
        clock=files.clock,
        random=lambda: jitter,
        period_s=period_s,
    )


async def test_each_pod_has_a_period_of_its_own_EVIC_029_EVIC_103() -> None:
    """New pods are found once a period and measured at once, then every 1 to 2 periods."""
    pods = [storing("first", {"name": "v", **EMPTY}, CLAIMED), storing("none")]

    loop = asyncio.get_running_loop()
    loop.call_later(30, pods.append, storing("second", {"name": "v", **EMPTY}))
    times_s, volumes = await volumes_over(250, lambda: pods, 60, 0.5)
    assert times_s == {"first": [0, 90, 180], "second": [60, 150, 240]}
    assert set(volumes.of("uid-first")) == {"v", "data"}
    assert set(volumes.of("uid-second")) == {"v"}  # it has no claim
    assert volumes.of("uid-none") == {}


async def test_pods_that_are_gone_are_forgotten_EVIC_029() -> None:
    pods = [storing("first", {"name": "v", **EMPTY})]

    asyncio.get_running_loop().call_later(50, pods.clear)
    times_s, volumes = await volumes_over(300, lambda: pods, 60, 0.0)
    assert times_s == {"first": [0]}
    assert volumes.of("uid-first") == {}


async def test_without_a_period_nothing_is_measured_EVIC_029() -> None:
    pods = [storing("first", {"name": "v", **EMPTY})]
    times_s, _ = await volumes_over(300, lambda: pods, 0, 0.0)
    assert times_s == {}


async def test_a_driver_that_does_not_answer_holds_up_its_pod_only_SRV_030() -> None:
    loop = virtual_loop()
    files = Measured(loop.clock)
    files.hung = {"first"}
    pods = [storing(name, {"name": "v", **EMPTY}, CLAIMED) for name in ("first", "second")]
    volumes = stats_of(files, lambda: pods)
    task = asyncio.create_task(volumes.run())
    await loop.clock.sleep(130)
    assert files.times_s == {"first": [0, 60, 120], "second": [0, 60, 120]}
    assert set(volumes.of("uid-first")) == {"v"}
    assert volumes.of("uid-second")["data"].used.bytes == 120
    files.hung = set()
    pods.pop(0)
    await loop.clock.sleep(60)
    assert files.cancelled == ["first"]  # a pod that is gone is not waited for
    files.hung = {"second"}
    await loop.clock.sleep(60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert files.cancelled == ["first", "second"]


async def test_a_claim_of_two_pods_is_shown_while_one_is_there_SRV_035() -> None:
    loop = virtual_loop()
    files = Measured(loop.clock)
    pods = [storing(name, {"name": "v", **EMPTY}, CLAIMED) for name in ("first", "second")]
    volumes = stats_of(files, lambda: pods)
    task = asyncio.create_task(volumes.run())
    await loop.clock.sleep(70)
    assert list(volumes.of_claims()) == [("default", "data")]
    pods.pop(0)
    assert list(volumes.of_claims()) == [("default", "data")]
    pods.pop(0)
    assert volumes.of_claims() == {}
    task.cancel()


async def test_a_pod_whose_task_never_began_is_measured_later_SRV_030() -> None:
    loop = virtual_loop()
    files = Measured(loop.clock)
    pods = [storing("first", {"name": "v", **EMPTY}, CLAIMED)]
    volumes = stats_of(files, lambda: pods)
    works, files.volumes = files.volumes, broken  # type: ignore[method-assign]
    with pytest.raises(ExceptionGroup):
        await volumes.run()
    files.volumes = works  # type: ignore[method-assign]
    task = asyncio.create_task(volumes.run())
    await loop.clock.sleep(130)
    assert "data" in volumes.of("uid-first")
    task.cancel()


async def broken(pod: Pod, now_ns: int, complaints: Complaints) -> dict[str, Any]:
    raise RuntimeError("once")
