"""Whether warped time can be had here, and for which program."""

from __future__ import annotations

import mmap
import os
import platform
import re
from typing import Final

from simclock.timewarp.architectures import Architecture, this_architecture
from simclock.timewarp.elf import GoProgram, go_program, vdso
from simclock.timewarp.refusal import CannotWarp
from simclock.timewarp.tracing import Traced

OLDEST_KERNEL: Final = (5, 6)
"""The first that lets a process have a copy of another's descriptor (pidfd_getfd)."""


def require(program: str) -> GoProgram:
    """Raise CannotWarp unless the program at that path can be in warped time on this machine;
    returns what Go says of it."""
    machine = this_architecture()
    require_kernel(platform.release())
    _require_accounts()
    require_clocks(own_vdso(), machine)
    go_program = read_program(program)
    if go_program.machine != machine.name:
        raise CannotWarp(
            f"{program} is for {go_program.machine}; wanted one for {machine.name}, as this machine"
        )
    return go_program


def why_not(program: str) -> str:
    """Why the program at that path cannot be in warped time on this machine; "" when it can. Tries
    whether ptrace is allowed, with a process of its own."""
    try:
        require(program)
        _require_ptrace(this_architecture())
    except CannotWarp as problem:
        return str(problem)
    return ""


def read_program(path: str) -> GoProgram:
    """What Go says of the program. Raises: CannotWarp."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image:
            return go_program(image, path)
    except OSError as error:
        raise CannotWarp(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # an empty file
        raise CannotWarp(f"{path} is no ELF file; wanted a program built by Go") from None


def own_vdso() -> bytes | None:
    """The vDSO that the kernel gave this process, as it gives one to every program of this machine;
    None: it gives none."""
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in maps:
            if line.endswith("[vdso]\n"):
                low, high = (int(word, 16) for word in line.split()[0].split("-"))
                memory.seek(low)
                return memory.read(high - low)
    return None


def require_clocks(image: bytes | None, machine: Architecture) -> None:
    """Raise CannotWarp unless the vDSO with that content has the clock that is to be replaced.
    Pure."""
    if image is None:
        raise CannotWarp("the kernel gives programs no vDSO, so their clocks cannot be replaced")
    names = [pattern % "clock_gettime" for pattern in machine.symbols]
    if not vdso(image).symbols.keys() & set(names):
        raise CannotWarp(
            f"the kernel's vDSO has no symbol {' or '.join(names)}, so clocks cannot be replaced"
        )


def require_kernel(release: str) -> None:
    """Raise CannotWarp for a kernel that is too old, by what `uname` tells. Pure."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is not None and tuple(map(int, numbers.groups())) < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        raise CannotWarp(f"warped time needs Linux {oldest} or newer; this is {release}")


def _require_accounts() -> None:
    """Raise CannotWarp when the kernel does not tell what threads do and how long they ran."""
    try:
        with open("/proc/self/schedstat") as file:
            ran = file.read().split()
        with open("/proc/self/syscall"):
            pass
    except OSError as error:
        raise CannotWarp(
            f"this kernel does not tell what threads do: {error.filename}: {error.strerror}"
        ) from None
    if ran == ["0", "0", "0"]:
        raise CannotWarp("this kernel does not count how long threads run (CONFIG_SCHED_INFO)")


def _require_ptrace(machine: Architecture) -> None:
    """Raise CannotWarp when a process may not trace another of the same user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent is done
        os._exit(0)
    os.close(reading)
    try:
        Traced(child, machine).seize()
    finally:
        os.close(writing)
        os.waitpid(child, 0)
