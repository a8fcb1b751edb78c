"""Limits of containers: as messages, and as cgroup files that a runtime writes for them. No I/O.

Files are written in the order of `settings`. Weights are converted as runc up to 1.3 does it
(CG-022). A field that is 0 or empty is not written: the kernel's default stays. What must never
happen here: a limit that the request does not have, or a message of a caller is changed or kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

DEFAULT_PERIOD_US: Final = 100_000
MEMORY_LIMIT_V1: Final = "memory.limit_in_bytes"
_MIN_SHARES, _MAX_SHARES = 2, 262_144
M = TypeVar("M", bound=Message)


def copied(message: M) -> M:
    """A message that equals this one and shares nothing with it."""
    fresh = type(message)()
    fresh.CopyFrom(message)
    return fresh


def complete(resources: pb.LinuxContainerResources) -> None:
    """Without a swap limit of its own, a memory limit is the swap limit too (CRI-120)."""
    if resources.memory_limit_in_bytes > 0 and resources.memory_swap_limit_in_bytes == 0:
        resources.memory_swap_limit_in_bytes = resources.memory_limit_in_bytes


def update(resources: pb.LinuxContainerResources, wanted: pb.LinuxContainerResources) -> None:
    """UpdateContainerResources: only the non-zero fields of `wanted` change (CRI-121)."""
    if wanted.hugepage_limits:
        del resources.hugepage_limits[:]  # a merge would append
    resources.MergeFrom(wanted)
    if wanted.memory_limit_in_bytes and not wanted.memory_swap_limit_in_bytes:
        resources.memory_swap_limit_in_bytes = wanted.memory_limit_in_bytes


class Setting(NamedTuple):
    """A text for a file; `required`: without the file it is an error."""

    controller: str
    file: str
    text: str
    required: bool = False


def weight(shares: int) -> int:
    """cpu.weight for CPU shares.

    >>> [weight(shares) for shares in (2, 102, 1024, 2048)]
    [1, 4, 39, 79]
    """
    shares = min(max(shares, _MIN_SHARES), _MAX_SHARES)
    return 1 + (shares - _MIN_SHARES) * 9999 // (_MAX_SHARES - _MIN_SHARES)


def settings(
    version: int, resources: pb.LinuxContainerResources, memory_limit_bytes: int | None = None
) -> list[Setting]:
    """Of a new container, or of an update; `memory_limit_bytes`: what it has now, None for none."""
    both = _v2(resources) if version == 2 else _v1(resources, memory_limit_bytes)
    both += [
        Setting("cpuset", f"cpuset.{kind}", text)
        for kind, text in (("cpus", resources.cpuset_cpus), ("mems", resources.cpuset_mems))
        if text
    ]
    suffix = "max" if version == 2 else "limit_in_bytes"
    both += [
        Setting("hugetlb", f"hugetlb.{limit.page_size}.{suffix}", str(limit.limit))
        for limit in resources.hugepage_limits
    ]
    return both


def _v2(resources: pb.LinuxContainerResources) -> list[Setting]:
    settings = []
    if resources.cpu_shares:
        settings.append(Setting("cpu", "cpu.weight", str(weight(resources.cpu_shares))))
    if resources.cpu_quota or resources.cpu_period:
        quota = str(resources.cpu_quota) if resources.cpu_quota > 0 else "max"
        period = resources.cpu_period or DEFAULT_PERIOD_US
        settings.append(Setting("cpu", "cpu.max", f"{quota} {period}"))
    limit, with_swap = resources.memory_limit_in_bytes, resources.memory_swap_limit_in_bytes
    if limit:
        settings.append(Setting("memory", "memory.max", str(limit) if limit > 0 else "max"))
    if with_swap:
        swap = str(max(0, with_swap - limit)) if with_swap > 0 else "max"
        settings.append(Setting("memory", "memory.swap.max", swap))
    return settings + _unified(resources.unified)


def _unified(unified: Mapping[str, str]) -> list[Setting]:
    return [
        Setting(name.partition(".")[0], name, unified[name], required=True)
        for name in sorted(unified)
    ]


def _v1(resources: pb.LinuxContainerResources, current: int | None) -> list[Setting]:
    amounts = (
        ("cpu", "cpu.shares", resources.cpu_shares),
        ("cpu", "cpu.cfs_period_us", resources.cpu_period),
        ("cpu", "cpu.cfs_quota_us", resources.cpu_quota),
        *_v1_memory(resources, current),
    )
    return [
        Setting(controller, file, str(amount)) for controller, file, amount in amounts if amount
    ]


def _v1_memory(
    resources: pb.LinuxContainerResources, current: int | None
) -> tuple[tuple[str, str, int], ...]:
    """Memory must never be above memory with swap, so what grows is written from the top."""
    limit, with_swap = resources.memory_limit_in_bytes, resources.memory_swap_limit_in_bytes
    if limit < 0:
        with_swap = with_swap or -1
    memory = ("memory", MEMORY_LIMIT_V1, limit)
    swap = ("memory", "memory.memsw.limit_in_bytes", with_swap)
    grows = with_swap < 0 or (current is not None and current < with_swap)
    return (swap, memory) if limit and with_swap and grows else (memory, swap)
