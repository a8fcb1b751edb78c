"""CPUs, cores, sockets and NUMA nodes of a fake machine, as data."""

from __future__ import annotations

from typing import Final

from kubeobjects.arguments import tells_arguments
from kubeobjects.topology import Cpu, NumaNode
from kubeobjects.topology import HugePages as HugePages
from kubeobjects.topology import MachineTopology as MachineTopology

LOCAL_DISTANCE = 10
REMOTE_DISTANCE = 20


NO_HUGEPAGES: Final = (HugePages(2 << 20, 0), HugePages(1 << 30, 0))
"""The sizes that an x86 machine has, with no pages set aside."""


@tells_arguments()
def uniform_topology(
    *,
    sockets: int = 1,
    cores: int = 4,
    threads: int = 1,
    nodes_per_socket: int = 1,
    caches_per_node: int = 1,
    memory_bytes: int = 8 * 1024**3,
    hugepages: tuple[HugePages, ...] = (),
) -> MachineTopology:
    """A machine of equal sockets, numbered as x86 servers do it: all first threads, socket by
    socket, then the second ones.

    `cores`: of each socket; `threads`: of each core; `caches_per_node`: last-level caches, each for
    as many cores of a node; `memory_bytes`: of all nodes together; `hugepages`: of each node.
    Raises ValueError where cores cannot be shared equally by nodes or caches.

    >>> [c.cpu for c in uniform_topology(sockets=2, cores=2, threads=2).cpus if c.socket == 1]
    [2, 3, 6, 7]
    """
    of_a_node = _share(cores, nodes_per_socket, "cores of a socket", "nodes")
    of_a_cache = _share(of_a_node, caches_per_node, "cores of a node", "caches")
    cpus = [
        Cpu(
            cpu=thread * sockets * cores + socket * cores + core,
            core=core,
            socket=socket,
            node=socket * nodes_per_socket + core // of_a_node,
            cache=None if caches_per_node == 1 else (socket * cores + core) // of_a_cache,
        )
        for thread in range(threads)
        for socket in range(sockets)
        for core in range(cores)
    ]
    return MachineTopology(
        tuple(cpus), _equal_nodes(sockets * nodes_per_socket, memory_bytes, hugepages)
    )


def _share(number: int, parts: int, of_what: str, what: str) -> int:
    if number % parts:
        raise ValueError(f"{number} {of_what} cannot be shared equally by {parts} {what}")
    return number // parts


def _equal_nodes(
    count: int, memory_bytes: int, hugepages: tuple[HugePages, ...]
) -> tuple[NumaNode, ...]:
    """`memory_bytes`: of all together; `hugepages`: of each."""
    return tuple(
        NumaNode(
            node,
            memory_bytes // count,
            hugepages,
            tuple(LOCAL_DISTANCE if n == node else REMOTE_DISTANCE for n in range(count)),
        )
        for node in range(count)
    )
