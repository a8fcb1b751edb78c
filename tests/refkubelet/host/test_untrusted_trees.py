"""Trees that containers make, and change while the kubelet goes through them: NODE-230."""

from __future__ import annotations

import asyncio
import errno
import os
import random  # noqa: TID251 (the same names at each run)
import resource
import stat
import threading  # noqa: TID251 (who opens a FIFO is set free by another thread)
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubelet_conformance.harness.machines.racing import (
    LONGEST_NAME,
    NO_TEXT,
    CannotRace,
    make_outside,
    opened,
    put_deep,
    put_odd_files,
    put_pairs,
    racing,
    remove_deep,
    state_of,
    status_deep,
)
from refkubelet.host.disk_use import DiskUse
from refkubelet.host.untrusted_files import (
    Met,
    listed,
    looked_at,
    open_regular,
    opened_directory,
    removed_now,
    shown_path,
    walked,
    write_in_place,
)
from refkubelet.host.untrusted_files.walking import WINDOW
from refkubelet.stats.files import measure
from refkubelet.volumes.ownership import MOST_TOLD, give_at_once, give_to_group
from refkubelet.volumes.removal import remove_tree

DEEP = 2000
TRIES = 30
PAIRS = 25
NIGHTLY = "REFKUBELET_NIGHTLY"
GROUP = os.getgid() if os.geteuid() else 4321


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "volume").mkdir()
    yield tmp_path / "volume"
    remove_deep(tmp_path / "volume")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return make_outside(tmp_path / "outside")


