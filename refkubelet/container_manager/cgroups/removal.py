"""Removes a cgroup: kills its processes, then removes its directories, the deepest first.

No wait is endless: if a process cannot be killed, or has not gone after a second, the cgroup stays,
and the caller tries again later.
Rules: CG-042, CG-102. Upstream: pkg/kubelet/cm/pod_container_manager_linux.go: Destroy;
opencontainers/cgroups utils.go: RemovePath.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from refkubelet.host.machine import CgroupDir
from simclock import Clock

KILL_PASSES: Final = 5
PIECE: Final = 100
"""The number of directories that are removed before other tasks run."""
RMDIR_DELAYS_S: Final = tuple(0.001 * 2**n for n in range(10))


class CgroupError(Exception):
    """The kernel refused an operation on a cgroup; the text says what, where and why."""


def reason(error: OSError) -> str:
    """The kernel's text of the error, in lower case."""
    return (error.strerror or str(error)).lower()


async def remove_all(
    directories: Sequence[CgroupDir], kill: Callable[[int], None], clock: Clock
) -> list[CgroupDir]:
    """Kill the processes in these directories, those of one cgroup in every tree, and remove them;
    returns the directories that stay. `kill` sends SIGKILL. Raises `CgroupError` if processes
    cannot be killed."""
    remaining = [d for d in directories if _rmdir(d) != 0]
    if not remaining:
        return []
    _kill_all([pid for d in remaining for pid in _pids_below(d)], kill)
    return [d for d in remaining if not await _remove_tree(d, clock)]


def subdirectories(directory: CgroupDir, like: str = "") -> Iterator[CgroupDir]:
    """The subdirectories with `like` in their names, which avoids a stat of the many files; none if
    the directory does not exist."""
    try:
        children = list(directory.iterdir())
    except OSError:
        return
    for child in children:
        if like in child.name and child.is_dir():
            yield child


def _all_below(top: CgroupDir) -> Iterator[CgroupDir]:
    """The directory and all below it, each after the one it is in: containers may nest them as deep
    as they like."""
    unvisited = [top]
    while unvisited:
        directory = unvisited.pop()
        yield directory
        unvisited += subdirectories(directory)


def _pids_below(top: CgroupDir) -> Iterator[int]:
    """The ids of all processes in the cgroup and below; none if it is removed meanwhile."""
    for directory in _all_below(top):
        try:
            yield from [int(line) for line in (directory / "cgroup.procs").read_text().split()]
        except OSError:
            continue


def _kill_all(pids: Sequence[int], kill: Callable[[int], None]) -> None:
    """Kill these processes. Raises `CgroupError` if some cannot be killed in five passes."""
    remaining = list(dict.fromkeys(pids))
    errors: list[str] = []
    for _ in range(KILL_PASSES):
        failed, errors = [], []
        for pid in remaining:
            try:
                kill(pid)
            except OSError as error:
                failed.append(pid)
                errors.append(f"{pid}: {reason(error)}")
            except ValueError as error:  # 0: a process that this PID namespace does not show
                failed.append(pid)
                errors.append(f"{pid}: {error}")
        if not failed:
            return
        remaining = failed
    why = ", ".join(errors)
    raise CgroupError(f"failed to kill all the processes attached to the cgroup: {why}")


async def _remove_tree(top: CgroupDir, clock: Clock) -> bool:
    """Remove a directory and those below, the deepest first. False: it stays."""
    directories = list(_all_below(top))
    while directories:
        if not await _removed(directories.pop(), clock):
            return False
        if len(directories) % PIECE == PIECE - 1:
            await clock.sleep(0)
    return True


async def _removed(directory: CgroupDir, clock: Clock) -> bool:
    """Remove one directory; waits up to a second for killed processes to go (CG-102). False: it
    stays."""
    for delay_s in RMDIR_DELAYS_S:
        refused = _rmdir(directory)
        if refused != errno.EBUSY:
            return refused == 0
        await clock.sleep(delay_s)
    return _rmdir(directory) == 0


def _rmdir(directory: CgroupDir) -> int:
    """Try once to remove a directory; returns 0, also if it does not exist, or the errno."""
    try:
        directory.rmdir()
    except FileNotFoundError:
        return 0
    except OSError as error:
        return error.errno or errno.EIO
    return 0
