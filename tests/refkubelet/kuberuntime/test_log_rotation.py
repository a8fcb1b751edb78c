"""Container log rotation: which files stay, and what the runtime is told (GC-201..203)."""

from __future__ import annotations

import asyncio
import gzip
import os
import time  # noqa: TID251 (its zones)
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import virtual_loop

from refkubelet.cri.records import ContainerRecord, ContainerState
from refkubelet.cri.target import CriCallError
from refkubelet.kuberuntime.logs.files import ALWAYS_KEPT, rotated_name, rotation_plan
from refkubelet.kuberuntime.logs.rotation import ContainerLogManager, LogPolicy, compress
from simclock import RealClock, VirtualLoop

pytestmark = pytest.mark.virtual_time


class Runtime:
    """Opens a new log at each ReopenContainerLog, unless it `fails` or writes none."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.reopened: list[str] = []
        self.fails = False
        self.writes = True

    async def reopen_container_log(self, container_id: str) -> None:
        self.reopened.append(container_id)
        if self.fails:
            raise CriCallError("ReopenContainerLog", "UNKNOWN", "no")
        if self.writes:
            self.log.touch()


class World:
    def __init__(self, loop: VirtualLoop, directory: Path, policy: LogPolicy) -> None:
        self.loop = loop
        self.log = directory / "0.log"
        self.log.write_text("new")
        self.runtime = Runtime(self.log)
        record = ContainerRecord("c1", "main", ContainerState.RUNNING, log_path=str(self.log))
        self.running = [record]
        self.manager = ContainerLogManager(self.runtime, lambda: self.running, policy, loop.clock)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.log.parent.iterdir())


@asynccontextmanager
async def rotating(directory: Path, **policy: int | float) -> AsyncIterator[World]:
    """A world whose manager runs, and still does so at the end."""
    loop = virtual_loop()
    world = World(loop, directory, LogPolicy(**{"max_size_bytes": 3, **policy}))  # type: ignore[arg-type]
    task = asyncio.create_task(world.manager.run())
    yield world
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """The process's time zone, which Python looks up at once unless it is told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


STAMPS = st.integers(1, 9).map(lambda day: f"0.log.2026010{day}-000000")
FILES = st.sets(st.tuples(STAMPS, st.sampled_from(["", ".gz", ".tmp", ".gz.tmp"])))


@given(FILES, st.integers(2, 6))
def test_what_stays_leaves_room_for_the_two_logs_to_come_GC_203(
    files: set[tuple[str, str]], max_files: int
) -> None:
    names = {stamp + ending for stamp, ending in files}
    plan = rotation_plan(names, max_files)
    kept = names - set(plan.remove)
    assert len(kept) + ALWAYS_KEPT <= max_files
    assert not any(name.endswith(".tmp") for name in kept)
    assert set(plan.compress) == {name for name in kept if not name.endswith(".gz")}
    assert not any(name + ".gz" in names for name in plan.compress)
    used = {name for name in names if name.endswith(".gz")} | set(plan.compress)
    oldest_kept = min(kept, default="~")
    assert all(name <= oldest_kept for name in used - kept)
    assert not used - kept or len(kept) + ALWAYS_KEPT == max_files  # nothing goes needlessly


def test_the_time_stands_in_the_name_GC_203() -> None:
    when = datetime(2026, 12, 31, 23, 59, 58, 999_999, UTC)
    assert rotated_name("/l/0.log", when) == "/l/0.log.20261231-235958"


async def test_a_big_log_is_renamed_and_opened_anew_GC_202(tmp_path: Path) -> None:
    async with rotating(tmp_path) as world:
        await world.loop.clock.sleep(1)
        stamp = world.loop.clock.now().strftime("%Y%m%d-")
        assert [name[: len("0.log.20260101-")] for name in world.names()] == [
            "0.log",
            f"0.log.{stamp}",
        ]
        assert (world.log.read_text(), world.runtime.reopened) == ("", ["c1"])


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
async def test_virtual_names_do_not_depend_on_the_machines_zone_GC_203(
    zone: str, tmp_path: Path
) -> None:
    with in_zone(zone):
        async with rotating(tmp_path) as world:
            stamp = world.loop.clock.now().strftime("%Y%m%d-%H%M%S")
            await world.loop.clock.sleep(1)
            assert world.names() == ["0.log", f"0.log.{stamp}"]


def test_real_names_are_in_local_time_GC_203() -> None:
    with in_zone("Asia/Tokyo"):
        assert RealClock().local().utcoffset() == timedelta(hours=9)


async def test_there_are_workers_for_the_work_there_is_GC_202(tmp_path: Path) -> None:
    async with rotating(tmp_path, workers=2**31 - 1) as world:
        await world.loop.clock.sleep(1)
        tasks = {task.get_name() for task in asyncio.all_tasks()}
        assert {name for name in tasks if name.startswith("log rotation")} == {"log rotation 0"}


