"""What containers put into volumes to do harm: odd trees, and names that are exchanged without a
pause.

`racing` is a process of its own, as a container is. It exchanges pairs of names with the kernel's
own exchange (renameat2), so that a directory is now there, now a FIFO or a link. Whoever has opened
one of the FIFOs for reading is noticed and set free: the process also tries to open them for
writing, which works only then.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

LONGEST_NAME: Final = "n" * 255
NO_TEXT: Final = os.fsdecode(b"no-utf-8-\xff\xfe\n")
"""A name that is no text, and has a line's end."""
RACER: Final = """
import ctypes, os, stat, sys

os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
HERE, EXCHANGE = -100, 2
pairs = [pair.encode().split(b"=") for pair in sys.argv[3:]]
names = [name for pair in pairs for name in pair]
told, parent = False, os.getppid()
while os.getppid() == parent:
    for _ in range(500):
        for one, other in pairs:
            done = libc.renameat2(HERE, one, HERE, other, EXCHANGE) == 0
            if not done and ctypes.get_errno() in (22, 38):
                sys.exit("no exchange")
    for name in names:
        try:
            file = os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            continue  # a directory, a link, or a FIFO that nobody reads
        is_fifo = stat.S_ISFIFO(os.fstat(file).st_mode)
        os.close(file)
        if not is_fifo:
            continue
        with open(sys.argv[2], "ab") as note:
            note.write(name + b"\\n")
    if not told:
        print("racing", flush=True)
        told = True
"""


class CannotRace(Exception):
    """This file system cannot exchange two names."""


@contextmanager
def racing(directory: Path, pairs: Mapping[str, str], note: Path) -> Iterator[None]:
    """Exchange each name below the directory for the other one, until the end. `note`: a file
    outside the directory, which gets the name of each FIFO that somebody had open. Raises
    `CannotRace`."""
    names = [f"{name}={other}" for name, other in pairs.items()]
    command = [sys.executable, "-c", RACER, str(directory), str(note), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "racing\n":
                raise CannotRace(f"{directory} is on a file system that cannot exchange two names")
            yield
        finally:
            process.kill()


def opened(note: Path) -> list[str]:
    """The FIFOs that somebody had open."""
    return sorted(set(note.read_text().splitlines())) if note.exists() else []


def put_pairs(directory: Path, outside: Path, count: int = 2) -> dict[str, str]:
    """Make so many directories twice, each with something in it, and for each of the first a FIFO,
    of the second a link to a directory `outside`: the pairs for `racing`."""
    pairs = {}
    for number in range(count):
        for kind in ("fifo", "link"):
            name, other = f"to-{kind}-{number}", f"{kind}-{number}"
            (directory / name / "below").mkdir(parents=True)
            (directory / name / "file").write_text("inside")
            if kind == "fifo":
                os.mkfifo(directory / other)
            else:
                (directory / other).symlink_to(outside)
            pairs[name] = other
    return pairs


def put_odd_files(directory: Path, outside: Path) -> list[str]:
    """Make one of each kind that a container can make without rights of its own; returns the names
    of those that are neither links nor directories."""
    os.mkfifo(directory / "fifo")
    os.mknod(directory / "socket", 0o600 | stat.S_IFSOCK)
    (directory / "link").symlink_to(outside)
    (directory / "link-to-file").symlink_to(outside / "file")
    (directory / "dangling").symlink_to(outside / "none")
    for name in (LONGEST_NAME, NO_TEXT):
        (directory / name).write_text("x")
    os.link(directory / LONGEST_NAME, directory / "second-name")
    return ["fifo", "socket", LONGEST_NAME, NO_TEXT, "second-name"]


def put_deep(directory: Path, levels: int, name: str = "d") -> None:
    """Make a directory in a directory and so on, and a file in the last, `file`."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)


def status_deep(directory: Path, levels: int, name: str = "d") -> tuple[int, int]:
    """Group and mode of the file that `put_deep` made."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    status = os.stat("file", dir_fd=fd)
    os.close(fd)
    return status.st_gid, status.st_mode & 0o7777


def remove_deep(directory: Path, name: str = "d") -> None:
    """Remove what `put_deep` made, a level at a time: most programs go down too deep for it."""
    while (directory / name).is_dir():
        with suppress(FileNotFoundError):
            (directory / name / "file").unlink()
        with suppress(FileNotFoundError):
            (directory / name / name).rename(directory / "next")
        (directory / name).rmdir()
        with suppress(FileNotFoundError):
            (directory / "next").rename(directory / name)


def make_outside(directory: Path) -> Path:
    """A directory that nothing may touch, with a file."""
    (directory / "below").mkdir(parents=True)
    for path in (directory / "file", directory / "below/file"):
        path.write_text("of the node")
        path.chmod(0o600)
    return directory


def state_of(directory: Path) -> list[tuple[str, int, int, int]]:
    """All that is in and below a directory: name, mode, group and size."""
    entries = []
    for path in (directory, *sorted(directory.rglob("*"))):
        status = path.lstat()
        size = status.st_size if path.is_file() else 0
        entries.append((str(path), status.st_mode, status.st_gid, size))
    return entries
