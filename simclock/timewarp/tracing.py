"""A process under ptrace: stop it, read and write its memory, let it make calls."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Sequence
from typing import Final

from simclock.timewarp.architectures import Architecture
from simclock.timewarp.refusal import CannotWarp

SEIZE, CONTINUE, STEP, DETACH = 0x4206, 7, 9, 17
POKE, GET_REGISTERS, SET_REGISTERS = 5, 0x4204, 0x4205
KILL_WITH_TRACER, STOP_AT_EXEC, EXEC_STOP = 0x100000, 0x10, 4
GENERAL_REGISTERS: Final = 1  # NT_PRSTATUS
HIGHEST_ERRNO: Final = 4095
WORD: Final = 8

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


class _Buffer(ctypes.Structure):
    """struct iovec"""

    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> None:
    """Raises: OSError."""
    if _libc.ptrace(request, pid, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Traced:
    """A process that this one traces, from `seize` to `detach`. It is killed if this one ends in
    between. Signals for it are kept back and sent again at the end."""

    def __init__(self, pid: int, architecture: Architecture) -> None:
        self.pid = pid
        self._machine = architecture
        self._signals: list[int] = []
        self._memory = -1

    def seize(self) -> None:
        """Begin to trace it; it goes on. Raises: CannotWarp when that is not allowed."""
        try:
            _ptrace(SEIZE, self.pid, 0, KILL_WITH_TRACER | STOP_AT_EXEC)
        except OSError as error:
            raise CannotWarp(
                f"ptrace of the own program is not allowed ({error.strerror}): wanted root, "
                "CAP_SYS_PTRACE, or kernel.yama.ptrace_scope below 2 and no other tracer"
            ) from None

    def to_exec(self) -> bool:
        """Wait until it has become another program, and stop it before its first instruction;
        False when it ended before."""
        while True:
            _, status = os.waitpid(self.pid, 0)
            if not os.WIFSTOPPED(status):
                return False
            if status >> 8 == signal.SIGTRAP | EXEC_STOP << 8:
                break
            _ptrace(CONTINUE, self.pid, 0, os.WSTOPSIG(status))
        self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self.step()  # the end of execve still writes a register
        return True

    def step(self) -> None:
        """Let it execute one instruction. Raises: CannotWarp when it ends."""
        while True:
            _ptrace(STEP, self.pid)
            _, status = os.waitpid(self.pid, 0)
            if not os.WIFSTOPPED(status):
                raise CannotWarp("the program was killed before its start")
            if os.WSTOPSIG(status) == signal.SIGTRAP:
                return
            self._signals.append(os.WSTOPSIG(status))

    def detach(self) -> None:
        """Let it run, untraced."""
        os.close(self._memory)
        _ptrace(DETACH, self.pid)
        for number in self._signals:
            os.kill(self.pid, number)

    # -- memory and registers --------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """So much of its memory. Raises: OSError."""
        return os.pread(self._memory, size, address)

    def write(self, address: int, content: bytes) -> None:
        """Change its memory, also where it is read-only; other processes do not see it. `content`:
        filled up with zeros to a multiple of eight bytes."""
        content += bytes(-len(content) % WORD)
        for place, (word,) in enumerate(struct.iter_unpack("<Q", content)):
            _ptrace(POKE, self.pid, address + place * WORD, word)

    def registers(self) -> list[int]:
        """Its registers, in the order of the architecture."""
        space = (ctypes.c_uint64 * self._machine.registers)()
        buffer = _Buffer(ctypes.addressof(space), ctypes.sizeof(space))
        _ptrace(GET_REGISTERS, self.pid, GENERAL_REGISTERS, ctypes.addressof(buffer))
        return list(space)

    def set_registers(self, values: Sequence[int]) -> None:
        """Set all registers."""
        space = (ctypes.c_uint64 * self._machine.registers)(*(v & (1 << 64) - 1 for v in values))
        buffer = _Buffer(ctypes.addressof(space), ctypes.sizeof(space))
        _ptrace(SET_REGISTERS, self.pid, GENERAL_REGISTERS, ctypes.addressof(buffer))

    # -- calls -----------------------------------------------------------------------------------

    def system_call(self, gate: int, number: int, *arguments: int) -> int:
        """Let it make a system call, with the instruction for that at `gate`. Returns the result.
        Raises: OSError."""
        machine, saved = self._machine, self.registers()
        values = list(saved)
        values[machine.pc] = gate
        values[machine.call_number[0]] = number
        for register in machine.call_number[1:]:
            values[register] = -1
        for register, value in zip(machine.arguments, arguments, strict=False):
            values[register] = value
        self.set_registers(values)
        self.step()
        result = ctypes.c_int64(self.registers()[machine.result]).value
        self.set_registers(saved)
        if -HIGHEST_ERRNO <= result < 0:
            raise OSError(-result, f"{os.strerror(-result)} (system call {number} in the program)")
        return result

    def function_call(self, address: int, *arguments: int, until: int, most_steps: int) -> int:
        """Let it call a function, step by step until it returns to the address `until`, where
        nothing is executed. Returns the result. Raises: CannotWarp after `most_steps`."""
        machine, saved = self._machine, self.registers()
        values = list(saved)
        top = (values[machine.sp] - 1024) // 16 * 16 - WORD
        self.write(top, struct.pack("<Q", until))
        values[machine.sp], values[machine.pc] = top, address
        for register in machine.call_number[1:]:
            values[register] = -1
        for register, value in zip(machine.function_arguments, arguments, strict=False):
            values[register] = value
        self.set_registers(values)
        for _ in range(most_steps):
            self.step()
            values = self.registers()
            if values[machine.pc] == until:
                self.set_registers(saved)
                return values[machine.result]
        raise CannotWarp("the clock in the program does not come back")
