"""CPU amounts as shares, weights and quotas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.model.cgroups.cpu_shares import (
    cpu_quota_us,
    cpu_shares,
    cpu_weight,
    in_bytes,
    millicores,
    shares_of_weight,
    systemd_quota_us,
)


@pytest.mark.parametrize(
    ("milli", "shares"),
    [(0, 2), (1, 2), (2, 2), (3, 3), (100, 102), (250, 256), (1000, 1024), (1300, 1331),
     (255_999, 262_142), (256_000, 262_144), (256_001, 262_144), (10**9, 262_144)],
)  # fmt: skip
def test_shares_CG_020(milli: int, shares: int) -> None:
    assert cpu_shares(milli) == shares


@pytest.mark.parametrize(
    ("shares", "weight", "back"),
    [(2, 1, 2), (102, 4, 80), (512, 20, 500), (1024, 39, 998), (2048, 79, 2046), (2178, 84, 2177),
     (262_143, 9999, 262_117), (262_144, 10_000, 262_144), (300_000, 10_000, 262_144)],
)  # fmt: skip
def test_weights_and_the_way_back_CG_021(shares: int, weight: int, back: int) -> None:
    assert cpu_weight(shares) == weight
    assert shares_of_weight(weight) == back


@given(st.integers(2, 262_144), st.integers(2, 262_144))
def test_weights_keep_the_order_and_the_kernel_s_range_CG_021(one: int, other: int) -> None:
    small, great = sorted((one, other))
    assert 1 <= cpu_weight(small) <= cpu_weight(great) <= 10_000
    assert shares_of_weight(cpu_weight(small)) <= small
    assert cpu_weight(shares_of_weight(cpu_weight(great))) in (
        cpu_weight(great),
        cpu_weight(great) - 1,
    )


@pytest.mark.parametrize(
    ("milli", "period_us", "quota_us"),
    [(0, 100_000, 0), (1, 100_000, 1000), (10, 100_000, 1000), (11, 100_000, 1100),
     (500, 100_000, 50_000), (1300, 50_000, 65_000), (1, 1_000_000, 1000), (1500, 1000, 1500)],
)  # fmt: skip
def test_quotas_CG_020(milli: int, period_us: int, quota_us: int) -> None:
    assert str(cpu_quota_us(milli, period_us)) == str(quota_us)  # no fraction


@pytest.mark.parametrize(
    ("quota_us", "period_us", "rounded_us"),
    [(33_300, 100_000, 34_000), (50_000, 100_000, 50_000), (1000, 100_000, 1000),
     (1001, 100_000, 2000), (-1, 100_000, -1), (0, 100_000, 0), (16_650, 50_000, 17_000),
     (333, 1000, 340)],
)  # fmt: skip
def test_systemd_counts_hundredths_CG_031(quota_us: int, period_us: int, rounded_us: int) -> None:
    assert str(systemd_quota_us(quota_us, period_us)) == str(rounded_us)


@given(st.integers(1, 64_000), st.sampled_from([1000, 50_000, 100_000, 1_000_000]))
def test_rounding_takes_nothing_away_CG_031(milli: int, period_us: int) -> None:
    quota_us = cpu_quota_us(milli, period_us)
    rounded_us = systemd_quota_us(quota_us, period_us)
    assert quota_us <= rounded_us <= quota_us + period_us // 100 + 1
    assert systemd_quota_us(rounded_us, period_us) == rounded_us


def test_amounts_are_rounded_up() -> None:
    assert str([millicores(n) for n in (0, 1, 10**6, 10**6 + 1)]) == "[0, 1, 1, 2]"
    assert [in_bytes(n) for n in (0, 1, 10**9, 10**9 + 1)] == [0, 1, 1, 2]
