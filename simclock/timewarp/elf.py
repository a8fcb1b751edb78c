"""What is read from ELF files: whether a program is Go and which, and the vDSO's clock functions.

Pure: it is given bytes.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from simclock.timewarp.refusal import CannotWarp

MACHINES: Final = {62: "x86_64", 183: "aarch64", 3: "i386", 40: "arm", 243: "riscv64", 22: "s390x"}
BUILD_INFO: Final = b"\xff Go buildinf:"
BUILD_INFO_STEP: Final = 16
"""Build information begins at a multiple of this."""
PT_LOAD, PT_DYNAMIC = 1, 2
DT_STRTAB, DT_SYMTAB = 5, 6
DYNAMIC_ENTRY, SYMBOL_SIZE, PROGRAM_HEADER = 16, 24, 56
WRITABLE: Final = 2
Image = bytes | mmap.mmap
OLDEST_GO: Final = (1, 14)
"""From here on all timers of a Go program sleep in one system call, in epoll."""


class GoProgram(NamedTuple):
    """A program built by Go. `version`: as the compiler tells it, such as `go1.24.1`; "" when it is
    told in a way that only Go older than 1.18 has."""

    machine: str
    version: str


class Symbol(NamedTuple):
    """A function in the table of the vDSO. `value_at`: where its address stands in the image;
    `address`: what stands there, counted from `Vdso.bias`."""

    value_at: int
    address: int


class Vdso(NamedTuple):
    """The vDSO of a process. `bias`: what is added to addresses in it, counted from its start, to
    get offsets from its start."""

    bias: int
    symbols: dict[str, Symbol]


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    size: int


def machine_of(image: Image, name: str) -> str:
    """The machine that an ELF file is for. Raises: CannotWarp for other files."""
    if image[:4] != b"\x7fELF":
        kind = "a script" if image[:2] == b"#!" else "no ELF file"
        raise CannotWarp(f"{name} is {kind}; wanted a program built by Go")
    if image[4] != 2 or image[5] != 1:
        raise CannotWarp(f"{name} is not a 64-bit little-endian program")
    (number,) = struct.unpack_from("<H", image, 18)
    return MACHINES.get(number, f"machine {number}")


def go_program(image: Image, name: str) -> GoProgram:
    """What Go says of the program with that content; `name` is for messages. Raises: CannotWarp
    when it was not built by Go, or by one that is too old."""
    machine = machine_of(image, name)
    at = _build_info(image)
    if at is None:
        raise CannotWarp(
            f"{name} was not built by Go: only Go programs do all their sleeping in one place"
        )
    version = _version(image, at)
    number = re.match(r"go(\d+)\.(\d+)", version)
    if number is not None and tuple(map(int, number.groups())) < OLDEST_GO:
        oldest = ".".join(map(str, OLDEST_GO))
        raise CannotWarp(f"{name} was built by {version}; wanted Go {oldest} or newer")
    return GoProgram(machine, version)


def _build_info(image: Image) -> int | None:
    """Where Go's build information is: in a writable segment, at its beginning but for what a
    linker puts first."""
    for segment in _segments(image):
        if segment.kind == PT_LOAD and segment.flags & WRITABLE:
            at = image.find(BUILD_INFO, segment.offset, segment.offset + segment.size)
            while at >= 0:
                if (at - segment.offset + segment.address) % BUILD_INFO_STEP == 0:
                    return at
                at = image.find(BUILD_INFO, at + 1, segment.offset + segment.size)
    return None


def _version(image: Image, at: int) -> str:
    """The compiler's version, which follows from Go 1.18 on; before, there are pointers to it."""
    if not image[at + 15] & 2:
        return ""
    length, at = _varint(image, at + 32)
    return image[at : at + length].decode("utf-8", "replace")


def _varint(image: Image, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first; and what follows it."""
    value = shift = 0
    while True:
        byte = image[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _segments(image: Image) -> Iterator[_Segment]:
    (start,) = struct.unpack_from("<Q", image, 32)
    (count,) = struct.unpack_from("<H", image, 56)
    for number in range(count):
        kind, flags, offset, address, _, size, _, _ = struct.unpack_from(
            "<IIQQQQQQ", image, start + PROGRAM_HEADER * number
        )
        yield _Segment(kind, flags, offset, address, size)


def vdso(image: bytes) -> Vdso:
    """The functions of the vDSO with that content. Raises: CannotWarp when it has no table."""
    segments = list(_segments(image))
    bias = next((s.offset - s.address for s in segments if s.kind == PT_LOAD), None)
    dynamic = next((s.offset for s in segments if s.kind == PT_DYNAMIC), None)
    if bias is None or dynamic is None:
        raise CannotWarp("the kernel's vDSO has no table of symbols, so its clocks are not found")
    tags = {}
    for tag, value in struct.iter_unpack("<QQ", image[dynamic : dynamic + DYNAMIC_ENTRY * 64]):
        if tag == 0:
            break
        tags[tag] = value
    names, symbols = tags[DT_STRTAB] + bias, tags[DT_SYMTAB] + bias
    symbols_by_name = {}
    # The table does not tell its length: it ends where the names begin.
    for at in range(symbols, names - SYMBOL_SIZE + 1, SYMBOL_SIZE):
        name, _, _, _, address, _ = struct.unpack_from("<IBBHQQ", image, at)
        text = image[names + name : image.index(b"\0", names + name)].decode("ascii", "replace")
        if text:
            symbols_by_name[text] = Symbol(at + 8, address)
    return Vdso(bias, symbols_by_name)
