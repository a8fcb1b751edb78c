"""Which devices a container gets, and what it is told when there are none (CG-084)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.container_manager.devices.choose import (
    Nearness,
    Pick,
    Unavailable,
    Want,
    by_nearness,
    check_unchanged,
    still_needed,
)
from refkubelet.container_manager.devices.types import Device, by_node

GPU = "vendor.example/gpu"


def want(count: int, *had: str) -> Want:
    return Want(
        pod_uid="uid-1",
        container="main",
        resource=GPU,
        count=count,
        had=frozenset(had) if had else None,
    )


@pytest.mark.parametrize(
    ("wish", "healthy", "needed"),
    [
        (want(2), {"a", "b", "c"}, 2),
        (want(2, "a", "b"), {"a", "b"}, 0),
        (want(0), {"a"}, 0),
    ],
)
def test_how_many_are_still_needed_CG_084(wish: Want, healthy: set[str], needed: int) -> None:
    check_unchanged(wish)
    assert still_needed(wish, healthy) == needed


@pytest.mark.parametrize(
    ("wish", "healthy", "text"),
    [
        (want(1), None, f"cannot allocate unregistered device {GPU}"),
        (
            want(1),
            set(),
            f"no healthy devices present; cannot allocate unhealthy devices {GPU}",
        ),
        (
            want(1, "a"),
            {"b"},
            "previously allocated devices are no longer healthy; "
            f"cannot allocate unhealthy devices {GPU}",
        ),
        (want(1, "a"), None, f"cannot allocate unregistered device {GPU}"),
        (want(0), set(), f"no healthy devices present; cannot allocate unhealthy devices {GPU}"),
    ],
)
def test_what_cannot_be_given_CG_084(wish: Want, healthy: set[str] | None, text: str) -> None:
    with pytest.raises(Unavailable) as error:
        still_needed(wish, healthy)
    assert str(error.value) == text


def test_a_container_that_asks_for_another_number_than_it_has_CG_084() -> None:
    with pytest.raises(Unavailable) as error:
        check_unchanged(want(3, "a", "b"))
    assert str(error.value) == (
        f'pod "uid-1" container "main" changed request for resource "{GPU}" from 2 to 3'
    )


def test_a_pick_takes_the_smallest_first_and_nothing_twice() -> None:
    pick = Pick(3)
    assert not pick.take({"c", "b"})
    assert pick.take({"b", "d", "a"})
    assert pick.taken == ["b", "c", "a"]
    assert pick.needed == 0


def test_a_pick_that_needs_nothing_takes_nothing() -> None:
    pick = Pick(0)
    assert pick.take({"a"})
    assert pick.taken == []


KNOWN = {
    "a0": Device("a0", nodes=(0,)),
    "b1": Device("b1", nodes=(1,)),
    "c01": Device("c01", nodes=(0, 1)),
    "d": Device("d"),
}


@pytest.mark.parametrize(
    ("affinity", "aligned", "unaligned", "no_affinity"),
    [
        (None, "", "", "a0 b1 c01 d"),
        (0b01, "a0 c01", "b1", "d"),
        (0b10, "b1 c01", "a0", "d"),
        (0b11, "a0 b1 c01", "", "d"),
        (0b100, "", "a0 b1 c01", "d"),
    ],
)
def test_devices_by_the_merged_hint_CG_084(
    affinity: int | None, aligned: str, unaligned: str, no_affinity: str
) -> None:
    near = by_nearness(set(KNOWN), KNOWN, affinity)
    groups = (aligned, unaligned, no_affinity)
    assert near == Nearness(*(frozenset(names.split()) for names in groups))


def test_devices_that_are_not_available_are_in_no_group() -> None:
    assert by_nearness({"b1"}, KNOWN, 0b01) == Nearness(unaligned=frozenset({"b1"}))


def test_without_any_numa_node_all_are_alike() -> None:
    known = {"x": Device("x"), "y": Device("y")}
    assert by_nearness({"x"}, known, 0b1) == Nearness(no_affinity=frozenset({"x"}))


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.sets(st.integers(0, 3)), max_size=8),
    st.integers(1, 15) | st.none(),
    st.data(),
)
def test_every_available_device_is_in_exactly_one_group(
    nodes: dict[str, set[int]], affinity: int | None, data: st.DataObject
) -> None:
    known = {name: Device(name, nodes=tuple(sorted(n))) for name, n in nodes.items()}
    available = data.draw(st.sets(st.sampled_from(sorted(known))) if known else st.just(set()))
    near = by_nearness(available, known, affinity)
    groups = [near.aligned, near.unaligned, near.no_affinity]
    assert sorted(one for group in groups for one in group) == sorted(available)
    if affinity is not None:
        assert all(any(affinity >> n & 1 for n in known[one].nodes) for one in near.aligned)


def test_devices_by_numa_node() -> None:
    assert by_node(["a0", "c01", "d", "new"], KNOWN) == {
        0: ("a0", "c01"),
        1: ("c01",),
        -1: ("d", "new"),
    }
