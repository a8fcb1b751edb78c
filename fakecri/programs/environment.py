"""What a program finds in a container: its user and its environment (CRI-084). Pure."""

from __future__ import annotations

from typing import Final

from fakecri.core.objects import Container
from fakecri.invocations.identity import USERS, Identity

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


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


def env_of(container: Container, *, tty: bool = False) -> dict[str, str]:
    """The environment of a program in a container."""
    env = {"PATH": PATH, "HOSTNAME": container.sandbox.config.hostname or container.pod.name}
    env["HOME"] = identity_of(container).home
    env |= {"TERM": "xterm"} if tty else {}
    return env | {v.key: v.value.decode("utf-8", "replace") for v in container.config.envs}
