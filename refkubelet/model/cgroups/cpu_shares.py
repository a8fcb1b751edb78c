"""Converts CPU amounts to the kernel's shares, weights and quotas. Pure.

Rules: CG-020, CG-021. Upstream: pkg/kubelet/cm/helpers_linux.go: MilliCPUToShares, MilliCPUToQuota;
cgroup_manager_linux.go: getCPUWeight; cgroup_v2_manager_linux.go: cpuWeightToCPUShares.
"""

from __future__ import annotations

from typing import Final

from kubeobjects.quantity import NANO

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144
MAX_WEIGHT: Final = 10_000
SHARES_PER_CPU: Final = 1024
MIN_QUOTA_US: Final = 1000
HUNDREDTH_US: Final = 10_000
"""A hundredth of a second of CPU time; systemd rounds quotas to this unit."""
NO_QUOTA: Final = -1
"""Written as -1 (v1), `max` (v2)."""
MOST: Final = (1 << 63) - 1
"""The greatest number in the CRI and the kernel; larger amounts are cut to it."""


def cpu_shares(millicores: int) -> int:
    """The cgroup v1 shares, at least 2, the kernel's minimum.

    >>> cpu_shares(0), cpu_shares(250), cpu_shares(1000), cpu_shares(10**9)
    (2, 256, 1024, 262144)
    """
    return min(max(millicores * SHARES_PER_CPU // 1000, MIN_SHARES), MAX_SHARES)


def cpu_weight(shares: int) -> int:
    """The cgroup v2 weight of `shares`.

    >>> [cpu_weight(s) for s in (2, 102, 512, 1024, 2048, 262144)]
    [1, 4, 20, 39, 79, 10000]
    """
    above_least = min(shares, MAX_SHARES) - MIN_SHARES
    return 1 + above_least * (MAX_WEIGHT - 1) // (MAX_SHARES - MIN_SHARES)


def shares_of_weight(weight: int) -> int:
    """The cgroup v1 shares of a v2 weight. The inverse is not exact: 1024 shares become 998.

    >>> [shares_of_weight(w) for w in (1, 4, 20, 39, 79, 10000)]
    [2, 80, 500, 998, 2046, 262144]
    """
    return (weight - 1) * (MAX_SHARES - MIN_SHARES) // (MAX_WEIGHT - 1) + MIN_SHARES


def cpu_quota_us(millicores: int, period_us: int) -> int:
    """The CFS quota in microseconds per period, at least 1000; 0: no quota.

    >>> cpu_quota_us(500, 100_000), cpu_quota_us(1, 100_000), cpu_quota_us(0, 100_000)
    (50000, 1000, 0)
    """
    quota_us = min(millicores * period_us // 1000, MOST)
    return max(quota_us, MIN_QUOTA_US) if millicores else 0


def systemd_quota_us(quota_us: int, period_us: int) -> int:
    """The quota as systemd sets it, rounded up to a hundredth of a CPU (CG-031).

    >>> systemd_quota_us(33_300, 100_000), systemd_quota_us(50_000, 100_000)
    (34000, 50000)
    """
    if quota_us == NO_QUOTA:
        return NO_QUOTA
    per_second_us = quota_us * 1_000_000 // period_us
    if per_second_us % HUNDREDTH_US == 0:
        return quota_us
    return (per_second_us // HUNDREDTH_US + 1) * HUNDREDTH_US * period_us // 1_000_000


def millicores(nano_cores: int) -> int:
    """Thousandths of a core, rounded up."""
    return min(-(-nano_cores // (NANO // 1000)), MOST)


def in_bytes(nano_bytes: int) -> int:
    """Whole bytes, rounded up.

    >>> in_bytes(1), in_bytes(10**30 * NANO) == MOST
    (1, True)
    """
    return min(-(-nano_bytes // NANO), MOST)
