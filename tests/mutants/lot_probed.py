"""The side of pytest of `lot_tests.py`: which statements does each of our tests run?

`refkubelet` is a copy with probes there; its `__init__` calls `listen`, so that each process in
which it is imported has a table: a file that is mapped. Programs that a test starts have their own
in the same folder. After each test the plugin writes down what was reached in all of them.
"""

from __future__ import annotations

import base64
import builtins
import mmap
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from mutant_probes import NOTES
from unit_mutant_forks import add, used_s

COUNT: Final = "REFKUBELET_LOT_STATEMENTS"
"""So many statements have probes."""
TABLES: Final = "REFKUBELET_LOT_TABLES"
"""The folder of the tables."""
TOLD: Final = "REFKUBELET_LOT_TOLD"
"""The file that gets a line for each test."""


def listen() -> None:
    """From now on probes write into a file of this process."""
    count = int(os.environ[COUNT])
    descriptor, _ = tempfile.mkstemp(dir=os.environ[TABLES])
    os.ftruncate(descriptor, count)
    setattr(builtins, NOTES, mmap.mmap(descriptor, count))
    os.close(descriptor)


def heard(folder: Path) -> bytes:
    """Of each statement whether it was reached since the last time: in this process and its forks,
    or in one of the programs whose tables are there."""
    own: mmap.mmap = getattr(builtins, NOTES)
    count = len(own)
    reached = int.from_bytes(own[:], "big")
    own[:] = bytes(count)
    for file in folder.iterdir():
        reached |= int.from_bytes(file.read_bytes(), "big")
        file.unlink()
    return reached.to_bytes(count, "big")


def pytest_configure() -> None:
    """The programs that tests of this worker start have a folder of their own."""
    os.environ[TABLES] = tempfile.mkdtemp(prefix="t", dir=os.environ[TABLES])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Write down what the test has reached, with all that it needed."""
    folder, began_s = Path(os.environ[TABLES]), used_s()
    done = yield
    table = base64.b64encode(zlib.compress(heard(folder))).decode()
    seconds = round(used_s() - began_s, 4)
    add(os.environ[TOLD], [item.nodeid, seconds, item.nodeid not in _failed, table])  # type: ignore[arg-type]
    return done


_failed: Final[set[str]] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember those that say nothing about mutants."""
    if not report.passed:
        _failed.add(report.nodeid)
