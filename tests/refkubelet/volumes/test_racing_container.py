"""A container that exchanges parts of its volume for links while the kubelet works there.

`Container` is a process that does so without a pause, with the kernel's own exchange of two names,
so that a directory is now there, now a link to `outside`, which stands for `/` of the node. The
kubelet's side is bounded by a number of tries. What must never happen: anything outside the volume
is made, changed, removed, or handed over.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from refkubelet.host.untrusted_files import PathBelow
from refkubelet.volumes.atomic_writer import DATA, AtomicWriter
from refkubelet.volumes.mounting import NoMounts, RealMounts
from refkubelet.volumes.payload import FileProjection
from refkubelet.volumes.plan import SubPathError
from refkubelet.volumes.sub_paths import SubPathUse, prepare
from simclock import Ids, RealClock, Rng

TRIES: Final = 300
MOUNTS: Final = 60
SECRET: Final = "secret of the node"
RACER: Final = """
import ctypes, os, sys

os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
HERE, EXCHANGE = -100, 2
pairs = [pair.encode().split(b"=") for pair in sys.argv[2:]]
told, parent = False, os.getppid()
while os.getppid() == parent:
    for _ in range(500):
        for one, other in pairs:
            done = libc.renameat2(HERE, one, HERE, other, EXCHANGE) == 0
            if not done and ctypes.get_errno() in (22, 38):
                sys.exit("no exchange")
    if not told:
        print("racing", flush=True)
        told = True
"""


@contextmanager
def container(volume: Path, **pairs: str) -> Iterator[None]:
    """A process that exchanges each name in the volume for the other one, until the end; skips the
    test where a file system cannot exchange names."""
    names = [f"{one}={other}" for one, other in pairs.items()]
    command = [sys.executable, "-c", RACER, str(volume), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "racing\n":
                pytest.skip("this file system cannot exchange two names")
            yield
        finally:
            process.kill()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside/etc").mkdir(parents=True)
    (tmp_path / "outside/etc/file").write_text(SECRET)
    return tmp_path / "outside"


@pytest.fixture
def volume(tmp_path: Path, outside: Path) -> Path:
    """A volume with a directory, and a link beside it that leads out."""
    volume = tmp_path / "volume"
    (volume / "dir/etc").mkdir(parents=True)
    (volume / "dir/etc/file").write_text("inside")
    (volume / "link").symlink_to(outside)
    return volume


def state_of(directory: Path) -> dict[str, str]:
    """All that is below a directory, with modes, and the texts of files."""
    found = {}
    for path in sorted(directory.rglob("*")):
        text = path.read_text() if path.is_file() else ""
        found[str(path.relative_to(directory))] = f"{path.lstat().st_mode:o} {text}"
    return found


class Looking(NoMounts):
    """Mounts that look at what they are handed: the very file, not its name."""

    def __init__(self) -> None:
        self.seen: list[tuple[bool, str]] = []

    def bind(self, place: PathBelow, target: str) -> str:
        now_at = os.readlink(f"/proc/self/fd/{place.descriptor}")
        text = "" if place.is_directory else place.read(1000).decode()
        self.seen.append((place.is_directory, text or now_at))
        return place.path


def prepared(volume: Path, path: str, mounts: NoMounts | RealMounts, index: int = 0) -> str | None:
    """What is handed over for that subPath; None: it was refused."""
    use = SubPathUse(str(volume.parent / "root"), "u-1", "v", "main", index)
    try:
        return prepare(str(volume), path, use, mounts)
    except SubPathError:
        return None


def test_no_file_outside_is_handed_over_NODE_211(volume: Path, outside: Path) -> None:
    before, looking = state_of(outside), Looking()
    with container(volume, dir="link"):
        for _ in range(TRIES):
            prepared(volume, "dir/etc/file", looking)
    assert {text for _, text in looking.seen} <= {"inside"}
    assert state_of(outside) == before


def test_no_directory_outside_is_made_or_handed_over_NODE_211(volume: Path, outside: Path) -> None:
    before, looking = state_of(outside), Looking()
    with container(volume, dir="link"):
        for number in range(TRIES):
            prepared(volume, f"dir/etc/new-{number}/below", looking)
            prepared(volume, "dir/etc", looking)
    assert state_of(outside) == before
    out = [place for _, place in looking.seen if not place.startswith(f"{volume}/")]
    assert out == []


def test_what_is_mounted_is_inside_whatever_becomes_of_its_name_NODE_211(
    volume: Path, outside: Path, real_mounts: RealMounts
) -> None:
    before, root = state_of(outside), volume.parent / "root"
    texts = set()
    try:
        with container(volume, dir="link"):
            for number in range(MOUNTS):
                path = prepared(volume, "dir/etc", real_mounts, number)
                if path is not None:
                    texts.add((Path(path) / "file").read_text())
                    real_mounts.unmount_below(str(root))
    finally:
        real_mounts.unmount_below(str(root))
    assert texts <= {"inside"}
    assert state_of(outside) == before


def writer() -> AtomicWriter:
    return AtomicWriter(RealClock(), Ids(Rng(1)))


def payload(number: int) -> dict[str, FileProjection]:
    """Files that all say the same number; every second time there is one more."""
    names = ["a", "d/b", *(["odd"] if number % 2 else [])]
    return {name: FileProjection(str(number).encode() * 500, 0o644) for name in names}


def test_an_update_goes_through_no_link_NODE_206(tmp_path: Path, outside: Path) -> None:
    """The names that containers see, and the link to the newest files, are exchanged for links that
    lead out while the volume is updated."""
    volume = tmp_path / "volume"
    volume.mkdir()
    writer().write(str(volume), payload(1), lambda: None)
    for name in ("out", "out-data"):
        (volume / name).symlink_to(outside)
    (volume / "out-file").symlink_to(outside / "etc/file")
    before = state_of(outside)
    with container(volume, **{"d": "out", "a": "out-file", DATA: "out-data"}):
        for number in range(2, TRIES // 3):
            with suppress(OSError, ValueError):  # told as an event, and tried again
                writer().write(str(volume), payload(number), lambda: None)
    assert state_of(outside) == before


READER: Final = """
import os, sys

seen, halves = 0, 0
print("reading", flush=True)
while not os.path.exists(sys.argv[2]):
    try:
        data = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        continue  # the link led to the old directory, which is gone
    try:
        texts = []
        for name in ("a", "d/b"):
            with open(os.open(name, os.O_RDONLY, dir_fd=data)) as file:
                texts.append(file.read())
        seen += 1
        halves += texts[0] != texts[1] or len(texts[0]) % 500 != 0
    except FileNotFoundError:
        pass  # the old files are gone: it opens the new ones
    finally:
        os.close(data)
print(seen, halves)
"""


def test_who_reads_sees_all_of_an_update_or_nothing_NODE_206(tmp_path: Path) -> None:
    volume, end = tmp_path / "volume", tmp_path / "end"
    volume.mkdir()
    writer().write(str(volume), payload(1), lambda: None)
    command = [sys.executable, "-c", READER, str(volume / DATA), str(end)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "reading\n"
            for number in range(2, TRIES):
                assert writer().write(str(volume), payload(number), lambda: None)
        finally:
            end.touch()
        _, halves = map(int, process.stdout.readline().split())
    assert halves == 0
