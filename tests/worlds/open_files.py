"""A test that leaves files or sockets open fails, instead of the hundredth one after it.

A pytest plugin: tests/conftest.py takes its hooks. A few may stay, such as what gRPC keeps until
garbage is collected, and what a fixture of a module or of the whole run has opened.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Mapping
from typing import Final

import pytest

MAY_STAY: Final = 12
"""More than these, and a limit of 256 is reached before garbage is collected."""
REAL_FOLDERS: Final = {"verified", "containerd"}
"""Folders of tests that work on a real runtime."""
_KEY: Final = pytest.StashKey[Mapping[str, str]]()


def open_files() -> dict[str, str]:
    """The descriptors of this process, each with what it is: a path, or `socket:[123]`."""
    seen = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            seen[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the directory itself was open while it was listed
            continue
    return seen


def complaint(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """What is to be said of a test that had these open files before and after it, or "". Pure.

    >>> complaint({"0": "/dev/null"}, {"0": "/dev/null", "1": "/tmp/x"})
    ''
    """
    if len(after) - len(before) <= MAY_STAY:
        return ""
    new = Counter(re.sub(r"\d+", "N", after[n]) for n in after if before.get(n) != after[n])
    told = ", ".join(f"{count} x {what}" for what, count in new.most_common(5))
    return (
        f"the test left {len(after) - len(before)} files open, at most {MAY_STAY} may stay: {told}"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    item.stash[_KEY] = open_files()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    if item.get_closest_marker("real") or REAL_FOLDERS & set(item.path.parts):
        return  # connections to a real runtime are of all its tests, and gRPC keeps its own
    if problem := complaint(item.stash[_KEY], open_files()):
        pytest.fail(problem, pytrace=False)
