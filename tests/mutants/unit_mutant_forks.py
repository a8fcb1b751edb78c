"""A pytest plugin that tries mutants: it collects tests once, then forks a process for each mutant.

mutmut by itself collects the tests anew for each mutant, which takes ten times as long as running
them. `-p unit_mutant_forks` with MUTANTS_PLAN=FILE (see `Plan`) and MUTANTS_TOLD=FILE, to which one
line per mutant is added at once, so that nothing is lost if the run is cut off. Code that mutmut
has prepared reads from MUTANT_UNDER_TEST which of its mutants is to run.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

import pytest
from hypothesis import Phase, settings

UNDER_TEST: Final = "MUTANT_UNDER_TEST"
WHOLE: Final = ""
"""The mutant that is none: with it all tests must pass."""
FAILING: Final = "fail"
"""The mutant in which every changed function fails."""
MEMORY_BYTES: Final = 3 << 30
CPU_S: Final = 2.0
TIMES_SLOWER: Final = 10.0


class Plan(TypedDict):
    """What is tried, in this order."""

    mutants: list[str]
    tests: Mapping[str, list[str]]
    """Function, as in names of mutants before `__mutmut_` -> its tests, the quickest first."""
    seconds: Mapping[str, float]
    """Test -> how long it takes without a mutant."""
    jobs: int


@dataclass(eq=False)  # pytest puts its plugins into sets
class Watch:
    """The first test that failed."""

    failed: str = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Fixtures may fail as well."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


@dataclass
class Child:
    """A process in which one mutant is tried."""

    mutant: str
    tells: int
    """Where the name of the test comes from that failed."""
    folder: str
    """Its temporary files."""


@dataclass
class Forks:
    """At most `plan["jobs"]` at once."""

    session: pytest.Session
    plan: Plan
    told: Path
    items: Mapping[str, pytest.Item]
    running: dict[int, Child] = field(default_factory=dict)
    good_at: dict[str, list[str]] = field(default_factory=dict)
    """Function -> tests that noticed mutants of it, the last one first: they are tried first."""

    def start(self, mutant: str, tests: Sequence[str]) -> None:
        """The tests end at the first that fails."""
        reads, writes = os.pipe()
        folder = tempfile.mkdtemp(prefix="mutant-")
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.close(reads)
                failed = self.try_here(mutant, tests, folder)
                os.write(writes, failed.encode())
                code = 1 if failed else 0
            finally:
                os._exit(code)
        os.close(writes)
        self.running[child] = Child(mutant, reads, folder)

    def try_here(self, mutant: str, tests: Sequence[str], folder: str) -> str:
        """In the child: the ID of the test that failed, "" if none did."""
        os.environ |= {UNDER_TEST: mutant, "PYTEST_DEBUG_TEMPROOT": folder}
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        plugins, watch = self.session.config.pluginmanager, Watch()
        plugins.unregister(name="terminalreporter")
        plugins.register(watch)
        items = [self.items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            allowed_s = CPU_S + TIMES_SLOWER * self.plan["seconds"].get(item.nodeid, 0.0)
            signal.setitimer(signal.ITIMER_PROF, allowed_s)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if watch.failed:
                break
        return watch.failed

    def wait(self) -> tuple[str, str, str]:
        """Until one has ended: its mutant, the verdict, the test."""
        pid, status = os.wait()
        child = self.running.pop(pid)
        with os.fdopen(child.tells) as tells:
            test = tells.read()
        shutil.rmtree(child.folder, ignore_errors=True)
        return child.mutant, verdict(os.waitstatus_to_exitcode(status)), test

    def tell(self, mutant: str, said: str, test: str) -> None:
        """One line more."""
        with self.told.open("a") as file:
            file.write(json.dumps({"mutant": mutant, "verdict": said, "test": test}) + "\n")
        if test:
            good = self.good_at.setdefault(function_of(mutant), [])
            good[:] = [test, *(other for other in good if other != test)][:5]

    def check(self) -> None:
        """Without a mutant all tests pass, and changed functions that fail make one fail.

        Raises pytest.UsageError otherwise: no verdict would mean anything.
        """
        functions = {function_of(mutant) for mutant in self.plan["mutants"]}
        wanted = {test for function in functions for test in self.plan["tests"].get(function, ())}
        tests = sorted(wanted, key=lambda test: self.plan["seconds"].get(test, 0.0))
        for mutant, wish in ((WHOLE, "survived"), (FAILING, "killed")):
            for _ in range(2):  # a test that uses real time may fail once on a busy machine
                self.start(mutant, tests)
                _, said, test = self.wait()
                if said == wish or not tests:
                    break
            else:
                raise pytest.UsageError(f"with the mutant {mutant!r}: {said} {test}, not {wish}")

    def run(self) -> None:
        """All of the plan."""
        for count, mutant in enumerate(self.plan["mutants"], 1):
            if len(self.running) >= self.plan["jobs"]:
                self.tell(*self.wait())
            function = function_of(mutant)
            tests = self.plan["tests"].get(function, [])
            if tests:
                self.start(mutant, list(dict.fromkeys([*self.good_at.get(function, ()), *tests])))
            else:
                self.tell(mutant, "no tests", "")
            if count % 500 == 0:
                print(f"{count} of {len(self.plan['mutants'])}", file=sys.stderr, flush=True)
        while self.running:
            self.tell(*self.wait())


def verdict(exit_code: int) -> str:
    """Of a child.

    >>> verdict(0), verdict(1), verdict(-27)
    ('survived', 'killed', 'timeout')
    """
    if exit_code in (0, 1):
        return ("survived", "killed")[exit_code]
    return "timeout" if exit_code == -signal.SIGPROF else "suspicious"


def function_of(mutant: str) -> str:
    """The function that it changes.

    >>> function_of("refkubelet.pleg.compute.x_f__mutmut_12")
    'refkubelet.pleg.compute.x_f'
    """
    return mutant.partition("__mutmut_")[0]


def pytest_sessionstart() -> None:
    """Of what hypothesis finds it seeks no smaller example, and it finds the same each time."""
    settings.register_profile(
        "mutants",
        parent=settings.get_profile("project"),
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )
    settings.load_profile("mutants")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """In the place of the tests: the mutants."""
    if session.testsfailed:
        raise session.Interrupted("tests could not be collected")
    plan: Plan = json.loads(Path(os.environ["MUTANTS_PLAN"]).read_text())
    items = {item.nodeid: item for item in session.items}
    known = {name: list(kept(tests, items)) for name, tests in plan["tests"].items()}
    forks = Forks(session, plan | {"tests": known}, Path(os.environ["MUTANTS_TOLD"]), items)
    gc.collect()
    gc.freeze()
    forks.check()
    forks.run()
    return True


def kept(tests: Sequence[str], items: Mapping[str, pytest.Item]) -> Iterator[str]:
    """Those that were collected."""
    return (test for test in tests if test in items)
