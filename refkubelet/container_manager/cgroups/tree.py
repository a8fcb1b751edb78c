"""Reads and writes the directories and files of cgroups, with one interface for v1 and v2.

v1 has a tree for each controller, and a cgroup is a directory in all of them; v2 has one tree, in
which controllers are enabled level by level. Every call reads the kernel's present state; only
facts that cannot change while the kubelet runs are kept.
Rules: CG-010, CG-015, CG-016, CG-044. Upstream: pkg/kubelet/cm/cgroup_manager_linux.go;
opencontainers/cgroups fs/fs.go, fs2/create.go.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from kubeobjects.golang.strconv import quoted_list
from refkubelet.container_manager.cgroups.removal import (
    CgroupError,
    reason,
    remove_all,
    subdirectories,
)
from refkubelet.host.machine import CgroupDir
from refkubelet.model.cgroups.limits import ResourceConfig, Version, Write, writes
from refkubelet.model.cgroups.names import CgroupName, cgroup_path
from simclock import Clock

NEEDED_V1: Final = ("cpu", "cpuacct", "cpuset", "memory", "systemd", "pids", "hugetlb")
NEEDED_V2: Final = ("cpu", "cpuset", "memory", "hugetlb", "pids")
OF_THE_RUNTIME: Final = "devices"
"""The tree in which the runtime makes pods' cgroups; the kubelet only removes them there."""
_CPUSET_FILES: Final = ("cpuset.cpus", "cpuset.mems")
_MOST_FILES: Final = 500


