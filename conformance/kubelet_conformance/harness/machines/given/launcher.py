"""Becomes a program that sees the machine of a plan: run as `python launcher.py PLAN PROGRAM ...`.

It makes a mount namespace of its own, binds the files of the plan over those of this machine, gets
a filter by which some of its system calls are answered elsewhere (`answers`), and executes the
program; the process ID stays. It imports only what Python has, and stops with one line on standard
error where it is refused.

The plan is a JSON object: `binds`, pairs of what is to be seen and where, in which `{pid}` is the
process; `empty`, directories that are to be empty first; `directories` to make after that;
`devices`, a directory of devices (`place`) in which some are to be links that lead elsewhere
(`links`, name -> target), the others as they are (they are bound to `real`); `shared`, mounts below
which what the program mounts is seen by others, too; `socket`, where the listener goes.
"""

import array
import ctypes
import json
import os
import platform
import socket
import struct
import sys
from typing import Any, NamedTuple

NEW_MOUNTS = 0x20000
BIND, RECURSIVE, SLAVE = 0x1000, 0x4000, 1 << 19
SET_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
CALL_AT, MACHINE_AT = 0, 4
ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
FAILED = 70


class Numbers(NamedTuple):
    """What differs between machines: how the kernel calls it, and numbers of system calls."""

    audit: int
    statfs: int
    fstatfs: int
    kill: int
    seccomp: int
    pidfd_open: int = 434


MACHINES = {
    "x86_64": Numbers(audit=0xC000003E, statfs=137, fstatfs=138, kill=62, seccomp=317),
    "aarch64": Numbers(audit=0xC00000B7, statfs=43, fstatfs=44, kill=129, seccomp=277),
}


class Refused(Exception):
    """The machine cannot be given; the text says why."""


class _Filter(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def numbers_of_this_machine() -> Numbers:
    """Raises Refused for a machine whose system calls are not known."""
    name = platform.machine()
    if name not in MACHINES:
        raise Refused(f"this machine is {name}; wanted {' or '.join(MACHINES)}")
    return MACHINES[name]


def filter_program(numbers: Numbers) -> bytes:
    """The filter, in instructions of the kernel: calls of statfs, fstatfs, kill and pidfd_open are
    told, all others go on."""

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("=HBBI", code, then, otherwise, value)

    calls = (numbers.statfs, numbers.fstatfs, numbers.kill, numbers.pidfd_open)
    tests = [step(JUMP_IF_EQUAL, number, len(calls) - place) for place, number in enumerate(calls)]
    return b"".join(
        (
            step(LOAD, MACHINE_AT),
            step(JUMP_IF_EQUAL, numbers.audit, 0, 1 + len(calls)),
            step(LOAD, CALL_AT),
            *tests,
            step(RETURN, ALLOW),
            step(RETURN, NOTIFY),
        )
    )


def see(plan: Any) -> None:
    """Make the namespace and its mounts. Raises Refused."""
    _require(_libc().unshare(NEW_MOUNTS), "a mount namespace of its own")
    with open("/proc/self/mountinfo") as file:
        shared = [line.split()[4] for line in file if " shared:" in line]
    for place in shared:
        if place not in plan["shared"]:
            _mount(None, place, SLAVE, f"mounts of its own below {place}")
    for place in plan["empty"]:
        _mount("tmpfs", place, 0, f"an empty {place}")
    for place in plan["directories"]:
        os.mkdir(place)
    for source, place in plan["binds"]:
        place = place.format(pid=os.getpid())
        _mount(source, place, BIND, f"{source} at {place}")
    exchange_devices(plan["devices"])


def exchange_devices(devices: Any) -> None:
    """Put links in the place of some devices. Raises Refused."""
    place, real, links = devices["place"], devices["real"], devices["links"]
    _mount(place, real, BIND | RECURSIVE, f"{place} at {real}")
    _mount("tmpfs", place, 0, f"another {place}")
    for name in os.listdir(real):
        if name not in links:
            os.symlink(os.path.join(real, name), os.path.join(place, name))
    for name, target in links.items():
        os.symlink(target, os.path.join(place, name))


def listener() -> int:
    """Get the filter; returns the descriptor at which calls are answered. Raises Refused."""
    numbers = numbers_of_this_machine()
    program = filter_program(numbers)
    code = ctypes.create_string_buffer(program, len(program))
    filter_at = _Filter(len(program) // 8, ctypes.addressof(code))
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER):  # before Linux 5.19 there is one
        fd = int(_libc().syscall(numbers.seccomp, SET_FILTER, flags, ctypes.byref(filter_at)))
        if fd >= 0:
            return fd
    _require(fd, "a filter for system calls")
    return fd


def hand_over(descriptor: int, place: str) -> None:
    """Send the descriptor to whoever listens at the socket."""
    rights = array.array("i", [descriptor])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(place)
        connection.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mount(source: "str | None", place: str, flags: int, what: str) -> None:
    kind = b"tmpfs" if source == "tmpfs" else None
    encoded = None if source is None else os.fsencode(source)
    _require(_libc().mount(encoded, os.fsencode(place), kind, ctypes.c_ulong(flags), None), what)


def _require(result: int, what: str) -> None:
    if result < 0:
        raise Refused(f"no {what}: {os.strerror(ctypes.get_errno())}")


def main() -> None:
    """See the head of this module."""
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    try:
        see(plan)
        hand_over(listener(), plan["socket"])
    except (Refused, OSError) as problem:
        print(f"the machine cannot be given: {problem}", file=sys.stderr)
        sys.exit(FAILED)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
