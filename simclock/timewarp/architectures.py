"""What differs between machines: registers, numbers of system calls, the code of the clock."""

from __future__ import annotations

import os
import platform
from typing import Final, NamedTuple

from simclock.timewarp import clock_x86_64
from simclock.timewarp.refusal import CannotWarp


class SystemCalls(NamedTuple):
    """Numbers of system calls."""

    mmap: int
    close: int
    tgkill: int
    pidfd_open: int
    pidfd_getfd: int
    epoll_waits: frozenset[int]
    """Calls that sleep with a time-out in milliseconds as their fourth argument."""
    waits: frozenset[int]
    """Calls in which a thread waits for others, and does not go on by itself."""
    child_waits: frozenset[int]
    """Calls that wait for a child process."""


class Architecture(NamedTuple):
    """One machine. Registers are numbered as in the kernel's user_regs_struct."""

    name: str
    registers: int
    """How many registers of 8 bytes there are."""
    pc: int
    sp: int
    call_number: tuple[int, ...]
    """The registers that take the number of a system call; those after the first are set to -1
    when a function is called instead."""
    result: int
    arguments: tuple[int, ...]
    """The registers of a system call's arguments."""
    function_arguments: tuple[int, ...]
    syscall_instruction: bytes
    symbols: tuple[str, ...]
    """How the vDSO names its functions; `%s` is the plain name."""
    calls: SystemCalls
    code: bytes
    entries: dict[str, int]
    original_at: int
    page: int


# r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss ...
_RAX, _RDX, _RSI, _RDI, _ORIG_RAX, _RIP, _RSP = 10, 12, 13, 14, 15, 16, 19
_R10, _R9, _R8, _RCX = 7, 8, 9, 11

X86_64: Final = Architecture(
    name="x86_64",
    registers=27,
    pc=_RIP,
    sp=_RSP,
    call_number=(_RAX, _ORIG_RAX),
    result=_RAX,
    arguments=(_RDI, _RSI, _RDX, _R10, _R8, _R9),
    function_arguments=(_RDI, _RSI, _RDX, _RCX),
    syscall_instruction=b"\x0f\x05",
    symbols=("%s", "__vdso_%s"),
    calls=SystemCalls(
        mmap=9,
        close=3,
        tgkill=234,
        pidfd_open=434,
        pidfd_getfd=438,
        epoll_waits=frozenset({232, 281}),
        # read, poll, select, accept, recvfrom, recvmsg, futex, epoll_wait, pselect6, ppoll,
        # epoll_pwait, accept4, rt_sigtimedwait, epoll_pwait2
        waits=frozenset({0, 7, 23, 43, 45, 47, 202, 232, 270, 271, 281, 288, 128, 441}),
        child_waits=frozenset({61, 247}),  # wait4, waitid
    ),
    code=clock_x86_64.CODE,
    entries=clock_x86_64.ENTRIES,
    original_at=clock_x86_64.ORIGINAL_AT,
    page=clock_x86_64.PAGE,
)
ARCHITECTURES: Final = {X86_64.name: X86_64}


def this_architecture() -> Architecture:
    """That of this machine. Raises: CannotWarp when there is no clock for it."""
    name = platform.machine()
    if os.name != "posix" or platform.system() != "Linux":
        raise CannotWarp(f"warped time needs Linux; this is {platform.system()}")
    if name not in ARCHITECTURES:
        supported = ", ".join(ARCHITECTURES)
        raise CannotWarp(f"warped time is there for {supported} only; this machine is {name}")
    return ARCHITECTURES[name]
