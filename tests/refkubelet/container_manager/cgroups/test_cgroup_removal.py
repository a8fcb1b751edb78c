"""Removing a pod's group: what is tried again, and for how long (CG-102)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest
from loops import virtual_loop

from refkubelet.container_manager.cgroups.removal import RMDIR_DELAYS_S, remove_all

pytestmark = pytest.mark.virtual_time


class Directory:
    """A group without children whose rmdir fails so many times with that error."""

    def __init__(self, failures: int, code: int) -> None:
        self.failures = failures
        self.code = code
        self.tries = 0

    def __truediv__(self, name: str) -> Directory:
        return self

    def read_text(self) -> str:
        return ""

    def iterdir(self) -> Iterator[Directory]:
        return iter(())

    def exists(self) -> bool:
        return True

    def rmdir(self) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise OSError(self.code, "planted")


async def left_of(directory: Directory) -> list[Any]:
    return list(await remove_all([directory], lambda pid: None, virtual_loop().clock))  # type: ignore[list-item]


@pytest.mark.parametrize("times", [1, 3, len(RMDIR_DELAYS_S)])
async def test_a_group_that_is_busy_is_tried_again_until_it_goes_CG_102(times: int) -> None:
    directory = Directory(times, errno.EBUSY)
    assert await left_of(directory) == []
    assert directory.tries == times + 1


async def test_a_group_that_stays_busy_is_told_CG_102() -> None:
    directory = Directory(10_000, errno.EBUSY)
    assert await left_of(directory) == [directory]
    assert directory.tries == 1 + len(RMDIR_DELAYS_S) + 1


async def test_what_is_refused_for_another_reason_is_not_tried_again_CG_102() -> None:
    directory = Directory(10_000, errno.EPERM)
    assert await left_of(directory) == [directory]
    assert directory.tries == 2  # before its processes are killed, and after


async def test_what_is_not_there_is_removed_CG_102() -> None:
    directory = Directory(10_000, errno.ENOENT)
    assert await left_of(directory) == []
    assert directory.tries == 1