class CgroupTree:
    """The cgroups of a machine below `root`, /sys/fs/cgroup.

    `driver`: the scheme of cgroups' names (CG-010); systemd itself is never called. `page_sizes`:
    of huge pages, in bytes; `timed`: a context for each operation: create, update, destroy. The
    constructor raises OSError if no cgroups are mounted.
    """

    def __init__(
        self,
        root: CgroupDir,
        version: Version,
        driver: str,
        page_sizes: Sequence[int] = (),
        timed: Callable[[str], AbstractContextManager[None]] = lambda operation: nullcontext(),
    ) -> None:
        self._timed = timed
        self.version = version
        self.driver = driver
        self._root = root
        self._mounts = _mounts(root) if version == 1 else {}
        self._trees = tuple(dict.fromkeys(self._mounts.values())) if version == 1 else (root,)
        self.controllers = tuple(self._mounts) if version == 1 else _controllers_of(root)
        self._page_sizes = page_sizes if "hugetlb" in self.controllers else ()
        self._lacking: set[str] = set()
        self._files: dict[tuple[str, str, str], CgroupDir] = {}

    def path(self, name: CgroupName) -> str:
        """The path of the cgroup below the mount point of a tree."""
        return cgroup_path(name, self.driver)

    # Is it there

    def problem(self, name: CgroupName, *, literal: bool = False) -> str | None:
        """Why the cgroup does not count as existing; None: it does (CG-015). `literal`: the name is
        used as a path, whatever the driver."""
        path = cgroup_path(name, "cgroupfs") if literal else self.path(name)
        if self.version == 1:
            trees = [m for c, m in self._mounts.items() if c in NEEDED_V1]
            missing = [str(m / path[1:]) for m in trees if not (m / path[1:]).exists()]
            if missing:
                return f"cgroup {quoted_list(name)} has some missing paths: {', '.join(missing)}"
            return None
        try:
            controllers = _controllers_of(self._root / path[1:])
        except OSError as error:
            return f"could not read controllers for cgroup {quoted_list(name)}: {reason(error)}"
        missing = sorted(c for c in self.controllers if c in NEEDED_V2 and c not in controllers)
        if missing:
            return f"cgroup {quoted_list(name)} has some missing controllers: {', '.join(missing)}"
        return None

    def exists(self, name: CgroupName) -> bool:
        """Whether the cgroup exists; like `problem`, but faster."""
        path = self.path(name)[1:]
        if self.version == 1:
            return all((m / path).exists() for c, m in self._mounts.items() if c in NEEDED_V1)
        return self.problem(name) is None

    # Make and change

    def create(self, name: CgroupName, config: ResourceConfig) -> str | None:
        """Make the cgroup and its parents, and write its limits. Returns the error of a refused
        limit, or None: the cgroup exists all the same (CG-040). Raises `CgroupError` if it cannot
        be made."""
        words = [word for word in self.path(name).split("/") if word]
        with self._timed("create"):
            try:
                for tree in self._trees:
                    if tree != self._mounts.get(OF_THE_RUNTIME):
                        self._make(tree, words)
            except OSError as error:
                raise CgroupError(f"mkdir {error.filename}: {reason(error)}") from None
            try:
                self._set(name, config)
            except CgroupError as error:
                return str(error)
        return None

    def _make(self, tree: CgroupDir, words: Sequence[str]) -> None:
        above, parents = tree, []
        is_cpuset = self.version == 1 and tree == self._mounts.get("cpuset")
        for word in words:
            directory = above / word
            directory.mkdir(mode=0o755, exist_ok=True)
            if is_cpuset:
                _inherit_cpuset(directory, above)
            parents.append(above)
            above = directory
        if self.version == 2:
            self._enable_controllers(parents, above)

    def _enable_controllers(self, above: Sequence[CgroupDir], leaf: CgroupDir) -> None:
        """Enable all controllers of the root at every level down to `leaf` (CG-016). A refusal of
        the kernel is ignored: it shows when a limit is written."""
        if set(self.controllers) <= set(_controllers_of(leaf)):
            return
        for directory in above:
            switch = directory / "cgroup.subtree_control"
            try:
                switch.write_text(" ".join(f"+{c}" for c in self.controllers))
            except OSError:
                for controller in self.controllers:
                    _try(switch, f"+{controller}")

    def update(self, name: CgroupName, config: ResourceConfig) -> None:
        """Write the limits, up to the first that is refused. Raises `CgroupError`."""
        with self._timed("update"):
            self._set(name, config)

    def _set(self, name: CgroupName, config: ResourceConfig) -> None:
        path = self.path(name)[1:]
        later: list[Write] = []
        for write in writes(config, self.version, self._page_sizes):
            try:
                self._write(path, write)
            except OSError as error:
                # A shorter period may only fit the quota that comes next.
                if error.errno != errno.EINVAL or write.file != "cpu.cfs_period_us":
                    raise CgroupError(self._refused(path, write, error)) from None
                later.append(write)
        for write in later:
            try:
                self._write(path, write)
            except OSError as error:
                raise CgroupError(self._refused(path, write, error)) from None

    def _write(self, path: str, write: Write) -> None:
        if write.file in self._lacking:
            return
        try:
            self._file(write.controller, path, write.file).write_text(write.text)
        except OSError:
            directory = self._directory(write.controller, path)
            # A kernel that lacks the file forbids to create one: EACCES.
            if not write.optional or not directory.exists() or (directory / write.file).exists():
                raise
            self._lacking.add(write.file)

    def _refused(self, path: str, write: Write, error: OSError) -> str:
        if error.errno == errno.EBUSY and write.file == "memory.limit_in_bytes":
            usage, peak = (
                self._number(path, f"memory.{prefix}usage_in_bytes") for prefix in ("", "max_")
            )
            return (
                f"unable to set memory limit to {write.text} "
                f"(current usage: {usage}, peak usage: {peak})"
            )
        return f"failed to write {write.text!r} to {error.filename or path}: {reason(error)}"

    # What it says

    def read(self, name: CgroupName, controller: str, file: str) -> str:
        """The text of a file of the cgroup. Raises OSError."""
        return (self._directory(controller, self.path(name)[1:]) / file).read_text()

    def memory_usage_bytes(self, name: CgroupName) -> int:
        """The memory usage of the cgroup and all below it. Raises OSError."""
        return int(self.read(name, "memory", self._memory_usage_file()))

    def child_memory_usage_bytes(self, name: CgroupName, like: str) -> int:
        """The memory usage of the first child that has `like` in its name. Raises OSError."""
        children = self.children(name, like=like)
        if not children:
            raise FileNotFoundError(f"no cgroup of {like} in {self.path(name)}")
        directory = self._directory("memory", self.path(name)[1:])
        return int((directory / children[0] / self._memory_usage_file()).read_text())

    def _memory_usage_file(self) -> str:
        return "memory.usage_in_bytes" if self.version == 1 else "memory.current"

    def _number(self, path: str, file: str) -> int:
        try:
            return int((self._directory("memory", path) / file).read_text())
        except (OSError, ValueError):
            return 0

    def _file(self, controller: str, path: str, name: str) -> CgroupDir:
        """The path of a file, cached, because the same files are written again and again."""
        key = (controller, path, name)
        file = self._files.get(key)
        if file is None:
            if len(self._files) >= _MOST_FILES:
                self._files.clear()
            file = self._files[key] = self._directory(controller, path) / name
        return file

    def _directory(self, controller: str, path: str) -> CgroupDir:
        """The cgroup's directory in the tree of a controller. Raises OSError if no tree has the
        controller."""
        if self.version == 2:
            return self._root / path
        mount = self._mounts.get(controller)
        if mount is None:
            raise FileNotFoundError(errno.ENOENT, "no such hierarchy", controller)
        return mount / path

    # Children, and the end

    def children(self, name: CgroupName, *, like: str = "") -> list[str]:
        """The names with `like` in them of the cgroup's children in any tree, sorted."""
        names: dict[str, None] = {}
        for directory in self.directories(name):
            names.update(dict.fromkeys(child.name for child in subdirectories(directory, like)))
        return sorted(names)

    async def destroy(self, name: CgroupName, kill: Callable[[int], None], clock: Clock) -> None:
        """Kill all processes in the cgroup and below, and remove it (CG-042). `kill` sends SIGKILL;
        waits up to a second for processes to go. Raises `CgroupError`."""
        with self._timed("destroy"):
            remaining = await remove_all(self.directories(name), kill, clock)
        if remaining:
            raise CgroupError(
                f"unable to destroy cgroup paths for cgroup {shown(name)} : "
                f"Failed to remove paths: {', '.join(map(str, remaining))}"
            )

    def directories(self, name: CgroupName) -> list[CgroupDir]:
        """The cgroup's directory in every tree."""
        path = self.path(name)[1:]
        return [tree / path for tree in self._trees]


