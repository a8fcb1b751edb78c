"""Whether the node has room for what a pod requests (LIFE-225). Pure.

Upstream: pkg/kubelet/lifecycle/predicate.go; scheduler noderesources: fitsRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kubeobjects.quantity import NANO, parse_nano
from kubeobjects.resource_names import HUGE_PAGES
from refkubelet.model.objects import Node, Pod
from refkubelet.model.resources import pod_requests, requests_in_use

PODS: Final = "pods"
CPU: Final = "cpu"
NATIVE: Final = (CPU, "memory", "ephemeral-storage")  # in this order
_NANO_PER_MILLI: Final = NANO // 1000


class Shortage(Struct, frozen=True):
    """A refusal: there is not enough of a resource. Amounts in millicores, bytes or numbers."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        """How much must become free (PREE-002)."""
        return self.requested - (self.capacity - self.used)

    @property
    def reason(self) -> str:
        """`OutOf` and the resource, as upstream has it: `OutOfcpu`."""
        return f"OutOf{self.resource}"

    @property
    def message(self) -> str:
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )


def _requests(pods: Sequence[Pod]) -> Sequence[Mapping[str, int]]:
    return [requests_in_use(pod) for pod in pods]


def shortages(
    pod: Pod,
    others: Sequence[Pod],
    allocatable: Mapping[str, int],
    in_use: Callable[[Sequence[Pod]], Sequence[Mapping[str, int]]] = _requests,
) -> tuple[Shortage, ...]:
    """Everything the pod lacks on a node with these amounts (resource -> nano units).

    First the number of pods, then cpu, memory and storage, then the rest by name. Resources that
    `allocatable` does not have are not checked, except for huge pages. `in_use`: what each of
    `others` occupies (`requests_in_use`), which counts until a resize to less has happened
    (CG-061).
    """
    lacks: list[Shortage] = []
    if PODS in allocatable and (len(others) + 1) * NANO > allocatable[PODS]:
        lacks.append(Shortage(PODS, 1, len(others), allocatable[PODS] // NANO))
    requested = {name: amount for name, amount in pod_requests(pod).items() if amount > 0}
    looked_at = [name for name in (*NATIVE, *_scalars(requested)) if name in requested]
    used = in_use(others) if looked_at else ()
    for name in looked_at:
        if name not in allocatable and not name.startswith(HUGE_PAGES):
            continue
        short = Shortage(
            name,
            _units(name, requested[name]),
            sum(_units(name, requests.get(name, 0)) for requests in used),
            allocatable.get(name, 0) // _unit(name),
        )
        if short.missing > 0:
            lacks.append(short)
    return tuple(lacks)


def extended_resources(node: Node) -> dict[str, int]:
    """The extended resources that the Node says it can give to pods, in nano units."""
    amounts = (node.status.allocatable if node.status is not None else None) or {}
    return {name: parse_nano(text) for name, text in amounts.items() if "/" in name}


def _scalars(names: Mapping[str, int]) -> list[str]:
    """Huge pages and extended resources."""
    return sorted(name for name in names if name.startswith(HUGE_PAGES) or "/" in name)


def _unit(name: str) -> int:
    return _NANO_PER_MILLI if name == CPU else NANO


def _units(name: str, amount: int) -> int:
    return -(-amount // _unit(name))
