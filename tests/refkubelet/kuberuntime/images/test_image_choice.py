"""Which images go, with the limits of every rule, and how sizes are told."""

from __future__ import annotations

import pytest

from refkubelet.config import KubeletConfiguration
from refkubelet.kuberuntime.images.choice import (
    ImageGcPolicy,
    KnownImage,
    bytes_to_free,
    format_size,
    images_to_remove,
    images_too_old,
    used_percent,
)


def test_the_policy_is_the_configuration_s_GC_101_GC_103_GC_104() -> None:
    config = KubeletConfiguration(
        image_gc_high_threshold_percent=70,
        image_gc_low_threshold_percent=60,
        image_minimum_gc_age_s=5.0,
        image_maximum_gc_age_s=6.0,
    )
    assert ImageGcPolicy.of(config) == ImageGcPolicy(
        high_percent=70, low_percent=60, min_age_s=5.0, max_age_s=6.0
    )


@pytest.mark.parametrize(
    ("policy", "enabled"),
    [
        (ImageGcPolicy(), True),
        (ImageGcPolicy(high_percent=100), False),
        (ImageGcPolicy(high_percent=99), True),
        (ImageGcPolicy(high_percent=100, max_age_s=1), True),
    ],
)
def test_the_rules_are_off_at_a_hundred_percent_without_an_age_GC_101(
    policy: ImageGcPolicy, enabled: bool
) -> None:
    assert policy.enabled is enabled


@pytest.mark.parametrize(
    ("capacity", "available", "percent"),
    [(1000, 1000, 0), (1000, 2000, 0), (1000, 155, 85), (1000, 149, 86), (1000, 0, 100)],
)
def test_the_free_share_is_rounded_down_GC_101(capacity: int, available: int, percent: int) -> None:
    assert used_percent(capacity, available) == percent


@pytest.mark.parametrize(
    ("capacity", "available", "wanted"),
    [(1000, 160, 0), (1000, 159, 41), (1000, 150, 50), (1009, 0, 201)],
)
def test_the_usage_rule_frees_whole_bytes_GC_101(
    capacity: int, available: int, wanted: int
) -> None:
    found = bytes_to_free(capacity, available, ImageGcPolicy())
    assert (found, type(found)) == (wanted, int)


@pytest.mark.parametrize(("age_s", "goes"), [(119.0, False), (120.0, True)])
def test_an_image_is_young_for_less_than_the_age_EVIC_072(age_s: float, goes: bool) -> None:
    image = KnownImage("a", 1, first_seen_s=10.0)
    chosen = images_to_remove({"a": image}, 10.0 + age_s, 120.0)
    assert chosen == ([image] if goes else [])


@pytest.mark.parametrize(
    ("max_age_s", "now_s", "began_s", "wanted"),
    [
        (0.0, 500.0, 0.0, []),
        (0.5, 500.0, 0.0, ["never", "old", "new"]),
        (100.0, 200.0, 100.0, []),
        (100.0, 201.0, 100.0, ["never"]),
        (100.0, 200.0, 0.0, ["never"]),
        (100.0, 201.0, 0.0, ["never", "old"]),
    ],
)
def test_the_age_rule_counts_what_is_longer_than_the_age_GC_104(
    max_age_s: float, now_s: float, began_s: float, wanted: list[str]
) -> None:
    known = {
        "new": KnownImage("new", 1, first_seen_s=0.0, last_used_s=150.0),
        "old": KnownImage("old", 1, first_seen_s=0.0, last_used_s=100.0),
        "never": KnownImage("never", 1, first_seen_s=0.0),
    }
    if began_s:
        known["old"] = KnownImage("old", 1, first_seen_s=0.0, last_used_s=101.0)
    assert [i.id for i in images_too_old(known, now_s, max_age_s, began_s)] == wanted


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1024.0 KiB"),
        (1024**2, "1.0 MiB"),
        (1024**3, "1.0 GiB"),
        (600 * 1024**3, "600.0 GiB"),
        (1024**4, "1.0 TiB"),
        (1024**5, "1024.0 TiB"),
    ],
)
def test_sizes_are_told_in_the_largest_unit_GC_105(size_bytes: int, text: str) -> None:
    assert format_size(size_bytes) == text
