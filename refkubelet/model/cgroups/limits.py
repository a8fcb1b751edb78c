"""The limits of one cgroup, and the files that set them, with cgroup v1 and v2. Pure.

Rules: CG-021, CG-030, CG-031. Upstream: pkg/kubelet/cm/types.go: ResourceConfig;
cgroup_manager_linux.go: toResources; opencontainers/cgroups fs and fs2: Set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct

from kubeobjects.quantity import QuantityError, parse_integer
from kubeobjects.resource_names import HUGE_PAGES
from kubeobjects.topology import page_size_name
from refkubelet.model.cgroups.cpu_shares import NO_QUOTA, cpu_weight, in_bytes

Version = Literal[1, 2]
UNBOUNDED_HUGEPAGES: Final = 1 << 62
"""The limit of cgroups above pods, in bytes (CG-025, CG-026)."""
_DEFAULT_PERIOD_US: Final = 100_000


class ResourceConfig(Struct, frozen=True):
    """The limits of one cgroup. None: the file is not written, and the kernel's value stays."""

    cpu_shares: int | None = None
    """The shares of v1; with v2 they are written as a weight."""
    cpu_quota_us: int | None = None
    """CPU time in each period; -1: no quota."""
    cpu_period_us: int | None = None
    memory_limit_bytes: int | None = None
    """0 counts as None."""
    pids_limit: int | None = None
    """Negative: no limit."""
    hugepages: Mapping[int, int] | None = None
    """Page size in bytes -> bytes; page sizes of the machine that are missing here are set to 0."""
    cpus: str = ""
    """A list in the kernel's format, such as `0-3`; "": not written."""
    unified: Mapping[str, str] | None = None
    """Further files of v2, name -> text."""


class Write(Struct, frozen=True):
    """A file to write. `optional`: the file is missing on older kernels."""

    controller: str
    file: str
    text: str
    optional: bool = False


def writes(
    config: ResourceConfig, version: Version, page_sizes: Sequence[int] = ()
) -> tuple[Write, ...]:
    """The files for `config`, in the order of writing. `page_sizes`: of the machine, in bytes;
    empty without the hugetlb controller."""
    return tuple(_v1(config, page_sizes) if version == 1 else _v2(config, page_sizes))


def _v1(config: ResourceConfig, page_sizes: Sequence[int]) -> Iterator[Write]:
    if config.cpus:
        yield Write("cpuset", "cpuset.cpus", config.cpus)
    if config.memory_limit_bytes:
        yield Write("memory", "memory.limit_in_bytes", str(config.memory_limit_bytes))
    if config.cpu_shares is not None:
        yield Write("cpu", "cpu.shares", str(config.cpu_shares))
    if config.cpu_period_us:
        yield Write("cpu", "cpu.cfs_period_us", str(config.cpu_period_us))
    if config.cpu_quota_us:
        yield Write("cpu", "cpu.cfs_quota_us", str(config.cpu_quota_us))
    yield from _pids(config)
    yield from _hugepages(config, page_sizes, "limit_in_bytes")


def _v2(config: ResourceConfig, page_sizes: Sequence[int]) -> Iterator[Write]:
    yield from _pids(config)
    if config.memory_limit_bytes:
        yield Write("memory", "memory.max", str(config.memory_limit_bytes))
    if config.cpu_shares is not None:
        yield Write("cpu", "cpu.weight", str(cpu_weight(config.cpu_shares)))
    if config.cpu_quota_us or config.cpu_period_us:
        yield Write("cpu", "cpu.max", cpu_max(config.cpu_quota_us, config.cpu_period_us))
    if config.cpus:
        yield Write("cpuset", "cpuset.cpus", config.cpus)
    yield from _hugepages(config, page_sizes, "max")
    for file, text in (config.unified or {}).items():
        yield Write(file.partition(".")[0], file, text)


def cpu_max(quota_us: int | None, period_us: int | None) -> str:
    """The text of v2's `cpu.max`; no quota or one up to 0 is `max`, the default period 100 ms.

    >>> cpu_max(50_000, 100_000), cpu_max(-1, 100_000), cpu_max(20_000, None)
    ('50000 100000', 'max 100000', '20000 100000')
    """
    quota = str(quota_us) if quota_us and quota_us > 0 else "max"
    return f"{quota} {period_us or _DEFAULT_PERIOD_US}"


def parse_cpu_max(text: str) -> tuple[int, int]:
    """Quota (-1: none) and period of a `cpu.max`. Raises ValueError.

    >>> parse_cpu_max("max 100000"), parse_cpu_max("50000 100000")
    ((-1, 100000), (50000, 100000))
    """
    quota, period = text.split()
    return (NO_QUOTA if quota == "max" else int(quota)), int(period)


def _pids(config: ResourceConfig) -> Iterator[Write]:
    """The file of the pids limit; 0 is written as 1, because systemd refuses 0."""
    if config.pids_limit is not None:
        limit = config.pids_limit
        yield Write("pids", "pids.max", "max" if limit < 0 else str(limit or 1))


def _hugepages(config: ResourceConfig, page_sizes: Sequence[int], suffix: str) -> Iterator[Write]:
    if config.hugepages is None:
        return
    for size in page_sizes:
        name, text = page_size_name(size), str(config.hugepages.get(size, 0))
        yield Write("hugetlb", f"hugetlb.{name}.{suffix}", text)
        yield Write("hugetlb", f"hugetlb.{name}.rsvd.{suffix}", text, optional=True)


def page_resource(page_bytes: int) -> str:
    """The resource's name in pods and nodes.

    >>> page_resource(2 << 20)
    'hugepages-2Mi'
    """
    return f"{HUGE_PAGES}{page_size_name(page_bytes).replace('B', 'i')}"


def hugepages_of(amounts: Mapping[str, int]) -> dict[int, int]:
    """Page size -> bytes, of amounts in nano units; two names of one size are added up.

    >>> hugepages_of({"cpu": 5, "hugepages-2Mi": 4 * 10**9, "hugepages-2048Ki": 2 * 10**9})
    {2097152: 6}
    """
    by_size: dict[int, int] = {}
    for name, amount in amounts.items():
        size = page_bytes(name)
        if size is not None:
            by_size[size] = by_size.get(size, 0) + in_bytes(amount)
    return by_size


def page_bytes(resource: str) -> int | None:
    """The page size in a resource's name; None for a resource other than huge pages.

    >>> page_bytes("hugepages-2Mi"), page_bytes("hugepages-2048Ki"), page_bytes("cpu")
    (2097152, 2097152, None)
    """
    if not resource.startswith(HUGE_PAGES):
        return None
    with suppress(QuantityError):
        return parse_integer(resource.removeprefix(HUGE_PAGES))
    return None
