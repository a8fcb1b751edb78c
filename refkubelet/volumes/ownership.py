"""Gives all files of a volume to the pod's group (fsGroup; NODE-212).

What must never happen here: a link is followed.
Upstream: pkg/volume/volume_linux.go.
"""

from __future__ import annotations

import logging
import os
import stat
from typing import Final

from refkubelet.model.objects import Pod

log = logging.getLogger(__name__)

READ_WRITE: Final = 0o660
READ_ONLY: Final = 0o440
DIRECTORY: Final = stat.S_ISGID | 0o110
ON_ROOT_MISMATCH: Final = "OnRootMismatch"


def fs_group(pod: Pod) -> int | None:
    """The group to which the pod's volumes belong."""
    context = pod.spec.securityContext
    return context.fsGroup if context is not None else None


def change_policy(pod: Pod) -> str | None:
    """Whether the group is given to all that is in a volume at every mount, or only where the top
    directory lacks it."""
    context = pod.spec.securityContext
    return context.fsGroupChangePolicy if context is not None else None


def group_mode(mode: int, *, read_only: bool) -> int:
    """The mode that a file or directory of that mode gets: the group may do what the volume is
    for, and what is made in a directory belongs to the group.

    >>> oct(group_mode(0o100600, read_only=True)), oct(group_mode(0o40755, read_only=False))
    ('0o640', '0o2775')
    """
    added = READ_ONLY if read_only else READ_WRITE
    return stat.S_IMODE(mode) | added | (DIRECTORY if stat.S_ISDIR(mode) else 0)


def must_change(found: os.stat_result, group: int, policy: str | None, *, read_only: bool) -> bool:
    """Whether a volume whose top directory is so has to be walked through. With the policy
    OnRootMismatch it need not, if that directory has the group and the mode already."""
    if policy != ON_ROOT_MISMATCH or not stat.S_ISDIR(found.st_mode):
        return True
    wanted = (READ_ONLY if read_only else READ_WRITE) | DIRECTORY
    return found.st_gid != group or found.st_mode & wanted != wanted


def give_to_group(
    directory: str, group: int | None, *, read_only: bool, policy: str | None = None
) -> None:
    """Give the volume and all below it to the group, the deepest first. What fails is only logged;
    None: nothing changes."""
    if group is None:
        return
    try:
        if not must_change(os.stat(directory), group, policy, read_only=read_only):
            return
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        log.warning("cannot make group %d the owner of volume %s: %s", group, directory, error)
        return
    try:
        for above, directories, files, descriptor in os.fwalk(".", topdown=False, dir_fd=top):
            for name in (*files, *directories):
                shown = os.path.normpath(os.path.join(directory, above, name))
                _give(name, descriptor, group, read_only=read_only, shown=shown)
        _give(".", top, group, read_only=read_only, shown=directory)
    finally:
        os.close(top)


def _give(name: str, above: int, group: int, *, read_only: bool, shown: str) -> None:
    try:
        place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            mode = os.fstat(place).st_mode
            os.chown(name, -1, group, dir_fd=above, follow_symlinks=False)
            if not stat.S_ISLNK(mode):
                os.chmod(f"/proc/self/fd/{place}", group_mode(mode, read_only=read_only))
        finally:
            os.close(place)
    except OSError as error:
        log.warning("cannot make group %d the owner of %s: %s", group, shown, error)
