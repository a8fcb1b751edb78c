"""The user and the groups of a process, and which users there are (CRI-084).

The users of the fake's images are those of `PASSWD` and `GROUP`. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PASSWD: Final = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
GROUP: Final = "root:x:0:\nnogroup:x:65534:\n"
USERS: Final = {0: "root", 65534: "nobody"}
GROUPS: Final = {0: "root", 65534: "nogroup"}
_HOMES: Final = {0: "/root"}


@dataclass(frozen=True, slots=True)
class Identity:
    """`groups` as the kernel lists them: sorted, the main one among them."""

    uid: int
    gid: int
    groups: tuple[int, ...]

    @property
    def home(self) -> str:
        return _HOMES.get(self.uid, "/")


ROOT: Final = Identity(0, 0, (0,))
