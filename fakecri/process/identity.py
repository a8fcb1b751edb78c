"""Who a process is, as the kernel has it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Identity(Struct, frozen=True):
    """User and groups of a process; `groups` as the kernel lists them: sorted, with `gid`."""

    uid: int
    gid: int
    groups: tuple[int, ...]


ROOT: Final = Identity(0, 0, (0,))
