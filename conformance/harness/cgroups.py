"""The node's cgroups as a case sees them: the same questions for v1 and v2, either driver, the fake
kernel and this machine's.

Groups are named by their words below the kubelet's cgroup root: `("kubepods", "burstable")`. What
must never happen here: a process of somebody else is touched, or a group is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from conformance.harness.looked import looked_at

CGROUPS: Final = Path("/sys/fs/cgroup")
KUBEPODS: Final = "kubepods"
UNLIMITED_V1: Final = 1 << 62
"""Memory limits from here on are none: v1 prints the greatest number of pages."""
_GO_WITHIN_S: Final = 5.0


class NodeCgroups:
    """The groups below `root` (/sys/fs/cgroup) that the kubelet makes below `top`, its cgroupRoot.

    Values are None where the kernel has no limit. Everything raises OSError as the kernel does;
    what is not there raises FileNotFoundError.
    """

    def __init__(self, root: Any, version: Literal[1, 2], driver: str, top: str = "") -> None:
        self.version = version
        self._root = root
        self._driver = driver
        self._top = [word for word in top.split("/") if word]

    def path(self, *words: str) -> str:
        """Where the group lies below a mount, and what RunPodSandbox gets for a pod's."""
        names = [*self._top, *words]
        if self._driver != "systemd":
            return "/" + "/".join(names)
        escaped = [name.replace("-", "_") for name in names]
        return "/" + "/".join("-".join(escaped[: n + 1]) + ".slice" for n in range(len(names)))

    @looked_at
    def exists(self, *words: str) -> bool:
        """In every tree but that of the devices, which kubelets leave to the runtime (CG-044)."""
        trees = [tree for tree in self._trees() if tree.name != "devices"]
        return all((tree / self.path(*words)[1:]).exists() for tree in trees)

    @looked_at
    def is_gone(self, *words: str) -> bool:
        """In every tree."""
        return not any((tree / self.path(*words)[1:]).exists() for tree in self._trees())

    @looked_at
    def children(self, *words: str) -> list[str]:
        """The directories below, of the memory tree."""
        directory = self._in("memory", words)
        return sorted(child.name for child in directory.iterdir() if child.is_dir())

    def make(self, *words: str) -> None:
        """Make a group behind the kubelet's back, in every tree."""
        for tree in self._trees():
            (tree / self.path(*words)[1:]).mkdir(parents=True)

    def remove(self, *words: str, tree: str = "") -> None:
        """Remove a group, and those below it, behind the kubelet's back; in one tree of v1 if it is
        named. What runs in it goes to the cgroup root; with v2 that may hold no process beside
        groups, so it goes to the top."""
        for found in [self._root / tree] if tree and self.version == 1 else self._trees():
            refuge = found / self.path()[1:] if self.version == 1 else found
            _empty(found / self.path(*words)[1:], refuge)

    # What the files say

    @looked_at
    def cpu_shares(self, *words: str) -> int:
        """v1 only."""
        return int(self.read("cpu", "cpu.shares", *words))

    @looked_at
    def cpu_weight(self, *words: str) -> int:
        """v2 only."""
        return int(self.read("cpu", "cpu.weight", *words))

    @looked_at
    def cpu(self, *words: str) -> int:
        """Shares with v1, the weight with v2."""
        return self.cpu_shares(*words) if self.version == 1 else self.cpu_weight(*words)

    @looked_at
    def cpu_quota_us(self, *words: str) -> int | None:
        if self.version == 1:
            quota = int(self.read("cpu", "cpu.cfs_quota_us", *words))
            return None if quota < 0 else quota
        text = self.read("cpu", "cpu.max", *words).split()[0]
        return None if text == "max" else int(text)

    @looked_at
    def cpu_period_us(self, *words: str) -> int:
        if self.version == 1:
            return int(self.read("cpu", "cpu.cfs_period_us", *words))
        return int(self.read("cpu", "cpu.max", *words).split()[1])

    @looked_at
    def memory_limit_bytes(self, *words: str) -> int | None:
        if self.version == 1:
            limit = int(self.read("memory", "memory.limit_in_bytes", *words))
            return None if limit >= UNLIMITED_V1 else limit
        return _number(self.read("memory", "memory.max", *words))

    @looked_at
    def memory_usage_bytes(self, *words: str) -> int:
        file = "memory.usage_in_bytes" if self.version == 1 else "memory.current"
        return int(self.read("memory", file, *words))

    @looked_at
    def pids_limit(self, *words: str) -> int | None:
        return _number(self.read("pids", "pids.max", *words))

    @looked_at
    def pids(self, *words: str) -> int:
        """How many processes and threads there are, with those of the groups below."""
        return int(self.read("pids", "pids.current", *words))

    @looked_at
    def hugepages_bytes(self, size: str, *words: str) -> int | None:
        """`size`: 2MB. The reservations' limit must be the same."""
        suffix = "limit_in_bytes" if self.version == 1 else "max"
        limit, reserved = (
            _number(self.read("hugetlb", f"hugetlb.{size}.{kind}{suffix}", *words))
            for kind in ("", "rsvd.")
        )
        if limit != reserved:
            raise ValueError(f"hugetlb.{size}: limit {limit}, of reservations {reserved}")
        return limit

    @looked_at
    def cpus(self, *words: str) -> str:
        return self.read("cpuset", "cpuset.cpus", *words).strip()

    @looked_at
    def read(self, controller: str, file: str, *words: str) -> str:
        return str((self._in(controller, words) / file).read_text())

    def write(self, controller: str, file: str, text: str, *words: str) -> None:
        """Change a file behind the kubelet's back."""
        (self._in(controller, words) / file).write_text(text)

    def _in(self, controller: str, words: tuple[str, ...]) -> Any:
        tree = self._root / controller if self.version == 1 else self._root
        return tree / self.path(*words)[1:]

    def _trees(self) -> list[Any]:
        if self.version == 2:
            return [self._root]
        found = [d for d in self._root.iterdir() if (d / "cgroup.procs").exists()]
        return sorted(found, key=lambda d: str(d.name))


