"""Directories of containers: their names, and how a runtime makes and removes them.

containerd names them by the parent it is given (CG-010, CRI-044): `<parent>/<id>`, or, below a
systemd slice, `<slices>/cri-containerd-<id>.scope`. Missing parents are made; v2 ones get every
controller that there is (CG-016), v1 cpusets their parent's CPUs. What must never happen here: a
directory goes while a process in it lives on.
"""

from __future__ import annotations

import errno
from typing import Final

from fakecri.cgroupfs import CgroupFS
from fakecri.cgroupfs.core_v2 import available
from fakecri.cgroupfs.interface.tree import Cgroup, Process
from fakecri.cgroupfs.interface.values import named
from fakecri.core.cgroups.resources import MEMORY_LIMIT_V1, Setting
from fakecri.errors import CgroupRefused

ROOT: Final = "/sys/fs/cgroup"
_SLICE: Final = ".slice"


def directory_of(parent: str, object_id: str) -> str:
    """Where a container or sandbox with that cgroup_parent is.

    >>> directory_of("/kubepods/pod1", "c0")
    '/kubepods/pod1/c0'
    >>> directory_of("/a.slice/a-b.slice", "c0")
    '/a.slice/a-b.slice/cri-containerd-c0.scope'
    """
    parent = "/" + parent.strip("/")
    last = parent.rpartition("/")[2]
    if last.endswith(_SLICE):
        return f"{expanded(last)}/cri-containerd-{object_id}.scope"
    return f"{parent.rstrip('/')}/{object_id}"


def expanded(slice_name: str) -> str:
    """The path of a systemd slice.

    >>> expanded("kubepods-burstable-pod1.slice")
    '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice'
    """
    words = slice_name.removesuffix(_SLICE).split("-")
    prefixes = ("-".join(words[:n]) for n in range(1, len(words) + 1))
    return "".join(f"/{prefix}{_SLICE}" for prefix in prefixes)


def make(fs: CgroupFS, directory: str, places: dict[str, Cgroup]) -> None:
    """Make the directory in every hierarchy, with what is missing above it, and note it by mount.

    Raises OSError that names the place.
    """
    names = directory.strip("/").split("/")
    for mount, hierarchy in fs.mounts.items():
        places[mount] = _make(hierarchy.root, names)


def _make(at: Cgroup, names: list[str]) -> Cgroup:
    for name in names:
        if at.hierarchy.version == 2:
            _enable_all(at)
        try:
            child = at.children.get(name) or at.mkdir(name)
        except OSError as error:
            raise named(error, f"{place(at)}/{name}") from None
        if at.hierarchy.version == 1:
            _inherit_cpuset(child)
        at = child
    return at


def _enable_all(cgroup: Cgroup) -> None:
    """One by one, as runc does it: what cannot be enabled is left out."""
    if len(cgroup.enabled) == len(cgroup.hierarchy.controllers):
        return
    for name in available(cgroup):
        if name not in cgroup.enabled:
            try:
                write(cgroup, Setting("", "cgroup.subtree_control", f"+{name}"))
            except OSError:
                continue


def _inherit_cpuset(child: Cgroup) -> None:
    """A v1 cpuset without CPUs or memory takes no processes."""
    own = child.states.get("cpuset")
    if own is not None and child.parent is not None:
        above = child.parent.states["cpuset"].sets
        own.sets.update({kind: above[kind] for kind in above if not own.sets[kind]})


def write_all(places: dict[str, Cgroup], settings: list[Setting]) -> None:
    """Each setting where its controller is. Raises CgroupRefused in runc's words."""
    for setting in settings:
        where = (c for c in places.values() if setting.controller in c.states)
        cgroup = next(where, None)
        try:
            if cgroup is not None:
                write(cgroup, setting)
            elif setting.required:
                raise FileNotFoundError(2, "No such file or directory", setting.file)
        except OSError as error:
            raise CgroupRefused(_refused_write(cgroup, setting, error)) from None


def _refused_write(cgroup: Cgroup | None, setting: Setting, error: OSError) -> str:
    if cgroup is not None and error.errno == errno.EBUSY and setting.file == MEMORY_LIMIT_V1:
        memory = cgroup.states["memory"]
        return (
            f"unable to set memory limit to {setting.text} (current usage: {memory.usage_bytes}, "
            f"peak usage: {memory.peak_bytes})"
        )
    kind = "open" if error.errno == errno.ENOENT else "write"
    text = f"{kind} {error.filename}: {(error.strerror or '').lower()}"
    return text if kind == "open" else f'failed to write "{setting.text}": {text}'


def write(cgroup: Cgroup, setting: Setting) -> None:
    """One write(2). Raises OSError that names the file; a file that is not there is no error
    unless it is required."""
    file = cgroup.file(setting.file)
    if file is None or file.write is None:
        if setting.required:
            path = f"{place(cgroup)}/{setting.file}"
            raise FileNotFoundError(2, "No such file or directory", path)
        return
    try:
        file.write(cgroup, setting.text)
    except OSError as error:
        raise named(error, f"{place(cgroup)}/{setting.file}") from None


def place(cgroup: Cgroup) -> str:
    """Its path in the file tree of the machine."""
    mount = cgroup.hierarchy.mount
    return ROOT + (f"/{mount}" if mount else "") + cgroup.path.rstrip("/")


def remove(places: dict[str, Cgroup]) -> None:
    """Kill what is still in it, then remove it with everything below."""
    for cgroup in places.values():
        below = [] if cgroup.removed else list(cgroup.down())
        inside = [t.process for c in below for t in list(c.members.values())]
        for process in dict.fromkeys(inside):
            end(process)
        for group in reversed(below):
            if not group.live:  # frozen processes die when they are thawed
                group.rmdir()


def end(process: Process) -> None:
    """Kill it and forget it; one that is frozen dies when it is thawed."""
    if process.alive:
        process.kill()
    if process.exit_status is not None and process.pid in process.table.processes:
        process.reap()