def shown(name: CgroupName) -> str:
    """The name as upstream's messages show it."""
    return f"[{' '.join(name)}]"


def _mounts(root: CgroupDir) -> dict[str, CgroupDir]:
    """Controller -> its tree, `systemd` and `unified` (v2 on hybrid machines, CG-044) included.
    Controllers may share a tree, which then also has links with their single names."""
    mounts: dict[str, CgroupDir] = {}
    trees = [d for d in root.iterdir() if (d / "cgroup.procs").exists()]
    for tree in sorted(trees, key=lambda d: ("," not in d.name, d.name)):
        for controller in tree.name.split(","):
            mounts.setdefault(controller, tree)
    return mounts


def _controllers_of(directory: CgroupDir) -> tuple[str, ...]:
    return tuple((directory / "cgroup.controllers").read_text().split())


def _inherit_cpuset(directory: CgroupDir, above: CgroupDir) -> None:
    """With v1, give a cgroup without CPUs or NUMA nodes, which accepts no process, those of its
    parent (CG-143)."""
    for file in _CPUSET_FILES:
        if not (directory / file).read_text().strip():
            (directory / file).write_text((above / file).read_text().strip())


def _try(file: CgroupDir, text: str) -> None:
    try:
        file.write_text(text)
    except OSError:
        return


def link_count(directory: CgroupDir) -> int:
    """A number that changes when a child directory is made or removed (CG-100); 0: the directory
    does not exist."""
    try:
        return directory.stat().st_nlink
    except FileNotFoundError:
        return 0
