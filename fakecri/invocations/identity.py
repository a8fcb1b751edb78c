"""Who the processes of a container are: user, group and supplemental groups (CRI-084).

The users of the fake's images are those of `PASSWD` and `GROUP`. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fakecri.core.objects import Container

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


def identity_of(container: Container) -> Identity:
    """What the create request says, else the image, else root; a known user brings its group."""
    security = container.config.linux.security_context
    uid = container.image_uid
    if security.HasField("run_as_user"):
        uid = security.run_as_user.value
    elif security.run_as_username:
        names = {name: number for number, name in USERS.items()}
        uid = names.get(security.run_as_username, 0)
    gid = uid if uid in USERS else 0
    if security.HasField("run_as_group"):
        gid = security.run_as_group.value
    return Identity(uid, gid, tuple(sorted({gid, *security.supplemental_groups})))
