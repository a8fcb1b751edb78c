"""From which NUMA nodes devices could be given (CG-083, CG-084)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.container_manager.devices.hints import device_hints, is_aligned
from refkubelet.container_manager.devices.types import Device
from refkubelet.container_manager.providers.hints import TopologyHint

NONE = frozenset[str]()


def devices(**nodes: int | tuple[int, ...]) -> dict[str, Device]:
    return {
        name: Device(name, nodes=(where,) if isinstance(where, int) else where)
        for name, where in nodes.items()
    }


TWO_AND_TWO = devices(a=0, b=0, c=1, d=1)


@pytest.mark.parametrize(
    ("available", "count", "hints"),
    [
        ("abcd", 1, {0b01: True, 0b10: True, 0b11: False}),
        ("abcd", 2, {0b01: True, 0b10: True, 0b11: False}),
        ("abcd", 3, {0b11: True}),
        ("acd", 2, {0b10: True, 0b11: False}),
        ("ac", 2, {0b11: False}),  # one node could do, were all devices free
        ("", 1, {}),
    ],
)
def test_hints_of_two_nodes_with_two_devices_each_CG_084(
    available: str, count: int, hints: dict[int, bool]
) -> None:
    found = device_hints(
        TWO_AND_TWO, available=set(available), reusable=NONE, count=count, numa_nodes=(0, 1)
    )
    assert found == tuple(TopologyHint(mask, wanted) for mask, wanted in hints.items())


def test_reusable_devices_must_be_among_the_nodes_CG_084() -> None:
    found = device_hints(
        TWO_AND_TWO, available={"b", "d"}, reusable=frozenset("c"), count=2, numa_nodes=(0, 1)
    )
    assert found == (TopologyHint(0b10, True), TopologyHint(0b11, False))


def test_reusable_devices_alone_may_do_CG_084() -> None:
    found = device_hints(
        devices(a=0, c=1), available=NONE, reusable=frozenset("a"), count=1, numa_nodes=(0, 1)
    )
    assert found == (TopologyHint(0b01, True), TopologyHint(0b11, False))


def test_reusable_devices_without_a_node_say_nothing() -> None:
    known = TWO_AND_TWO | {"x": Device("x")}
    found = device_hints(
        known, available={"a", "b"}, reusable=frozenset("x"), count=2, numa_nodes=(0, 1)
    )
    assert found == (TopologyHint(0b01, True), TopologyHint(0b11, False))


def test_nodes_without_devices_are_not_combined_CG_084() -> None:
    found = device_hints(
        devices(a=2, b=5), available=set("ab"), reusable=NONE, count=2, numa_nodes=tuple(range(8))
    )
    assert found == (TopologyHint(0b100100, True),)


def test_nodes_that_the_machine_lacks_count_for_nothing() -> None:
    found = device_hints(
        devices(a=0, b=7), available=set("ab"), reusable=NONE, count=1, numa_nodes=(0, 1)
    )
    assert found == (TopologyHint(0b1, True),)


def test_a_device_near_two_nodes_counts_for_both() -> None:
    found = device_hints(
        devices(a=(0, 1)), available={"a"}, reusable=NONE, count=1, numa_nodes=(0, 1)
    )
    assert found == (TopologyHint(0b01, True), TopologyHint(0b10, True), TopologyHint(0b11, False))


@pytest.mark.parametrize(
    ("known", "aligned"),
    [({}, False), ({"a": Device("a")}, False), (TWO_AND_TWO | {"x": Device("x")}, True)],
)
def test_one_device_that_names_a_node_is_enough(known: dict[str, Device], aligned: bool) -> None:
    assert is_aligned(known.values()) is aligned


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.integers(1, 6),
    st.data(),
)
def test_every_hint_has_room_and_wider_ones_too(
    where: list[int], count: int, data: st.DataObject
) -> None:
    """A set of nodes with room keeps it when nodes are added; the preferred ones are equally wide
    and none narrower has room for that many devices at all."""
    known = {str(n): Device(str(n), nodes=(node,)) for n, node in enumerate(where)}
    available = data.draw(st.sets(st.sampled_from(sorted(known))))
    masks = {
        h.affinity: h.preferred
        for h in device_hints(
            known, available=available, reusable=NONE, count=count, numa_nodes=(0, 1, 2, 3)
        )
    }
    for mask in masks:
        assert mask is not None
        assert sum(mask >> known[one].nodes[0] & 1 for one in available) >= count
        wider = [m for m in masks if m is not None and m & mask == mask]
        outside = [n for n in set(where) if not mask >> n & 1]
        assert len(wider) == 2 ** len(outside)
    widths = {m.bit_count() for m, preferred in masks.items() if preferred and m is not None}
    assert len(widths) <= 1
