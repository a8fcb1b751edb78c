"""Topology hints, and the contract between hint providers and the topology manager. Pure.

A hint is a set of NUMA nodes from which an allocation is possible, as a bit mask: bit n stands for
node n; None stands for any node. The topology manager asks every hint provider for hints, merges
them into one, which providers read through `Affinities`, and then asks each provider to allocate.
Upstream: pkg/kubelet/cm/topologymanager: topology_manager.go, bitmask/bitmask.go;
pkg/kubelet/cm/admission/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final, Protocol

from msgspec import Struct

from refkubelet.admission.admit_handler import UNEXPECTED
from refkubelet.model.objects import Container, Pod

ANY: Final = None  # the affinity of a hint without a preference

NumaMask = int
"""A set of NUMA nodes: bit n is node n."""


class TopologyHint(Struct, frozen=True):
    """`affinity`: the NUMA nodes; None: any. `preferred`: no smaller set would be enough."""

    affinity: NumaMask | None = ANY
    preferred: bool = False


Hints = Mapping[str, tuple[TopologyHint, ...] | None]
"""Resource name -> its hints. None: no preference; empty: no set of NUMA nodes is enough."""

NO_PREFERENCE: Final[Hints] = {}


class AllocationError(Exception):
    """A resource could not be allocated, and the pod is rejected (CG-080, LIFE-223). The pod's
    status shows `reason`, by default that of an unexpected error, and `message`."""

    def __init__(self, text: str, reason: str = UNEXPECTED) -> None:
        super().__init__(text)
        self.reason = reason

    @property
    def message(self) -> str:
        """The rejection's message."""
        if self.reason == UNEXPECTED:
            return f"Allocate failed due to {self}, which is unexpected"
        return str(self)


class HintProvider(Protocol):
    """A manager of one kind of resource, as the topology manager uses it. It is called for init
    containers, then for regular ones; with policy none only `allocate` is called."""

    def topology_hints(self, pod: Pod, container: Container) -> Hints:
        """Hints for one container (scope container). Nothing is allocated."""

    def pod_topology_hints(self, pod: Pod) -> Hints:
        """Hints for all containers of a pod together (scope pod). Nothing is allocated."""

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Allocate the container's request, near `Affinities.affinity` if possible; a second call
        for the same container changes nothing. Raises `AllocationError`."""


class Affinities(Protocol):
    """Through this a hint provider reads the merged hint."""

    def affinity(self, pod_uid: str, container_name: str) -> TopologyHint:
        """The merged hint of a container; `TopologyHint()` if there is none."""


def mask_of(nodes: Iterable[int]) -> NumaMask:
    """The mask of these nodes.

    >>> mask_of([0, 3])
    9
    """
    mask = 0
    for node in nodes:
        mask |= 1 << node
    return mask


def nodes_of(mask: NumaMask) -> tuple[int, ...]:
    """The nodes of a mask, in order.

    >>> nodes_of(9)
    (0, 3)
    """
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def all_masks(nodes: Iterable[int]) -> Iterator[NumaMask]:
    """Every non-empty set of these nodes: one node first, then pairs, and so on.

    >>> [nodes_of(mask) for mask in all_masks([0, 1, 2])]
    [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    """
    ordered = tuple(nodes)
    for size in range(1, len(ordered) + 1):
        yield from (mask_of(chosen) for chosen in combinations(ordered, size))
