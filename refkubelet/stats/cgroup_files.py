"""Reads memory and processes of one cgroup, v1 or v2 (EVIC-021, EVIC-026, EVIC-027, EVIC-029).

No function raises if the cgroup is removed meanwhile; it then has no numbers. Upstream: cAdvisor,
container/libcontainer/handler.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from refkubelet.host.machine import CgroupDir, Machine
from refkubelet.stats.usage import CgroupMemory

UNLIMITED_BYTES: Final = 1 << 62  # EVIC-027: a greater value means no limit
_STAT_KEYS: Final = {  # version: inactive file pages, resident pages, faults (v1: its own, SRV-033)
    1: ("total_inactive_file", "total_rss", "pgfault", "pgmajfault"),
    2: ("inactive_file", "anon", "pgfault", "pgmajfault"),
}

_NO_PRESSURE: Final = {"total": 0, "avg10": 0.0, "avg60": 0.0, "avg300": 0.0}


def cgroup_dir(machine: Machine, controller: str, path: str) -> CgroupDir:
    """The directory with the files of v1's controller, or of v2, of the cgroup at that absolute
    path."""
    root, relative = machine.cgroup_root(), path.strip("/")
    if machine.cgroup_version() == 1:
        root = root / controller
    return root / relative if relative else root


def memory_dir(machine: Machine, path: str) -> CgroupDir:
    """The directory with the memory files of the cgroup at that absolute path."""
    return cgroup_dir(machine, "memory", path)


def read_memory(directory: CgroupDir, version: Literal[1, 2]) -> CgroupMemory | None:
    """The memory of the cgroup; None: it does not exist."""
    names = ("memory.usage_in_bytes", "memory.limit_in_bytes")
    usage_file, limit_file = names if version == 1 else ("memory.current", "memory.max")
    try:
        stat = (directory / "memory.stat").read_text()
        try:
            usage = int((directory / usage_file).read_text())
            limit = _limit((directory / limit_file).read_text())
        except FileNotFoundError:  # the root of v2 has neither (EVIC-026)
            usage, limit = _number(stat, "anon") + _number(stat, "file"), None
        inactive, rss, faults, major = (_number(stat, key) for key in _STAT_KEYS[version])
    except (OSError, ValueError):
        return None
    return CgroupMemory(
        usage_bytes=usage,
        working_set_bytes=max(0, usage - inactive),
        limit_bytes=limit,
        rss_bytes=rss,
        page_faults=faults,
        major_page_faults=major,
    )


def read_swap(directory: CgroupDir, version: Literal[1, 2]) -> tuple[int, int | None]:
    """The used and the available swap, in bytes. Available is 0 if unknown, None without a
    limit."""
    try:
        if version == 1:
            return _number((directory / "memory.stat").read_text(), "total_swap"), 0
        used = int((directory / "memory.swap.current").read_text())
        limit = _limit((directory / "memory.swap.max").read_text())
    except (OSError, ValueError):
        return 0, 0
    return used, None if limit is None else max(0, limit - used)


def read_pressure(directory: CgroupDir, resource: str) -> Mapping[str, Mapping[str, float]]:
    """`some` and `full` of `<resource>.pressure`, in the file's units; zeros without the file, as
    with v1."""
    pressure = {kind: dict(_NO_PRESSURE) for kind in ("full", "some")}
    try:
        text = (directory / f"{resource}.pressure").read_text()
    except OSError:
        return pressure
    for kind, *values in (line.split() for line in text.splitlines()):
        pairs = (value.partition("=") for value in values)
        pressure[kind] = {name: int(v) if name == "total" else float(v) for name, _, v in pairs}
    return pressure


def cpu_usage_ns(machine: Machine, path: str) -> int | None:
    """The CPU time of the cgroup at that absolute path since it was made; None: unknown."""
    directory = cgroup_dir(machine, "cpuacct", path)
    try:
        if machine.cgroup_version() == 1:
            return int((directory / "cpuacct.usage").read_text())
        stat = (directory / "cpu.stat").read_text()
        return _number(stat, "usage_usec") * 1000 if "usage_usec " in stat else None
    except (OSError, ValueError):
        return None


def count_processes(directory: CgroupDir, container_ids: tuple[str, ...]) -> int:
    """The number of processes in the cgroups of these containers, directly below `directory`."""
    return sum(_processes(child) for child in below(directory, container_ids))


def below(directory: CgroupDir, container_ids: tuple[str, ...]) -> list[CgroupDir]:
    """The cgroups directly below `directory` whose names contain one of the container IDs
    (`cri-containerd-<id>.scope`)."""
    try:
        children = list(directory.iterdir())
    except OSError:
        return []
    return [child for child in children if any(id_ in child.name for id_ in container_ids)]


def _processes(directory: CgroupDir) -> int:
    try:
        return len((directory / "cgroup.procs").read_text().split())
    except OSError:
        return 0


def _limit(text: str) -> int | None:
    if text.strip() == "max":
        return None
    limit = int(text)
    return None if limit > UNLIMITED_BYTES else limit


def _number(text: str, key: str) -> int:
    """The value of a key in lines of `key value`; 0 if it is missing. Faster than parsing the whole
    text, which is long and read in every cycle."""
    _, _, rest = f"\n{text}".partition(f"\n{key} ")
    return int(rest.partition("\n")[0] or 0)
