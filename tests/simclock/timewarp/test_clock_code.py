"""The machine code of the clock, called in this process: it tells what Python computes."""

from __future__ import annotations

import ctypes
import mmap
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simclock import timewarp
from simclock.timewarp import clock_x86_64 as code
from simclock.timewarp.architectures import this_architecture
from simclock.timewarp.elf import vdso
from simclock.timewarp.pages import TimePage

REALTIME, MONOTONIC, PROCESS_TIME, RAW, COARSE, BOOTTIME = 0, 1, 2, 4, 6, 7
SHARED, FIXED = 1, 0x10


class Spec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_int64), ("rest", ctypes.c_int64))


class Clock:
    """The functions of the code, mapped in front of a page."""

    def __init__(self, page: TimePage) -> None:
        read, write, execute = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC
        self._map = mmap.mmap(-1, 2 * code.PAGE, prot=read | write | execute)
        self._map[: len(code.CODE)] = code.CODE
        struct.pack_into("<Q", self._map, code.ORIGINAL_AT, own_clock_gettime())
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        numbers = self._address + code.PAGE
        assert libc.mmap(numbers, code.PAGE, 1, SHARED | FIXED, page.fd, 0) == numbers
        self.gettime = self._function("clock_gettime", ctypes.c_int, ctypes.c_void_p)
        self.of_day = self._function("gettimeofday", ctypes.c_void_p, ctypes.c_void_p)
        self.time = self._function("time", ctypes.c_void_p)

    def _function(self, name: str, *arguments: type) -> Callable[..., int]:
        return ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)(self._address + code.ENTRIES[name])

    def read(self, which: int) -> int:
        told = Spec()
        assert self.gettime(which, ctypes.addressof(told)) & 0xFFFFFFFF == 0
        assert 0 <= told.rest < 1_000_000_000
        return told.seconds * 1_000_000_000 + told.rest


def own_vdso() -> tuple[int, bytes]:
    """Where the vDSO of this process is, and its content."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            low, high = (int(word, 16) for word in line.split()[0].split("-"))
            return low, ctypes.string_at(low, high - low)
    raise AssertionError("no vDSO")


def own_clock_gettime() -> int:
    start, image = own_vdso()
    found = vdso(image)
    return start + found.bias + found.symbols["__vdso_clock_gettime"].address


@pytest.fixture(params=[1 / 8, 1.0, 20.0])
def page(request: pytest.FixtureRequest) -> TimePage:
    this_architecture()
    return TimePage.create(request.param)


@pytest.mark.parametrize("jump", [0, 12_345_678_901, 400 * 86_400 * 10**9])
@pytest.mark.parametrize("which", [REALTIME, MONOTONIC])
def test_the_code_tells_the_time_of_the_page(page: TimePage, jump: int, which: int) -> None:
    clock = Clock(page)
    page.jump(jump)
    read = page.wall_ns if which == REALTIME else page.monotonic_ns
    before = read()
    seen = clock.read(which)
    assert before <= seen <= read()


def test_other_clocks_and_wrong_ones_are_the_kernels(page: TimePage) -> None:
    clock = Clock(page)
    page.jump(10**15)
    before = time.process_time_ns()
    assert before <= clock.read(PROCESS_TIME) <= time.process_time_ns()
    assert clock.gettime(99, ctypes.addressof(Spec())) & 0xFFFFFFFF != 0
    for which in (RAW, COARSE, BOOTTIME):
        assert clock.read(which) > 10**15


def test_gettimeofday_and_time_are_in_microseconds_and_seconds(page: TimePage) -> None:
    clock = Clock(page)
    page.jump(5 * 10**11)
    told = Spec()
    before = page.wall_ns()
    assert clock.of_day(ctypes.addressof(told), None) == 0
    after = page.wall_ns()
    assert before // 1000 <= told.seconds * 1_000_000 + told.rest <= after // 1000
    stored = ctypes.c_int64()
    assert clock.time(ctypes.addressof(stored)) == stored.value
    assert after // 10**9 <= stored.value <= page.wall_ns() // 10**9
    assert clock.time(None) == pytest.approx(stored.value, abs=1)
    assert clock.of_day(None, None) == 0


def test_time_never_goes_back(page: TimePage) -> None:
    clock = Clock(page)
    seen = []
    for _ in range(300):
        seen += [clock.read(MONOTONIC), page.monotonic_ns()]
        page.jump(3)
    assert seen == sorted(seen)


def test_the_code_is_what_its_source_assembles_to(tmp_path: Path) -> None:
    if not shutil.which("as") or not shutil.which("objcopy"):
        pytest.skip("no assembler on this machine")
    source = Path(timewarp.__file__).parent / "clock_x86_64.s"
    made, binary = tmp_path / "clock.o", tmp_path / "clock.bin"
    subprocess.run(["as", "-o", made, source], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, binary], check=True)
    assert binary.read_bytes() == code.CODE
    symbols = subprocess.run(["nm", made], check=True, capture_output=True, text=True).stdout
    places = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}
    assert {name: places[name] for name in code.ENTRIES} == code.ENTRIES
