"""The cgroup trees that a kubelet under test works in: a fake machine's, or those of this machine.

A kubelet kills processes below its cgroupRoot that it does not know (CG-043), so on a real machine
each case has a group of its own for that. Processes elsewhere are not touched, and at the end the
group is removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from kubelet_conformance.harness.machines.idle_processes import (
    FakeProcess,
    IdleProcess,
    SleepProcess,
)

CGROUPS: Final = Path("/sys/fs/cgroup")
_GO_WITHIN_S: Final = 5.0


class CgroupTrees:
    """The trees of the controllers below `root` (/sys/fs/cgroup): one with v2, several with v1.

    `driver` is the kubelet's cgroupDriver, `top` its cgroupRoot. Groups are named by their words
    below `top`. `start` starts a process on that machine.
    """

    def __init__(
        self,
        root: Any,
        version: Literal[1, 2],
        driver: str,
        top: str = "",
        *,
        start: Callable[[], IdleProcess] = SleepProcess,
    ) -> None:
        self.version = version
        self.processes: list[IdleProcess] = []
        self._start = start
        self._root = root
        self._driver = driver
        self._top = [word for word in top.split("/") if word]

    def path(self, *words: str) -> str:
        """The path of a group in every tree, as the driver writes it (CG-010).

        >>> CgroupTrees(Path(), 2, "systemd").path("kubepods", "pod1-2")
        '/kubepods.slice/kubepods-pod1_2.slice'
        """
        names = [*self._top, *words]
        if self._driver != "systemd":
            return "/" + "/".join(names)
        escaped = [name.replace("-", "_") for name in names]
        return "/" + "/".join("-".join(escaped[: n + 1]) + ".slice" for n in range(len(names)))

    def all(self) -> list[Any]:
        """The top directories of all trees."""
        if self.version == 2:
            return [self._root]
        directories = [d for d in self._root.iterdir() if (d / "cgroup.procs").exists()]
        return sorted(directories, key=lambda d: str(d.name))

    def start_process(self) -> IdleProcess:
        """Start a process that does nothing; it ends with the case at the latest."""
        self.processes.append(self._start())
        return self.processes[-1]

    def tree(self, controller: str) -> Any:
        """The top directory of the tree with that controller."""
        return self._root / controller if self.version == 1 else self._root

    def directory(self, controller: str, *words: str) -> Any:
        """The directory of a group in the tree with that controller."""
        return self.tree(controller) / self.path(*words)[1:]


def trees_of(machine: Any, config: Mapping[str, Any]) -> CgroupTrees:
    """The trees of a fake machine whose kubelet has that configuration."""
    return CgroupTrees(
        machine.cgroup_root(),
        machine.cgroup_version(),
        driver=config.get("cgroupDriver", "cgroupfs"),
        top=config.get("cgroupRoot", ""),
        start=partial(FakeProcess, machine),
    )


def remove_group(directory: Any, refuge: Any) -> None:
    """Remove a group, if it is there, with all below it; its processes move to `refuge`."""
    if not directory.exists():
        return
    for child in [d for d in directory.iterdir() if d.is_dir()]:
        remove_group(child, refuge)
    for pid in _pids(directory):
        with contextlib.suppress(ProcessLookupError):
            (refuge / "cgroup.procs").write_text(pid)
    directory.rmdir()


def machine_version() -> Literal[1, 2] | None:
    """The cgroup version of this machine; None where the suite cannot make groups: that needs root
    and writable trees."""
    if os.geteuid() != 0 or not CGROUPS.is_dir() or not os.access(CGROUPS, os.W_OK):
        return None
    if not (CGROUPS / "cgroup.controllers").exists():
        return 1
    # In a container the root may be a group with processes: nothing can be enabled below it.
    free = not _pids(CGROUPS) or not (CGROUPS / "cgroup.type").exists()
    return 2 if free else None


@contextlib.asynccontextmanager
async def own_groups(name: str) -> AsyncIterator[CgroupTrees]:
    """A new group `/<name>` in every tree of this machine, for the cgroupRoot of one kubelet.

    At the end all processes below it are killed and all groups removed.

    Raises RuntimeError where the suite cannot make groups, or when a process there does not die.
    """
    version = machine_version()
    if version is None:
        raise RuntimeError("this machine's cgroups cannot be used: the case needs Feature.CGROUPS")
    trees = CgroupTrees(CGROUPS, version, driver="cgroupfs", top=name)
    tops = [tree / name for tree in trees.all()]
    try:
        for top in tops:
            top.mkdir()
            _begin(top, version)
        yield trees
    finally:
        for top in tops:
            await _end(top)
        for process in trees.processes:
            process.end()


def _begin(top: Path, version: int) -> None:
    """Set the group up as a machine is for a kubelet: with its CPUs (v1), with all controllers
    switched on (v2)."""
    if version == 2:
        controllers = (CGROUPS / "cgroup.controllers").read_text().split()
        for directory in (CGROUPS, top):
            switch = directory / "cgroup.subtree_control"
            switch.write_text(" ".join(f"+{controller}" for controller in controllers))
        return
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (top / file).exists():
            (top / file).write_text((top.parent / file).read_text())


async def _end(top: Path) -> None:
    """Kill what runs below `top` and remove it all, trying again until the kernel lets go."""
    deadline_s = asyncio.get_running_loop().time() + _GO_WITHIN_S
    while top.exists():
        with contextlib.suppress(FileNotFoundError):  # a runtime removes its own at the same time
            _remove_below(top)
        if top.exists():
            if asyncio.get_running_loop().time() > deadline_s:
                raise RuntimeError(f"{top} stays busy: its processes do not die")
            await asyncio.sleep(0.02)


def _remove_below(top: Path) -> None:
    """Kill what runs below `top`, and remove the groups that can be removed now."""
    for directory in sorted([top, *top.rglob("*/")], reverse=True):
        try:
            _kill_in(directory)
            directory.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENODEV):  # ENODEV: it goes just now
                raise


def _kill_in(directory: Path) -> None:
    for pid in _pids(directory):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _pids(directory: Any) -> list[str]:
    """The processes of a group, without those of other pid namespaces: they read 0, which as an
    argument of kill would mean this process."""
    return [pid for pid in (directory / "cgroup.procs").read_text().split() if pid != "0"]
