"""Limits of containers as messages: copied, completed, updated. Pure.

What must never happen here: a message of a caller is changed or kept.
"""

from __future__ import annotations

from typing import TypeVar

from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)


def copied(message: M) -> M:
    """A message of its own."""
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
