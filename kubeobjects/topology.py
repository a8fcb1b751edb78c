"""CPUs, cores, sockets, NUMA nodes and huge pages of a machine, as data. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from kubeobjects.arguments import arguments_told


class Cpu(Struct, frozen=True):
    """An online CPU. `core` is the kernel's core id, which is unique within a socket only. `cache`:
    the last-level cache that it shares with some CPUs of its NUMA node; None: with all of them."""

    cpu: int
    core: int
    socket: int
    node: int
    cache: int | None = None


@arguments_told
@dataclass(frozen=True, slots=True)
class HugePages:
    """Pages of one size that a NUMA node has set aside, in use or not."""

    page_bytes: int
    pages: int


class NumaNode(Struct, frozen=True):
    """A NUMA node; `distances` are those to every node, in the order of their ids."""

    id: int
    memory_bytes: int
    hugepages: tuple[HugePages, ...] = ()
    distances: tuple[int, ...] = ()


@arguments_told
@dataclass(frozen=True, slots=True)
class MachineTopology:
    """CPUs by number, nodes by id. A machine without NUMA has one node, 0."""

    cpus: tuple[Cpu, ...]
    nodes: tuple[NumaNode, ...]


def page_size_name(page_bytes: int) -> str:
    """A page size as the kernel names it in files.

    >>> [page_size_name(n << 10) for n in (64, 2048, 1048576)]
    ['64KB', '2MB', '1GB']
    """
    for unit, power in (("GB", 30), ("MB", 20)):
        if page_bytes >= 1 << power:
            return f"{page_bytes >> power}{unit}"
    return f"{page_bytes >> 10}KB"