def names_of(top: Path, **limits: int) -> list[str]:
    with opened_directory(top) as fd:
        return [met.name for met in walked(fd, **limits)]


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """No more descriptors than a walk may hold, beside those that are open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 2 * WINDOW + 8, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_depth_takes_neither_frames_nor_descriptors_NODE_230(
    volume: Path, few_descriptors: None
) -> None:
    put_deep(volume, DEEP)
    assert len(names_of(volume)) == DEEP + 1
    give_at_once(str(volume), GROUP, read_only=False)
    assert status_deep(volume, DEEP) == (GROUP, 0o660)
    removed_now(str(volume))
    assert not volume.exists()
    volume.mkdir()


def test_long_names_go_deeper_than_any_path_NODE_230(volume: Path) -> None:
    """A path of 60 such names is four times as long as the kernel takes."""
    put_deep(volume, 60, LONGEST_NAME)
    give_at_once(str(volume), GROUP, read_only=False)
    assert status_deep(volume, 60, LONGEST_NAME) == (GROUP, 0o660)
    assert asyncio.run(measure(str(volume))).inodes == 62
    removed_now(str(volume))
    assert not volume.exists()
    volume.mkdir()


def grow(top: Path, dice: random.Random, directories: int, files: int) -> int:
    """Make a tree by chance; returns how many entries it has."""
    places = [top]
    for number in range(directories):
        places.append(dice.choice(places[-20:]) / f"d{number}")
        places[-1].mkdir()
    for number in range(files):
        (dice.choice(places) / f"f{number}").touch()
    return directories + files


@pytest.mark.parametrize("seed", range(5))
def test_every_entry_is_met_once_NODE_230(volume: Path, seed: int) -> None:
    count = grow(volume, random.Random(seed), directories=400, files=400)
    found = names_of(volume)
    assert len(found) == len(set(found)) == count


@pytest.mark.parametrize(
    "count",
    [20_000, pytest.param(1_000_000, id="million", marks=pytest.mark.timeout(1800))],
)
async def test_many_entries_hold_nobody_up_NODE_230(volume: Path, count: int) -> None:
    """NODE-230.3: Given to the group, measured and removed; others have their turn meanwhile."""
    if count > 20_000 and not os.environ.get(NIGHTLY):
        pytest.skip(f"a million files: set {NIGHTLY}=1")
    for number in range(count):
        os.mknod(volume / str(number))
    turns, ends = 0, False

    async def others() -> None:
        nonlocal turns
        while not ends:
            await asyncio.sleep(0.001)
            turns += 1

    other = asyncio.create_task(others())
    works: list[Callable[[], object]] = []
    works = [
        lambda: give_to_group(str(volume), GROUP, read_only=False),
        lambda: measure(str(volume)),
        lambda: remove_tree(str(volume)),
    ]
    for work in works:
        before = turns
        await work()  # type: ignore[misc]
        assert turns - before >= count // 10_000
    ends = True
    await other
    assert not volume.exists()
    volume.mkdir()


def test_odd_files_are_given_and_links_themselves_NODE_230(volume: Path, outside: Path) -> None:
    names, before = put_odd_files(volume, outside), state_of(outside)
    give_at_once(str(volume), GROUP, read_only=True)
    modes = {stat.S_IMODE((volume / name).stat().st_mode) & 0o440 for name in names}
    assert modes == {0o440}
    assert {(volume / name).lstat().st_gid for name in (*names, "link", "dangling")} == {GROUP}
    assert state_of(outside) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device needs root")
def test_no_device_is_opened_NODE_230(volume: Path) -> None:
    """A device whose opening would be an error: there is no driver with that number."""
    os.mknod(volume / "device", 0o600 | stat.S_IFCHR, os.makedev(511, 1))
    give_at_once(str(volume), GROUP, read_only=False)
    assert (volume / "device").stat().st_gid == GROUP
    assert asyncio.run(measure(str(volume))).inodes == 2
    with pytest.raises(OSError, match="Not a regular file"):
        open_regular(str(volume / "device"), os.O_RDONLY)
    removed_now(str(volume))
    volume.mkdir()


async def test_exchanged_directories_are_neither_opened_nor_followed_NODE_230(
    tmp_path: Path, volume: Path, outside: Path
) -> None:
    pairs, before = put_pairs(volume, outside, PAIRS), state_of(outside)
    try:
        with racing(volume, pairs, tmp_path / "note"):
            for _ in range(TRIES):
                await give_to_group(str(volume), GROUP, read_only=False)
                await measure(str(volume))
    except CannotRace as error:
        pytest.skip(str(error))
    assert opened(tmp_path / "note") == []
    assert state_of(outside) == before


async def test_what_is_exchanged_while_it_is_removed_stays_inside_NODE_230(
    tmp_path: Path, outside: Path
) -> None:
    before = state_of(outside)
    for number in range(10):
        volume = tmp_path / f"volume-{number}"
        volume.mkdir()
        pairs = put_pairs(volume, outside)
        try:
            with racing(volume, pairs, tmp_path / "note"):
                await remove_tree(str(volume))
        except CannotRace as error:
            pytest.skip(str(error))
        assert not volume.exists()
    assert opened(tmp_path / "note") == []
    assert state_of(outside) == before


def test_a_directory_that_is_moved_is_left_NODE_230(volume: Path, outside: Path) -> None:
    """While the walk is deep in it, the directory above is moved to elsewhere in the volume: the
    way back does not lead to where it went."""
    for branch in ("a", "b"):
        (volume / branch).mkdir()
        put_deep(volume / branch, 3 * WINDOW)
    (volume / "elsewhere").mkdir()
    met: list[Met] = []
    with opened_directory(volume) as top:
        for one in walked(top):
            met.append(one)
            if one.name == "file" and not (volume / "elsewhere/moved").exists():
                first = "a" if os.readlink(f"/proc/self/fd/{one.above}").count("/a/") else "b"
                (volume / first / "d/d/d").rename(volume / "elsewhere/moved")
    assert [one.name for one in met].count("file") in (2, 3)  # met again where it has moved to
    removed_now(str(volume))
    volume.mkdir()


def test_a_walk_has_bounds_NODE_230(volume: Path) -> None:
    for number in range(20):
        (volume / f"d{number}").mkdir()
    with pytest.raises(OSError, match="more than 10 entries"):
        names_of(volume, most_entries=10)
    for number in range(20):
        put_deep(volume / f"d{number}", 2 * WINDOW)
    with pytest.raises(OSError, match="too much memory"):
        names_of(volume, most_kept_bytes=100)
    removed_now(str(volume))
    volume.mkdir()
    assert len(os.listdir("/proc/self/fd")) < 100


async def test_what_cannot_be_counted_is_told_and_not_lost_EVIC_029(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refkubelet.stats import files

    for number in range(20):
        (volume / str(number)).write_bytes(b"x" * 5000)
    monkeypatch.setattr(files, "walked", lambda top, **more: walked(top, most_entries=10, **more))
    errors: list[OSError] = []
    assert (await measure(str(volume), errors.append)).inodes == 11
    assert [error.errno for error in errors] == [errno.EFBIG]


async def test_few_lines_tell_of_many_failures_NODE_212(
    volume: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refkubelet.volumes import ownership

    def refuse(place: int, group: int) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(ownership, "change_group", refuse)
    for number in range(100):
        (volume / str(number)).touch()
    (volume / NO_TEXT).touch()
    await give_to_group(str(volume), GROUP, read_only=False)
    assert len(caplog.records) == MOST_TOLD + 2  # the top, and how many there were
    assert "101 files" in caplog.text
    assert (volume / "0").stat().st_mode & 0o060 == 0o060


async def test_failures_name_the_path_NODE_212(
    volume: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of an entry far below as of one in a directory that is shut by then."""
    from refkubelet.volumes import ownership

    def refuse(place: int, group: int) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(ownership, "change_group", refuse)
    monkeypatch.setattr(ownership, "MOST_TOLD", 100)
    deepest = volume / "/".join(f"d{number}" for number in range(WINDOW + 4))
    deepest.mkdir(parents=True)
    for above in deepest.parents:
        if above.is_relative_to(volume):
            (above / "file").touch()
            (above / "other").mkdir()
    await give_to_group(str(volume), GROUP, read_only=False)
    told = [record.getMessage().split(" of ", 1)[1].split(": ")[0] for record in caplog.records]
    assert sorted(told) == sorted([str(volume), *(str(path) for path in volume.rglob("*"))])


