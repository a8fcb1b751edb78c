"""Limits as the files that are written, v1 and v2."""

from __future__ import annotations

from typing import Any

import pytest

from kubeobjects.topology import page_size_name
from refkubelet.model.cgroups.limits import (
    ResourceConfig,
    Write,
    cpu_max,
    hugepages_of,
    page_resource,
    parse_cpu_max,
    writes,
)

MI, GI = 1 << 20, 1 << 30
FULL = ResourceConfig(
    cpu_shares=512,
    cpu_quota_us=50_000,
    cpu_period_us=100_000,
    memory_limit_bytes=64 * MI,
    pids_limit=100,
    hugepages={2 * MI: 8 * MI},
    cpus="0-3",
    unified={"memory.min": "5"},
)


def lines(config: ResourceConfig, version: Any, sizes: tuple[int, ...] = ()) -> list[str]:
    return [f"{w.controller} {w.file}={w.text}" for w in writes(config, version, sizes)]


def test_files_of_v1_CG_030_CG_031() -> None:
    assert lines(FULL, 1, (2 * MI, GI)) == [
        "cpuset cpuset.cpus=0-3",
        "memory memory.limit_in_bytes=67108864",
        "cpu cpu.shares=512",
        "cpu cpu.cfs_period_us=100000",
        "cpu cpu.cfs_quota_us=50000",
        "pids pids.max=100",
        "hugetlb hugetlb.2MB.limit_in_bytes=8388608",
        "hugetlb hugetlb.2MB.rsvd.limit_in_bytes=8388608",
        "hugetlb hugetlb.1GB.limit_in_bytes=0",
        "hugetlb hugetlb.1GB.rsvd.limit_in_bytes=0",
    ]


def test_files_of_v2_CG_021_CG_030_CG_031() -> None:
    assert lines(FULL, 2, (2 * MI, GI)) == [
        "pids pids.max=100",
        "memory memory.max=67108864",
        "cpu cpu.weight=20",
        "cpu cpu.max=50000 100000",
        "cpuset cpuset.cpus=0-3",
        "hugetlb hugetlb.2MB.max=8388608",
        "hugetlb hugetlb.2MB.rsvd.max=8388608",
        "hugetlb hugetlb.1GB.max=0",
        "hugetlb hugetlb.1GB.rsvd.max=0",
        "memory memory.min=5",
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_not_said_is_not_written_CG_030(version: Any) -> None:
    assert lines(ResourceConfig(), version, (2 * MI,)) == []
    assert lines(ResourceConfig(hugepages={}), version) == []


@pytest.mark.parametrize("version", [1, 2])
def test_no_memory_is_never_written_CG_031(version: Any) -> None:
    assert lines(ResourceConfig(memory_limit_bytes=0), version) == []


@pytest.mark.parametrize(
    ("config", "v1", "v2"),
    [
        (
            ResourceConfig(cpu_quota_us=-1, cpu_period_us=50_000),
            ["cpu cpu.cfs_period_us=50000", "cpu cpu.cfs_quota_us=-1"],
            ["cpu cpu.max=max 50000"],
        ),
        (
            ResourceConfig(cpu_quota_us=0, cpu_period_us=100_000),
            ["cpu cpu.cfs_period_us=100000"],
            ["cpu cpu.max=max 100000"],
        ),
        (
            ResourceConfig(cpu_quota_us=20_000),
            ["cpu cpu.cfs_quota_us=20000"],
            ["cpu cpu.max=20000 100000"],
        ),
        (ResourceConfig(cpu_shares=0), ["cpu cpu.shares=0"], ["cpu cpu.weight=0"]),
    ],
)
def test_cpu_CG_031(config: ResourceConfig, v1: list[str], v2: list[str]) -> None:
    assert lines(config, 1) == v1
    assert lines(config, 2) == v2


@pytest.mark.parametrize(("limit", "text"), [(-1, "max"), (0, "1"), (1, "1"), (32_768, "32768")])
@pytest.mark.parametrize("version", [1, 2])
def test_processes_CG_024(limit: int, text: str, version: Any) -> None:
    assert lines(ResourceConfig(pids_limit=limit), version) == [f"pids pids.max={text}"]


def test_only_the_limits_of_reservations_may_be_missing_CG_030() -> None:
    found = writes(FULL, 2, (2 * MI,))
    assert [w.file for w in found if w.optional] == ["hugetlb.2MB.rsvd.max"]
    assert Write("cpu", "cpu.shares", "2").optional is False


@pytest.mark.parametrize("pair", [(-1, 100_000), (50_000, 100_000), (1000, 1000)])
def test_cpu_max_is_read_as_it_is_written_CG_031(pair: tuple[int, int]) -> None:
    assert parse_cpu_max(cpu_max(*pair) + "\n") == pair


def test_sizes_of_huge_pages_CG_030() -> None:
    assert [page_size_name(n) for n in (64 << 10, 2 * MI, 512 * MI, GI, 16 * GI)] == [
        "64KB",
        "2MB",
        "512MB",
        "1GB",
        "16GB",
    ]
    assert [page_resource(n) for n in (64 << 10, 2 * MI, GI)] == [
        "hugepages-64Ki",
        "hugepages-2Mi",
        "hugepages-1Gi",
    ]
    nano = 10**9
    amounts = {"cpu": nano, "hugepages-1Gi": GI * nano, "hugepages-2Mi": 1}
    assert hugepages_of(amounts) == {GI: GI, 2 * MI: 1}


def test_two_names_of_a_page_size_add_up_CG_030() -> None:
    """CG-030.3."""
    nano = 10**9
    amounts = {"hugepages-2Mi": 4 * MI * nano, "hugepages-2048Ki": 2 * MI * nano}
    assert hugepages_of(amounts) == {2 * MI: 6 * MI}
    assert hugepages_of({"hugepages-none": nano}) == {}
