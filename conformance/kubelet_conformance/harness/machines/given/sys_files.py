"""The directories below /sys in which a kubelet reads of CPUs, NUMA nodes and huge pages.

Pure: a tree is a mapping, path -> text; a path whose text is a `Link` is a symbolic link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from kubeobjects.topology import Cpu, HugePages, MachineTopology, NumaNode

_KIB: Final = 1024
_WORD_BITS: Final = 32
_CACHE_SIZE: Final = "16384K"


class Link(Struct, frozen=True):
    """A symbolic link and where it leads."""

    target: str


Tree: TypeAlias = dict[str, "str | Link"]


def cpu_list(numbers: Iterable[int]) -> str:
    """
    >>> cpu_list([0, 1, 2, 7])
    '0-2,7'
    """
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def cpu_map(numbers: Iterable[int], highest: int) -> str:
    """Words of 32 bits in hexadecimal, the highest first; `highest`: the last CPU that there is.

    >>> cpu_map([0, 33], 63), cpu_map([1], 1)
    ('00000002,00000001', '2')
    """
    mask = sum(1 << number for number in set(numbers))
    if highest < _WORD_BITS:
        return f"{mask:0{highest // 4 + 1}x}"
    words = [mask >> at & 0xFFFFFFFF for at in range(0, highest + 1, _WORD_BITS)]
    return ",".join(f"{word:08x}" for word in reversed(words))


def cpu_directory(topology: MachineTopology) -> Tree:
    """/sys/devices/system/cpu: which CPUs are there, and of each its core, socket and last-level
    cache."""
    every = cpu_list(cpu.cpu for cpu in topology.cpus)
    tree: Tree = dict.fromkeys(("online", "possible", "present"), f"{every}\n")
    tree |= {"offline": "\n", "isolated": "\n"}
    for cpu in topology.cpus:
        files = {**_topology(cpu, topology), **_cache(cpu, topology)}
        tree |= {f"cpu{cpu.cpu}/{name}": f"{text}\n" for name, text in files.items()}
        tree[f"cpu{cpu.cpu}/node{cpu.node}"] = Link(f"../../node/node{cpu.node}")
    return tree


def _topology(cpu: Cpu, topology: MachineTopology) -> dict[str, str]:
    core = [c.cpu for c in topology.cpus if (c.socket, c.core) == (cpu.socket, cpu.core)]
    socket = [c.cpu for c in topology.cpus if c.socket == cpu.socket]
    highest = max(c.cpu for c in topology.cpus)
    return {
        "topology/core_id": str(cpu.core),
        "topology/physical_package_id": str(cpu.socket),
        "topology/die_id": "0",
        "topology/thread_siblings": cpu_map(core, highest),
        "topology/thread_siblings_list": cpu_list(core),
        "topology/core_siblings": cpu_map(socket, highest),
        "topology/core_siblings_list": cpu_list(socket),
    }


def _cache(cpu: Cpu, topology: MachineTopology) -> dict[str, str]:
    """The last level alone. Without `cache` a CPU shares it with all of its NUMA node."""

    def shared(other: Cpu) -> tuple[int, int | None]:
        return (other.node, other.cache)

    sharing = [c.cpu for c in topology.cpus if shared(c) == shared(cpu)]
    highest = max(c.cpu for c in topology.cpus)
    files = {
        "id": str(cpu.node if cpu.cache is None else cpu.cache),
        "level": "3",
        "size": _CACHE_SIZE,
        "type": "Unified",
        "shared_cpu_list": cpu_list(sharing),
        "shared_cpu_map": cpu_map(sharing, highest),
    }
    return {f"cache/index3/{name}": text for name, text in files.items()}


def node_directory(topology: MachineTopology) -> Tree:
    """/sys/devices/system/node: the NUMA nodes with their CPUs, memory, huge pages, distances."""
    every = cpu_list(node.id for node in topology.nodes)
    tree: Tree = dict.fromkeys(("online", "possible", "has_memory", "has_cpu"), f"{every}\n")
    for node in topology.nodes:
        below = f"node{node.id}"
        cpus = [cpu.cpu for cpu in topology.cpus if cpu.node == node.id]
        tree |= {f"{below}/cpu{number}": Link(f"../../cpu/cpu{number}") for number in cpus}
        tree[f"{below}/cpulist"] = cpu_list(cpus) + "\n"
        tree[f"{below}/distance"] = " ".join(map(str, node.distances)) + "\n"
        tree[f"{below}/meminfo"] = node_meminfo(node)
        tree |= {
            f"{below}/hugepages/{path}": text for path, text in hugepages(node.hugepages).items()
        }
    return tree


def node_meminfo(node: NumaNode) -> str:
    """The meminfo of a NUMA node, all of which is free."""
    total = node.memory_bytes // _KIB
    lines = {"MemTotal": total, "MemFree": total, "MemUsed": 0}
    return "".join(f"Node {node.id} {name + ':':<15}{kib:>8} kB\n" for name, kib in lines.items())


def hugepages(held: Iterable[HugePages]) -> Mapping[str, str]:
    """A directory `hugepages`: how many pages of each size are set aside, none of them in use."""
    counts: dict[int, int] = {}
    for pages in held:
        counts[pages.page_bytes] = counts.get(pages.page_bytes, 0) + pages.pages
    tree: dict[str, str] = {}
    for size, count in sorted(counts.items()):
        below = f"hugepages-{size // _KIB}kB"
        files = {"nr_hugepages": count, "free_hugepages": count, "surplus_hugepages": 0}
        tree |= {f"{below}/{name}": f"{number}\n" for name, number in files.items()}
    return tree


def hugepages_directory(topology: MachineTopology) -> Tree:
    """/sys/kernel/mm/hugepages: the pages of all NUMA nodes together."""
    return dict(hugepages(pages for node in topology.nodes for pages in node.hugepages))