def pod_words(qos: str, uid: str) -> tuple[str, ...]:
    """The pod's group in words; `qos` as in its status."""
    above = () if qos == "Guaranteed" else (qos.lower(),)
    return (KUBEPODS, *above, f"pod{uid}")


def _number(text: str) -> int | None:
    return None if text.strip() == "max" else int(text)


def _empty(directory: Any, refuge: Any) -> None:
    """Remove it with all below, if it is there; processes move to `refuge`."""
    if not directory.exists():
        return
    for child in [d for d in directory.iterdir() if d.is_dir()]:
        _empty(child, refuge)
    for pid in _pids(directory):
        with contextlib.suppress(ProcessLookupError):
            (refuge / "cgroup.procs").write_text(pid)
    directory.rmdir()


def machine_version() -> Literal[1, 2] | None:
    """Of this machine; None where the suite cannot make groups."""
    if os.geteuid() != 0 or not CGROUPS.is_dir() or not os.access(CGROUPS, os.W_OK):
        return None
    if not (CGROUPS / "cgroup.controllers").exists():
        return 1
    # In a container the root may be a group with processes: nothing can be enabled below it.
    free = not _pids(CGROUPS) or not (CGROUPS / "cgroup.type").exists()
    return 2 if free else None


@contextlib.asynccontextmanager
async def own_groups(name: str) -> AsyncIterator[NodeCgroups]:
    """A fresh group `/<name>` in every tree of this machine, for one kubelet's cgroupRoot; at the
    end all below it is killed and removed."""
    version = machine_version()
    if version is None:
        raise RuntimeError("this machine's cgroups cannot be used: the case needs Feature.CGROUPS")
    groups = NodeCgroups(CGROUPS, version, "cgroupfs", name)
    tops = [tree / name for tree in groups._trees()]
    try:
        for top in tops:
            top.mkdir()
            _begin(top, version)
        yield groups
    finally:
        for top in tops:
            await _end(top)


def _begin(top: Path, version: int) -> None:
    """As a machine is set up for a kubelet: CPUs with v1, controllers with v2."""
    if version == 2:
        wanted = (CGROUPS / "cgroup.controllers").read_text().split()
        for directory in (CGROUPS, top):
            switch = directory / "cgroup.subtree_control"
            switch.write_text(" ".join(f"+{controller}" for controller in wanted))
        return
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (top / file).exists():
            (top / file).write_text((top.parent / file).read_text())


async def _end(top: Path) -> None:
    """Kill what is below, then remove it, as soon as the kernel lets go."""
    deadline_s = asyncio.get_running_loop().time() + _GO_WITHIN_S
    while top.exists():
        with contextlib.suppress(FileNotFoundError):  # a runtime removes its own at the same time
            _remove_below(top)
        if top.exists():
            if asyncio.get_running_loop().time() > deadline_s:
                raise RuntimeError(f"{top} stays busy: its processes do not die")
            await asyncio.sleep(0.02)


def _remove_below(top: Path) -> None:
    """Kill and remove what can be removed now."""
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
    """Without those that this process cannot see: they read 0, which would mean itself."""
    return [pid for pid in (directory / "cgroup.procs").read_text().split() if pid != "0"]


def view_of(machine: Any, config: Mapping[str, Any]) -> NodeCgroups:
    """The groups of a fake machine whose kubelet has that configuration."""
    return NodeCgroups(
        machine.cgroup_root(),
        machine.cgroup_version(),
        config.get("cgroupDriver", "cgroupfs"),
        config.get("cgroupRoot", ""),
    )