def test_a_directory_that_cannot_be_read_is_named_once_NODE_230(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (volume / "a/b/c").mkdir(parents=True)
    (volume / "a/b/refused").mkdir()
    real_open, real_scan = os.open, os.scandir

    def refuse(path: str, *args: int, dir_fd: int | None = None) -> int:
        if path == "refused":
            raise PermissionError(13, "no")
        return real_open(path, *args, dir_fd=dir_fd)

    class Broken:
        def __init__(self, fd: int) -> None:
            self.entries = real_scan(fd)
            self.is_broken = os.readlink(f"/proc/self/fd/{fd}") == str(volume / "a/b/c")

        def __next__(self) -> os.DirEntry[str]:
            if self.is_broken:
                raise OSError(5, "broken")
            return next(self.entries)

        def close(self) -> None:
            self.entries.close()

    told = []
    with opened_directory(volume) as fd, monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        patched.setattr(os, "scandir", Broken)
        for _ in walked(fd, refused=lambda path, error: told.append(path)):
            pass
    assert sorted(told) == ["a/b/c", "a/b/refused"]


async def test_the_top_is_given_last_NODE_212(volume: Path) -> None:
    """A walk that did not come to its end is done again: the policy looks at the top."""
    from refkubelet.volumes.ownership import giving

    (volume / "d").mkdir()
    (volume / "d/file").touch(0o600)
    volume.chmod(0o700)
    for _ in giving(str(volume), GROUP, read_only=False):
        assert stat.S_IMODE(volume.stat().st_mode) == 0o700
    assert stat.S_IMODE(volume.stat().st_mode) == 0o2770


def test_names_are_bounded_and_no_link_is_listed_NODE_230(volume: Path, outside: Path) -> None:
    for number in range(30):
        (volume / str(number)).touch()
    (volume / "link").symlink_to(outside)
    assert len(listed(volume, 10)) == len(list(looked_at(volume, 10))) == 10
    with pytest.raises(OSError):
        listed(volume / "link")
    os.mkfifo(volume / "fifo")
    with pytest.raises(NotADirectoryError):
        listed(volume / "fifo")


def test_a_fifo_that_is_written_to_holds_nobody_up_NODE_230(volume: Path, outside: Path) -> None:
    os.mkfifo(volume / "fifo")
    (volume / "link").symlink_to(outside / "file")
    freed = threading.Timer(5, lambda: os.open(volume / "fifo", os.O_RDONLY | os.O_NONBLOCK))
    freed.start()
    for name in ("fifo", "link"):
        with pytest.raises(OSError):
            write_in_place(str(volume / name), b"x", 0o644)
    assert freed.is_alive()
    freed.cancel()
    write_in_place(str(volume / "new"), b"longer", 0o640)
    write_in_place(str(volume / "new"), b"x", 0o644)
    assert (volume / "new").read_bytes() == b"x"
    assert (outside / "file").read_text() == "of the node"


def test_paths_in_a_log_are_one_short_line() -> None:
    assert shown_path("a/b") == "a/b"
    assert "\n" not in shown_path(NO_TEXT)
    assert len(shown_path(f"{LONGEST_NAME}/" * 50)) < 300


async def test_hard_links_count_once_and_links_themselves_EVIC_029(volume: Path) -> None:
    (volume / "file").write_bytes(b"x" * 8192)
    alone = await measure(str(volume))
    os.link(volume / "file", volume / "again")
    assert await measure(str(volume)) == alone
    (volume / "link").symlink_to("/")
    assert (await measure(str(volume))).inodes == alone.inodes + 1
    assert await measure(str(volume / "none")) == DiskUse()
