"""Which disk holds what, and where thresholds of containerfs come from."""

from __future__ import annotations

from typing import Any

import pytest
from eviction_world import MI

from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.config.eviction_thresholds import ThresholdValue
from refkubelet.eviction.layout import (
    Layout,
    containerfs_thresholds,
    disk_of,
    ignored_containerfs,
    layout_of,
)


def texts(thresholds: Any) -> list[str]:
    return [f"{t.signal} {t.value.text} {t.grace_s:g}" for t in thresholds]


NODEFS = {"nodefs.available": "1Gi", "nodefs.inodesFree": "5%"}


IMAGEFS = {"imagefs.available": "2Gi", "imagefs.inodesFree": "6%"}


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        (Layout.ONE, ["containerfs.available 1Gi 0", "containerfs.inodesFree 5% 0"]),
        (Layout.DEDICATED, ["containerfs.available 2Gi 0", "containerfs.inodesFree 6% 0"]),
        (Layout.SPLIT, ["containerfs.available 1Gi 0", "containerfs.inodesFree 5% 0"]),
    ],
)
def test_where_thresholds_of_containerfs_come_from_EVIC_042(layout: Layout, wanted: Any) -> None:
    thresholds = parse_thresholds({**NODEFS, **IMAGEFS, "memory.available": "1Mi"}, {}, {}, {})
    kept, copies = containerfs_thresholds(thresholds, layout)
    assert (kept, texts(copies)) == (thresholds, wanted)


def test_soft_from_soft_with_grace_and_reclaim_EVIC_042() -> None:
    """EVIC-042.3."""
    thresholds = parse_thresholds(
        {}, {"nodefs.available": "1Gi"}, {"nodefs.available": "1m"}, {"nodefs.available": "7Mi"}
    )
    _, (copy,) = containerfs_thresholds(thresholds, Layout.ONE)
    assert (copy.grace_s, copy.min_reclaim) == (60.0, ThresholdValue("7Mi", quantity=7 * MI))
    assert containerfs_thresholds(thresholds, Layout.DEDICATED) == (thresholds, ())


def test_configured_ones_are_overwritten_or_gone_EVIC_042_EVIC_043() -> None:
    thresholds = parse_thresholds(
        {"containerfs.available": "99%", "containerfs.inodesFree": "9%", "nodefs.available": "1Gi"},
        {"containerfs.available": "98%"},
        {"containerfs.available": "1m"},
        {},
    )
    kept, copies = containerfs_thresholds(thresholds, Layout.ONE)
    assert texts(kept) == ["containerfs.available 1Gi 0", "nodefs.available 1Gi 0"]
    assert copies == ()
    assert ignored_containerfs(thresholds) == (
        "found containerfs.available for hard eviction. ignoring",
        "found containerfs.inodesFree for hard eviction. ignoring",
        "found containerfs.available for soft eviction. ignoring",
    )
    assert disk_of("memory.available") is None


def test_copies_come_by_what_they_watch_then_hard_before_soft_EVIC_042() -> None:
    both = {"nodefs.inodesFree": "5%", "nodefs.available": "1Gi"}
    thresholds = parse_thresholds(both, both, dict.fromkeys(both, "1m"), {})
    _, copies = containerfs_thresholds(thresholds, Layout.ONE)
    assert texts(copies) == [
        "containerfs.available 1Gi 0",
        "containerfs.available 1Gi 60",
        "containerfs.inodesFree 5% 0",
        "containerfs.inodesFree 5% 60",
    ]


def test_of_two_hard_ones_the_last_is_put_right_EVIC_042() -> None:
    """EVIC-042.5."""
    signals = {"containerfs.available": "9Gi", "nodefs.available": "1Gi"}
    softer = {"containerfs.available": "8Gi", "nodefs.available": "2Gi"}
    thresholds = parse_thresholds(signals, softer, dict.fromkeys(softer, "0s"), {})
    kept, _ = containerfs_thresholds(thresholds, Layout.ONE)
    assert [t for t in texts(kept) if t.startswith("containerfs")] == [
        "containerfs.available 9Gi 0",
        "containerfs.available 2Gi 0",
    ]


def test_layouts_by_devices_EVIC_040() -> None:
    assert layout_of("a", "a", "a") is Layout.ONE
    assert layout_of("a", "b", "b") is Layout.DEDICATED
    assert layout_of("a", "b", "a") is Layout.SPLIT
    assert layout_of("a", "b", "c") is Layout.SPLIT
    assert layout_of("a", "a", "b") is Layout.ONE
