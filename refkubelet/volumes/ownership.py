"""Gives all files of a volume to the pod's group (fsGroup; NODE-212).

Containers may have the volume while it is walked through: it is published again and again, other
pods use it, the kubelet was restarted. What must never happen here: a link is followed, a wait for
what a container has put there, more than one entry changed at a step.
Upstream: pkg/volume/volume_linux.go.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Generator
from contextlib import ExitStack
from typing import Final

from refkubelet.host.untrusted_files import (
    Met,
    change_group,
    change_mode,
    opened_directory,
    opened_place,
    shown_path,
    walked,
)
from refkubelet.model.objects import Pod
from simclock import aside

log = logging.getLogger(__name__)

READ_WRITE: Final = 0o660
READ_ONLY: Final = 0o440
DIRECTORY: Final = stat.S_ISGID | 0o110
MOST_TOLD: Final = 10
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
    mode_bits = (READ_ONLY if read_only else READ_WRITE) | DIRECTORY
    return found.st_gid != group or found.st_mode & mode_bits != mode_bits


async def give_to_group(
    directory: str, group: int | None, *, read_only: bool, policy: str | None = None
) -> None:
    """Give the volume and all below it to the group, the top last: a walk that did not come to its
    end is not taken for one that did. What fails is only logged; None: nothing changes."""
    if group is not None:
        work = giving(directory, group, read_only=read_only, policy=policy)
        try:
            await aside(f"the owner of {directory}", work)
        except OSError as error:
            _tell(group, directory, error)


def give_at_once(directory: str, group: int | None, *, read_only: bool) -> None:
    """The same for what the kubelet wrote itself, which is small."""
    if group is not None:
        for _ in giving(directory, group, read_only=read_only):
            pass


def giving(
    directory: str, group: int, *, read_only: bool, policy: str | None = None
) -> Generator[None]:
    """The same, an entry at each step."""
    refused = _Refusals(directory, group)
    try:
        with ExitStack() as stack:
            place = stack.enter_context(opened_place(directory))
            status = os.fstat(place)
            if not must_change(status, group, policy, read_only=read_only):
                return
            if stat.S_ISDIR(status.st_mode):
                top = stack.enter_context(opened_directory(directory))
                for met in walked(top, refused=refused.tell):
                    _give(met, group, read_only=read_only, refused=refused)
                    yield
            _give_place(place, group, read_only=read_only)
    except OSError as error:
        _tell(group, directory, error)
    refused.sum_up()


def _give(met: Met, group: int, *, read_only: bool, refused: _Refusals) -> None:
    try:
        with opened_place(met.name, dir_fd=met.above) as place:
            _give_place(place, group, read_only=read_only)
    except FileNotFoundError:
        return
    except OSError as error:
        refused.tell(met.path if refused.are_told else "", error)


def _give_place(place: int, group: int, *, read_only: bool) -> None:
    """Give what was opened with O_PATH, itself if it is a link; what may not be given gets its mode
    all the same. Raises OSError."""
    mode = os.fstat(place).st_mode
    try:
        change_group(place, group)
    finally:
        if not stat.S_ISLNK(mode):
            change_mode(place, group_mode(mode, read_only=read_only))


def _tell(group: int, what: str, error: OSError) -> None:
    log.warning("cannot make group %d the owner of %s: %s", group, shown_path(what), error)


class _Refusals:
    """Logs what cannot be given to the group, the first of a volume one by one."""

    def __init__(self, directory: str, group: int) -> None:
        self._directory = directory
        self._group = group
        self._count = 0

    def tell(self, path: str, error: OSError) -> None:
        self._count += 1
        if self._count <= MOST_TOLD:
            _tell(self._group, os.path.join(self._directory, path).rstrip("/"), error)

    @property
    def are_told(self) -> bool:
        """Whether the next one is logged with its path, which takes time deep down."""
        return self._count < MOST_TOLD

    def sum_up(self) -> None:
        if self._count > MOST_TOLD:
            text = "cannot make group %d the owner of %d files and directories below %s"
            log.warning(text, self._group, self._count, self._directory)
