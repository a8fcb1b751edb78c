"""Processes that run some of the tests of a pytest session: forks of the one that collected them.

Collecting takes a hundred times as long as running one test, and is done once.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

MEMORY_BYTES: Final = 3 << 30
AT: Final = "at"
"""The file in which a process writes which test it runs."""


@dataclass(eq=False)  # pytest puts its plugins into sets
class Watch:
    """Whether a test failed."""

    failed: bool = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Fixtures may fail as well."""
        self.failed |= report.failed


@dataclass(frozen=True)
class Child:
    """A process that runs tests."""

    about: Any
    """What it was started for."""
    folder: Path
    """Its temporary files."""


@dataclass(frozen=True)
class Ended:
    """How one has ended."""

    about: Any
    verdict: str
    test: str
    """The last one that it ran: the one that failed or took too long, if there is such."""
    folder: Path = Path()
    """Where its temporary files were."""


@dataclass
class Forks:
    """Starts processes, and waits for them."""

    session: pytest.Session
    items: Mapping[str, pytest.Item]
    running: dict[int, Child] = field(default_factory=dict)

    def start(self, about: Any, work: Callable[[Path], bool]) -> int:
        """`work`, which gets the folder of the process, says whether all is well; its process."""
        # a short name: tests make sockets there, whose paths must not be long
        folder = Path(tempfile.mkdtemp(prefix="m"))
        child = os.fork()
        if child == 0:
            code = 70
            try:
                self._settle_in(folder)
                code = 0 if work(folder) else 1
            finally:
                os._exit(code)
        self.running[child] = Child(about, folder)
        return child

    def _settle_in(self, folder: Path) -> None:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        self.session.config.pluginmanager.unregister(name="terminalreporter")

    def run_here(
        self, tests: Sequence[str], folder: Path, allowed_s: Callable[[str], float]
    ) -> Iterator[bool]:
        """In the process: run the tests; after each, whether it passed. One that takes more
        processor time than it is allowed ends the process."""
        watch = Watch()
        self.session.config.pluginmanager.register(watch)
        items = [self.items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            (folder / AT).write_text(item.nodeid)
            watch.failed = False
            signal.setitimer(signal.ITIMER_PROF, allowed_s(item.nodeid))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield not watch.failed

    def wait(self, process: int = -1) -> Ended:
        """Until that one, or any one, has ended."""
        pid, status = os.waitpid(process, 0)
        child = self.running.pop(pid)
        at = child.folder / AT
        test = at.read_text() if at.exists() else ""
        shutil.rmtree(child.folder, ignore_errors=True)
        said = verdict(os.waitstatus_to_exitcode(status))
        return Ended(child.about, said, test, child.folder)


def verdict(exit_code: int) -> str:
    """Of a process.

    >>> verdict(0), verdict(1), verdict(-27)
    ('survived', 'killed', 'timeout')
    """
    if exit_code in (0, 1):
        return ("survived", "killed")[exit_code]
    return "timeout" if exit_code == -signal.SIGPROF else "suspicious"


def used_s() -> float:
    """Processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def add(file: str, line: Mapping[str, object] | str) -> None:
    """A line of JSON, in one write: several processes add lines."""
    with open(file, "ab", buffering=0) as target:
        target.write((json.dumps(line) + "\n").encode())


def lines_of(file: str) -> list[Any]:
    """What is in such a file; its last line may have been cut off."""
    if not Path(file).exists():
        return []
    lines = Path(file).read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
