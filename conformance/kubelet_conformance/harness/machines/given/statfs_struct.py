"""What statfs(2) says, as the bytes of the kernel's structure. Pure.

All numbers have 64 bits, on x86-64 and arm64 alike.
"""

from __future__ import annotations

import struct
from typing import Final

from kubeobjects.machine import FilesystemStats

EXT4: Final = 0xEF53
TMPFS: Final = 0x01021994
CGROUP_V1: Final = 0x0027E0EB
CGROUP_V2: Final = 0x63677270
LONGEST_NAME: Final = 255
_STRUCT: Final = struct.Struct("=qqQQQQQiiqqq4q")
_BLOCK_SIZES: Final = (4096, 512, 1)


def of_disk(found: FilesystemStats) -> bytes:
    """Of a disk; blocks are of 4096 bytes, or smaller where the sizes are no multiple of that."""
    sizes = (found.capacity_bytes, found.available_bytes)
    block = next(size for size in _BLOCK_SIZES if not any(n % size for n in sizes))
    blocks, free = (size // block for size in sizes)
    return _packed(EXT4, block, (blocks, free), (found.inodes, found.inodes_free))


def of_nothing(magic: int) -> bytes:
    """Of a file system without space, such as the kernel's own; `magic`: its type."""
    return _packed(magic, _BLOCK_SIZES[0], (0, 0), (0, 0))


def _packed(magic: int, block: int, blocks: tuple[int, int], inodes: tuple[int, int]) -> bytes:
    """`blocks`, `inodes`: all, and the free ones."""
    free = blocks[1]
    return _STRUCT.pack(
        magic, block, blocks[0], free, free, *inodes, 0, 0, LONGEST_NAME, block, 0, 0, 0, 0, 0
    )
