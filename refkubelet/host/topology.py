"""Which CPUs, cores, sockets and NUMA nodes this machine has, from /sys/devices/system.

Upstream: cAdvisor `utils/sysinfo/sysinfo.go: GetNodesInfo`. What must never happen here: an offline
CPU is listed.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

from kubeobjects.topology import Cpu, HugePages, MachineTopology, NumaNode
from refkubelet.model.cpuset import parse_cpuset

LAST_LEVEL: Final = 3
_KIB: Final = 1024


def read_topology(system: Path, memory_bytes: int) -> MachineTopology:
    """From `system`, /sys/devices/system. `memory_bytes`: of the machine, which the only node has
    where the kernel knows no NUMA. Raises OSError and ValueError for files that are not right."""
    nodes = [(number, path) for number, path in _numbered(system / "node", "node")]
    cpu_dirs = {n: path for n, path in _numbered(system / "cpu", "cpu") if _online(path)}
    node_of = {cpu: number for number, path in nodes for cpu, _ in _numbered(path, "cpu")}
    in_node = Counter(node_of.get(number, 0) for number in cpu_dirs)
    cpus = tuple(
        _cpu(number, path, node := node_of.get(number, 0), _cache(path, in_node[node]))
        for number, path in cpu_dirs.items()
    )
    if not nodes:
        return MachineTopology(cpus, (NumaNode(0, memory_bytes, (), (10,)),))
    return MachineTopology(cpus, tuple(_node(number, path) for number, path in nodes))


def _numbered(parent: Path, name: str) -> list[tuple[int, Path]]:
    if not parent.is_dir():
        return []
    matches = ((re.fullmatch(rf"{name}(\d+)", path.name), path) for path in parent.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match)


def _online(cpu: Path) -> bool:
    """A CPU that cannot be taken offline has no file; one that is offline has no topology."""
    switch = cpu / "online"
    if switch.exists():
        return switch.read_text().strip() == "1"
    return True


def _cpu(number: int, path: Path, node: int, cache: int | None) -> Cpu:
    """Machines without these files have a core for each CPU, and one socket."""
    core = _number(path / "topology/core_id", number)
    socket = _number(path / "topology/physical_package_id", 0)
    return Cpu(number, core, max(0, socket), node, cache=cache)


def _cache(cpu: Path, cpus_in_node: int) -> int | None:
    """The level 3 cache, unless all CPUs of the node share it."""
    for _, index in _numbered(cpu / "cache", "index"):
        if _number(index / "level", 0) == LAST_LEVEL and (index / "shared_cpu_list").exists():
            sharing = parse_cpuset((index / "shared_cpu_list").read_text().strip())
            return None if len(sharing) == cpus_in_node else _number(index / "id", 0)
    return None


def _number(file: Path, default: int) -> int:
    return int(file.read_text()) if file.exists() else default


def _node(number: int, path: Path) -> NumaNode:
    total = re.search(r"MemTotal:\s+(\d+) kB", (path / "meminfo").read_text())
    if total is None:
        raise ValueError(f"{path}/meminfo: no MemTotal")
    distances = path / "distance"
    return NumaNode(
        number,
        int(total[1]) * _KIB,
        _hugepages(path / "hugepages"),
        tuple(int(d) for d in distances.read_text().split()) if distances.exists() else (),
    )


def _hugepages(parent: Path) -> tuple[HugePages, ...]:
    if not parent.is_dir():
        return ()
    sizes = ((re.fullmatch(r"hugepages-(\d+)kB", path.name), path) for path in parent.iterdir())
    page_counts = [
        HugePages(int(match[1]) * _KIB, int((path / "nr_hugepages").read_text()))
        for match, path in sizes
        if match
    ]
    return tuple(sorted(page_counts, key=lambda pages: pages.page_bytes))
