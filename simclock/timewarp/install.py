"""Put the clock of a time into a program that has not executed its first instruction yet.

Two pages are added to the program: the code of the clock, and the numbers of the time, read-only.
In the vDSO only the table of symbols is changed, in this process alone: the addresses of the clock
functions are those of our code, which calls the vDSO's own. Go and the C library look them up once,
when they start. The program's own code stays as it is.
"""

from __future__ import annotations

import struct
from typing import Final

from simclock.timewarp.architectures import Architecture
from simclock.timewarp.elf import Vdso, vdso
from simclock.timewarp.pages import TimePage
from simclock.timewarp.refusal import CannotWarp
from simclock.timewarp.tracing import Traced

VDSO_ADDRESS: Final = 33  # AT_SYSINFO_EHDR
READ, EXECUTE_READ = 1, 5
SHARED, PRIVATE, FIXED, ANONYMOUS = 1, 2, 0x10, 0x20
MOST_STEPS: Final = 5000
MONOTONIC: Final = 1


def install(program: Traced, page: TimePage, page_fd: int, machine: Architecture) -> None:
    """Do it. `page_fd`: the descriptor of the page in the program, which is closed there. Raises:
    CannotWarp, also when the clock does not tell the time of the page afterwards."""
    start, image = _vdso_of(program)
    table = vdso(image)
    gate = start + _syscall_instruction(image, machine)
    try:
        code = _map(program, gate, page_fd, machine)
    except OSError as error:
        raise CannotWarp(f"no page can be added to the program: {error.strerror}") from None
    program.write(code, machine.code)
    original = _redirect(program, start, table, code, machine)
    program.write(code + machine.original_at, struct.pack("<Q", original))
    _check(program, page, code, machine)


def _vdso_of(program: Traced) -> tuple[int, bytes]:
    """Where the program's vDSO is, and its content."""
    with open(f"/proc/{program.pid}/auxv", "rb") as file:
        vector = dict(struct.iter_unpack("<QQ", file.read()))
    start = vector.get(VDSO_ADDRESS, 0)
    with open(f"/proc/{program.pid}/maps") as file:
        for line in file:
            low, high = (int(word, 16) for word in line.split()[0].split("-"))
            if low == start:
                return start, program.read(low, high - low)
    raise CannotWarp("the kernel gives programs no vDSO, so their clocks cannot be replaced")


def _syscall_instruction(image: bytes, machine: Architecture) -> int:
    at = image.find(machine.syscall_instruction)
    if at < 0:
        raise CannotWarp("the kernel's vDSO makes no system call, so the program cannot be made to")
    return at


def _map(program: Traced, gate: int, page_fd: int, machine: Architecture) -> int:
    """Add the two pages, anywhere; returns where the code is to be. Raises: OSError."""
    calls, size = machine.calls, machine.page
    code = program.system_call(
        gate, calls.mmap, 0, 2 * size, EXECUTE_READ, PRIVATE | ANONYMOUS, -1, 0
    )
    program.system_call(gate, calls.mmap, code + size, size, READ, SHARED | FIXED, page_fd, 0)
    program.system_call(gate, calls.close, page_fd)
    return code


def _redirect(program: Traced, start: int, found: Vdso, code: int, machine: Architecture) -> int:
    """Point the symbols of the vDSO at the code; returns the address of its own clock_gettime."""
    bias = start + found.bias
    original = 0
    for function, entry in machine.entries.items():
        names = [pattern % function for pattern in machine.symbols]
        for symbol in (found.symbols[name] for name in names if name in found.symbols):
            if function == "clock_gettime":
                original = bias + symbol.address
            value = (code + entry - bias) & (1 << 64) - 1
            program.write(start + symbol.value_at, struct.pack("<Q", value))
    if not original:
        names_of = " or ".join(pattern % "clock_gettime" for pattern in machine.symbols)
        raise CannotWarp(
            f"the kernel's vDSO has no symbol {names_of}, so clocks cannot be replaced"
        )
    return original


def _check(program: Traced, page: TimePage, code: int, machine: Architecture) -> None:
    """Ask the clock in the program for the time. Raises: CannotWarp when it is not the page's."""
    timespec_at = program.registers()[machine.sp] - 4096  # a struct timespec, where no stack is yet
    before = page.monotonic_ns()
    program.function_call(
        code + machine.entries["clock_gettime"],
        MONOTONIC,
        timespec_at,
        until=code + machine.page - 1,
        most_steps=MOST_STEPS,
    )
    after = page.monotonic_ns()
    seconds, nanoseconds = struct.unpack("<qq", program.read(timespec_at, 16))
    clock_ns = seconds * 1_000_000_000 + nanoseconds
    if not before <= clock_ns <= after:
        raise CannotWarp(
            f"the clock in the program tells {clock_ns} ns; wanted {before} to {after} ns"
        )
