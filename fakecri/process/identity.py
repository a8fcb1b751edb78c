"""Who a process is, as the kernel has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Identity:
    """User and groups of a process; `groups` as the kernel lists them: sorted, with `gid`."""

    uid: int
    gid: int
    groups: tuple[int, ...]


ROOT: Final = Identity(0, 0, (0,))
