"""The numbers of a time that several processes share, in a file that all of them map.

A time is three numbers: `rate` (how fast it passes while any member works), the start, and how far
it has jumped. A clock is `start + (real - start) * rate + jumped`, in this module for Python, in a
piece of machine code for the programs. All processes see a jump at the same instant.

The file is a memfd, which ends with its last user, or a file with a name, by which processes that
are not related find each other. Behind the numbers it holds the table of members (`members.py`).
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import sys
import time
from typing import Final

from simclock.timewarp.refusal import CannotWarp

MAGIC: Final = int.from_bytes(b"timewrp1", "little")
RATE_BITS: Final = 20
"""Rates are stored in units of 1 / 2**20."""
JUMPING_RATE: Final = 1 / 8
"""How fast a jumping time passes while any member works. Slower than real time, so that a busy
machine looks no slower than an idle one; not zero, because some code looks at the clock until it
has moved."""

# Words of 8 bytes. The machine code knows the places of the last four (clock_x86_64.s).
WORD_MAGIC, WORD_BOOT, WORD_RATE, WORD_WALL, WORD_MONO, WORD_JUMPED, WORD_CHANGES = range(7)
NUMBERS_SIZE: Final = 0x10000  # a page on every machine
MEMBERS_SIZE: Final = 0x4000
SIZE: Final = NUMBERS_SIZE + MEMBERS_SIZE
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
JOIN: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "join.py")


class TimePage:
    """The numbers of one time. Made with `create` or `open`.

    `path`: where other processes open the same page, as long as this process has it open.
    """

    def __init__(self, fd: int, path: str) -> None:
        """Map the page behind `fd`, which belongs to this object from now on."""
        self.fd = fd
        self.path = path
        self._map = mmap.mmap(fd, SIZE)
        self.words = memoryview(self._map).cast("Q")
        self._rate = self.words[WORD_RATE]
        self._wall = self.words[WORD_WALL]
        self._mono = self.words[WORD_MONO]

    @classmethod
    def create(cls, rate: float | None = None, path: str | None = None) -> TimePage:
        """A new time, which begins now.

        `rate`: how fast it passes; None: JUMPING_RATE. A time with a rate up to 1
        jumps when nobody works, others only pass faster. `path`: a file that is made and must
        not exist; None: a file without a name. Raises: ValueError for a rate that is not between
        1/1024 and 1024, FileExistsError.
        """
        rate = JUMPING_RATE if rate is None else rate
        if not 1 / 1024 <= rate <= 1024:
            raise ValueError(f"a rate of {rate:g}: wanted one from 1/1024 to 1024")
        if path is None:
            fd = os.memfd_create("timewarp")
            _fill(fd, rate)
            return cls(fd, f"/proc/{os.getpid()}/fd/{fd}")
        _publish(path, rate)
        return cls.open(path)

    @classmethod
    def open(cls, path: str) -> TimePage:
        """The page that another process made there. Raises: CannotWarp."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise CannotWarp(f"the clock page {path} cannot be opened: {error.strerror}") from None
        if os.fstat(fd).st_size != SIZE:
            os.close(fd)
            raise CannotWarp(f"{path} is no clock page: it has not the size of one, {SIZE} bytes")
        page = cls(fd, path)
        if page.words[WORD_MAGIC] != MAGIC:
            raise CannotWarp(f"{path} is no clock page, or that of another version of timewarp")
        if page.words[WORD_BOOT] != _boot():
            raise CannotWarp(f"the clock page {path} is older than this start of the machine")
        return page

    @classmethod
    def open_or_create(cls, path: str, rate: float | None = None) -> TimePage:
        """The page there, made if there is none; of processes that start together, one makes it.
        Raises: CannotWarp."""
        try:
            return cls.create(rate, path)
        except FileExistsError:
            return cls.open(path)
        except OSError as error:
            raise CannotWarp(f"the clock page {path} cannot be made: {error.strerror}") from None

    def close(self) -> None:
        """Give up the page. Nothing may read this object's time afterwards."""
        self.words.release()
        self._map.close()
        os.close(self.fd)

    @property
    def rate(self) -> float:
        """How many seconds of this time pass in one real second while any member works."""
        return self._rate / (1 << RATE_BITS)

    @property
    def jumps(self) -> bool:
        """Whether this time jumps when no member works."""
        return self._rate <= 1 << RATE_BITS

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words before a command line that put a Go program into this time. The program keeps
        the process ID that the command was started with."""
        return (sys.executable, "-I", "-S", JOIN, self.path, "--")

    def monotonic_ns(self) -> int:
        """The monotonic clock of this time, in nanoseconds."""
        real = time.monotonic_ns() - self._mono
        return self._mono + (real * self._rate >> RATE_BITS) + self.words[WORD_JUMPED]

    def wall_ns(self) -> int:
        """The wall clock of this time, in nanoseconds since 1970."""
        real = time.time_ns() - self._wall
        return self._wall + (real * self._rate >> RATE_BITS) + self.words[WORD_JUMPED]

    def real_s(self, duration_ns: int) -> float:
        """How many real seconds it takes until that much of this time has passed without jumps."""
        return max(0, duration_ns) / 1e9 / self.rate

    def jumped_ns(self) -> int:
        """The sum of all jumps so far, in nanoseconds."""
        return self.words[WORD_JUMPED]

    def jump(self, duration_ns: int) -> None:
        """Move the time on. Only the process that `lead` gave the lead may do so. Raises:
        ValueError for a negative duration."""
        if duration_ns < 0:
            raise ValueError(f"a jump of {duration_ns} ns: time does not go back")
        self.words[WORD_JUMPED] += duration_ns

    def lead(self) -> bool:
        """Whether this process is the one that moves the time on: the first that asks, and when it
        has ended or closed its page, the next. Raises: OSError."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _fill(fd: int, rate: float) -> None:
    """Write the numbers of a new time into the file."""
    os.ftruncate(fd, SIZE)
    with mmap.mmap(fd, SIZE) as mapped, memoryview(mapped).cast("Q") as words:
        words[WORD_RATE] = math.floor(rate * (1 << RATE_BITS))
        words[WORD_WALL] = time.time_ns()
        words[WORD_MONO] = time.monotonic_ns()
        words[WORD_BOOT] = _boot()
        words[WORD_MAGIC] = MAGIC


def _publish(path: str, rate: float) -> None:
    """Make the file under that name, complete from its first instant. Raises: FileExistsError."""
    own_path = f"{path}.{os.getpid()}"
    fd = os.open(own_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _fill(fd, rate)
        os.link(own_path, path)
    finally:
        os.close(fd)
        os.unlink(own_path)


def _boot() -> int:
    """A number for this start of the machine: monotonic clocks begin anew with each."""
    with open(BOOT_ID) as file:
        return int(file.read().strip().replace("-", "")[:16], 16)
