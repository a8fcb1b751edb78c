"""Computes the allocatable resources of the node from its capacity and reservations. Pure.

Amounts are resource name -> nano units. Rules: CG-034, NODE-031. Upstream:
pkg/kubelet/cm/node_container_manager_linux.go; helpers.go: hardEvictionReservation;
pkg/kubelet/nodestatus/setters.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubeobjects.quantity import NANO, Form, Quantity, format_decimal_nano, parse_nano
from kubeobjects.resource_names import HUGE_PAGES
from refkubelet.config.eviction_grammar import parse_thresholds

Amounts = Mapping[str, int]
RESERVED_BY_SIGNAL: Final = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
"""The hard eviction thresholds that reserve capacity: signal -> resource."""


def parsed(amounts: Mapping[str, str]) -> dict[str, int]:
    """The quantities of a configuration, in nano units. Raises `QuantityError`."""
    return {name: parse_nano(text) for name, text in amounts.items()}


def eviction_reservation(capacity: Amounts, eviction_hard: Mapping[str, str]) -> dict[str, int]:
    """The amounts that the hard eviction thresholds reserve. Raises `ThresholdError`."""
    reserved: dict[str, int] = {}
    for threshold in parse_thresholds(eviction_hard, {}, {}, {}):
        name = RESERVED_BY_SIGNAL.get(threshold.signal)
        if name is not None:
            reserved[name] = threshold.value.amount(capacity.get(name, 0) // NANO) * NANO
    return reserved


def reservation(capacity: Amounts, reserved: Sequence[Amounts]) -> dict[str, int]:
    """The sum of the reservations, for the resources of `capacity`."""
    sums = {name: sum(amounts.get(name, 0) for amounts in reserved) for name in capacity}
    return {name: amount for name, amount in sums.items() if amount}


def enforced(capacity: Amounts, reserved: Sequence[Amounts]) -> dict[str, int]:
    """The limits of the cgroup of all pods. `reserved`: without the eviction thresholds, so that
    these are reached before the limits."""
    total = reservation(capacity, reserved)
    return {name: max(0, amount - total.get(name, 0)) for name, amount in capacity.items()}


def allocatable_of(capacity: Amounts, reserved: Sequence[Amounts]) -> dict[str, int]:
    """The allocatable resources of the Node object. `reserved`: with the eviction thresholds. The
    memory of huge pages is subtracted from `memory`."""
    result = enforced(capacity, reserved)
    pages = sum(amount for name, amount in capacity.items() if name.startswith(HUGE_PAGES))
    if "memory" in result:
        result["memory"] = max(0, result["memory"] - pages)
    return result


def impossible_reservation(capacity: Amounts, reserved: Sequence[Amounts]) -> str | None:
    """Why the kubelet cannot start with these reservations; None: it can."""
    too_much = [
        f'Resource "{name}" has a reservation of {shown(name, amount)} but capacity of '
        f"{shown(name, capacity[name])}. Expected capacity >= reservation."
        for name, amount in reservation(capacity, reserved).items()
        if amount > capacity[name]
    ]
    if not too_much:
        return None
    return f"invalid Node Allocatable configuration. {' '.join(too_much)}"


def shown(name: str, amount: int) -> str:
    """An amount as a quantity of the API: bytes in powers of 1024, others decimal."""
    if name in ("memory", "ephemeral-storage") or name.startswith(HUGE_PAGES):
        return str(Quantity(amount, Form.BINARY))
    return format_decimal_nano(amount)