async def test_a_small_log_stays_and_is_looked_at_again_GC_202(tmp_path: Path) -> None:
    async with rotating(tmp_path, max_size_bytes=5) as world:
        await world.loop.clock.sleep(1)
        world.log.write_text("newer")
        await world.loop.clock.sleep(8.5)
        assert world.names() == ["0.log"]
        await world.loop.clock.sleep(1)
        assert len(world.names()) == 2


async def test_a_negative_size_switches_rotation_off_GC_201(tmp_path: Path) -> None:
    async with rotating(tmp_path, max_size_bytes=-1) as world:
        await world.loop.clock.sleep(100)
        assert (world.names(), world.runtime.reopened) == (["0.log"], [])


async def test_never_more_files_than_allowed_and_the_newest_is_not_compressed_GC_203(
    tmp_path: Path,
) -> None:
    async with rotating(tmp_path, max_files=4) as world:
        for number in range(6):
            world.log.write_text(f"log {number}")
            await world.loop.clock.sleep(10)
            assert len(world.names()) <= 4
        log, older, old, newest = world.names()
        assert (log, old[-3:], older[-3:]) == ("0.log", ".gz", ".gz")
        assert (tmp_path / newest).read_text() == "log 5"
        assert gzip.decompress((tmp_path / old).read_bytes()) == b"log 4"
        assert gzip.decompress((tmp_path / older).read_bytes()) == b"log 3"


async def test_a_log_that_is_not_reopened_gets_its_name_back_GC_203(tmp_path: Path) -> None:
    async with rotating(tmp_path) as world:
        world.runtime.fails = True
        await world.loop.clock.sleep(1)
        assert (world.names(), world.log.read_text()) == (["0.log"], "new")
        world.runtime.fails = False
        await world.loop.clock.sleep(10)
        assert world.runtime.reopened == ["c1", "c1"]
        assert len(world.names()) == 2


async def test_a_missing_log_is_opened_again_GC_202(tmp_path: Path) -> None:
    async with rotating(tmp_path) as world:
        world.log.unlink()
        await world.loop.clock.sleep(1)
        assert (world.names(), world.runtime.reopened) == (["0.log"], ["c1"])
        world.log.unlink()
        await world.loop.clock.sleep(10)
        assert world.runtime.reopened == ["c1", "c1"]


async def test_a_runtime_without_logs_is_asked_once_per_container(tmp_path: Path) -> None:
    async with rotating(tmp_path) as world:
        world.log.unlink()
        world.runtime.writes = False
        await world.loop.clock.sleep(35)
        assert world.runtime.reopened == ["c1"]
        world.log.write_text("after all")
        await world.loop.clock.sleep(10)
        assert world.runtime.reopened == ["c1", "c1"]


async def test_a_container_in_trouble_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with rotating(tmp_path) as world:
        other = tmp_path / "other"
        other.mkdir()
        path = other / "0.log"
        path.write_text("new")
        good = ContainerRecord("c2", "good", ContainerState.RUNNING, log_path=str(path))
        world.running[:] = [good, *world.running]
        world.runtime.fails = True
        await world.loop.clock.sleep(1)
        assert world.runtime.reopened == ["c2", "c1"]
        assert "the log of container good (c2) is not rotated" in caplog.text


async def test_other_tasks_run_while_a_big_file_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "0.log.1"
    path.write_bytes(bytes(range(256)) * 4 * 1024)  # 1 MiB: 16 pieces
    passes = 0
    task = asyncio.create_task(compress(str(path)))
    while not task.done():
        await asyncio.sleep(0)
        passes += 1
    assert passes >= 16
    assert [p.name for p in tmp_path.iterdir()] == ["0.log.1.gz"]


async def test_compressing_leaves_nothing_behind_when_it_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "0.log.1"
    path.write_bytes(b"x" * 1024 * 1024)
    path.chmod(0o600)
    task = asyncio.create_task(compress(str(path)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    unfinished = tmp_path / "0.log.1.tmp"
    assert unfinished.stat().st_mode & 0o777 == 0o600
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [p.name for p in tmp_path.iterdir()] == ["0.log.1"]


@pytest.mark.parametrize("kind", ["fifo", "link"])
async def test_what_is_no_log_is_not_compressed_GC_203(tmp_path: Path, kind: str) -> None:
    (tmp_path / "secret").write_text("of the host")
    log = tmp_path / "0.log.20260101-000000"
    os.mkfifo(log) if kind == "fifo" else log.symlink_to(tmp_path / "secret")
    with pytest.raises(OSError):
        await compress(str(log))
    assert sorted(os.listdir(tmp_path)) == [log.name, "secret"]
