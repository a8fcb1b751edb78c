"""A case that shows a bug of some kubelets is expected to fail on them, and only on them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubelet_conformance.harness.expect import ExpectationFailed
from kubelet_conformance.harness.kubelets.base import KubeletDied, NodePaths
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.runs.case_run import Breach, Outcome, Result, not_to_run, run_case
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.known import with_known_bugs, with_since_checked
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.known_bugs import KnownBug, Release, release_of
from kubelet_conformance.registry import Case, CaseBody, Level, load_cases
from kubelet_conformance.results_file import read
from kubelet_conformance.sources import all_cases
from kubeobjects.structs import replace

BUG = KnownBug("122890", "every pod gets the same grace", since="1.30", fixed="1.31.4, 1.32")


async def nothing(node: object) -> None:
    """A case that does nothing."""


ENDS = r"\b(ends?|stops?|panics?|crash(es)?|kills?) (a|the) kubelet\b"

CASE = Case(
    id="x", area="a", title="t", rules=("LIFE-001",), level=Level.MUST, needs=frozenset(),
    body=nothing, bugs=(BUG,),
)  # fmt: skip


@pytest.mark.parametrize(
    ("release", "outcome", "judged"),
    [
        ((1, 31, 3), Outcome.FAILED, Outcome.KNOWN_BUG),
        ((1, 31, 3), Outcome.PASSED, Outcome.FAILED),
        ((1, 31, 4), Outcome.FAILED, Outcome.FAILED),
        ((1, 29, 0), Outcome.PASSED, Outcome.PASSED),
        (None, Outcome.FAILED, Outcome.FAILED),
        ((1, 31, 3), Outcome.ERROR, Outcome.ERROR),
        ((1, 31, 3), Outcome.SKIPPED, Outcome.SKIPPED),
    ],
)
def test_only_kubelets_that_have_the_bug_are_expected_to_fail(
    release: Release | None, outcome: Outcome, judged: Outcome
) -> None:
    result = Result(CASE, outcome, breach=Breach.EXPECTED)
    assert with_known_bugs(result, release).outcome is judged


@pytest.mark.parametrize(
    ("chances", "outcome", "judged"),
    [
        ([True], Outcome.PASSED, Outcome.PASSED),
        ([True], Outcome.FAILED, Outcome.KNOWN_BUG),
        ([True], Outcome.ERROR, Outcome.ERROR),
        ([True, False], Outcome.PASSED, Outcome.FAILED),  # the other one shows always
        ([True, True], Outcome.PASSED, Outcome.PASSED),
    ],
)
def test_a_bug_that_shows_by_chance_may_stay_away(
    chances: list[bool], outcome: Outcome, judged: Outcome
) -> None:
    bugs = tuple(replace(BUG, by_chance=chance) for chance in chances)
    result = Result(replace(CASE, bugs=bugs), outcome, breach=Breach.EXPECTED)
    assert with_known_bugs(result, (1, 31, 3)).outcome is judged


@pytest.mark.parametrize(
    ("minor", "outcome", "judged", "told"),
    [
        (
            (1, 33),
            Outcome.PASSED,
            Outcome.FAILED,
            "expected: a failure, for the case needs kubelet",
        ),
        ((1, 33), Outcome.FAILED, Outcome.SKIPPED, "needs kubelet 1.34 or newer, this one is 1.33"),
        ((1, 33), Outcome.ERROR, Outcome.SKIPPED, "needs kubelet 1.34 or newer"),
        ((1, 34), Outcome.PASSED, Outcome.PASSED, ""),
    ],
)
def test_a_case_that_passes_on_a_kubelet_too_old_for_it_says_since_wrongly(
    minor: tuple[int, int], outcome: Outcome, judged: Outcome, told: str
) -> None:
    result = with_since_checked(Result(replace(CASE, since=(1, 34)), outcome), minor)
    assert result.outcome is judged
    assert result.detail.startswith(told)


def test_only_cases_that_the_kubelet_is_too_old_for_run_to_check_since() -> None:
    ran = {
        (since, check): not_to_run(
            replace(CASE, since=since),
            Choice(kubernetes_version="1.33.2", check_since=check),
            (),
        )
        is None
        for since in ((1, 34), (1, 33), None)
        for check in (False, True)
    }
    assert [key for key, runs in ran.items() if runs] == [
        ((1, 34), True),
        ((1, 33), False),
        (None, False),
    ]


@pytest.mark.parametrize(
    ("breach", "ends_kubelet", "judged"),
    [
        (Breach.EXPECTED, False, Outcome.KNOWN_BUG),
        (Breach.OTHER, False, Outcome.FAILED),
        (Breach.OTHER, True, Outcome.FAILED),
        (Breach.ENDED, False, Outcome.FAILED),
        (Breach.ENDED, True, Outcome.KNOWN_BUG),
    ],
)
def test_only_what_the_bug_breaks_is_the_known_bug(
    breach: Breach, ends_kubelet: bool, judged: Outcome
) -> None:
    case = replace(CASE, bugs=(replace(BUG, ends_kubelet=ends_kubelet),))
    result = with_known_bugs(Result(case, Outcome.FAILED, "why", breach), (1, 31, 3))
    assert result.outcome is judged
    if judged is Outcome.FAILED:
        assert result.detail.startswith("why\nThis is not how its known bug shows: every pod")


async def late(node: object) -> None:
    raise ExpectationFailed("too late")


async def unprepared(node: object) -> None:
    raise ExpectationFailed("no pod", shows_bug=False)


async def ends(node: object) -> None:
    raise KubeletDied("panic", ended=True)


async def silent(node: object) -> None:
    raise KubeletDied("no answer")


async def too_long(node: object) -> None:
    raise TimeoutError


async def broken(node: object) -> None:
    raise KeyError("ours")


@pytest.mark.parametrize(
    ("body", "outcome", "breach"),
    [
        (late, Outcome.FAILED, Breach.EXPECTED),
        (unprepared, Outcome.FAILED, Breach.OTHER),
        (ends, Outcome.FAILED, Breach.ENDED),
        (silent, Outcome.FAILED, Breach.OTHER),
        (too_long, Outcome.FAILED, Breach.OTHER),
        (broken, Outcome.ERROR, Breach.OTHER),
        (nothing, Outcome.PASSED, Breach.NONE),
    ],
)
def test_what_a_case_has_met(body: CaseBody, outcome: Outcome, breach: Breach) -> None:
    result = run_virtual_case(replace(CASE, body=body), Choice())
    assert (result.outcome, result.breach) == (outcome, breach)


@pytest.mark.virtual_time
@pytest.mark.parametrize("problem", [KubeletDied("refused", ended=True), OSError("no socket")])
async def test_a_kubelet_that_does_not_start_is_no_known_bug(
    problem: Exception, tmp_path: Path
) -> None:
    @asynccontextmanager
    async def no_parts(case: Case, paths: NodePaths) -> AsyncIterator[Parts]:
        raise problem
        yield

    case = replace(CASE, bugs=(replace(BUG, ends_kubelet=True),))
    result = await run_case(case, no_parts, tmp_path)
    assert result.breach is Breach.OTHER
    assert with_known_bugs(result, (1, 31, 3)).outcome is result.outcome is not Outcome.KNOWN_BUG


def test_other_cases_are_judged_as_before() -> None:
    result = Result(replace(CASE, bugs=()), Outcome.FAILED, "too late")
    assert with_known_bugs(result, (1, 31, 3)) == result


@pytest.mark.parametrize("bad", ["soon", "1.31.4, never"])
def test_a_version_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="wanted a version"):
        KnownBug("1", "it stops", fixed=bad)


AS_1_31 = """\
from kubelet_conformance.session import run as run_state
from kubelet_conformance.harness.runs import processes
from kubelet_conformance.harness.runs.case_run import Breach, Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.known_bugs import KnownBug
from kubeobjects.structs import replace

Choice.kubelet_release = property(lambda self: (1, 31, 14))

def judge(case, *_):
    case = replace(case, bugs=(KnownBug("122890", "it stops", fixed="1.32"),))
    passes = case.id == "start-order"
    if passes:
        return Result(case, Outcome.PASSED)
    return Result(case, Outcome.FAILED, "late", Breach.EXPECTED)

processes.run_virtual_case = run_state.run_virtual_case = judge
"""


def test_a_run_tells_known_bugs_apart(tmp_path: Path) -> None:
    """Summary, result file, JUnit and exit code: the known bug is no failure, the case that passes
    in spite of it is one."""
    program = f"{AS_1_31}\nimport sys\nfrom kubelet_conformance.cli import main\nsys.exit(main())"
    results, junit = tmp_path / "run.json", tmp_path / "junit.xml"
    ids = ("--id", "backoff-series", "--id", "start-order")
    done = subprocess.run(
        [
            *(sys.executable, "-c", program, "run", "--jobs", "1", "-q", *ids),
            *("--results", str(results), f"--junitxml={junit}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    told = "it stops (kubernetes/kubernetes#122890, fixed in 1.32)"
    assert f"known bug: backoff-series: {told}\n" in done.stdout
    assert "failed: start-order" in done.stdout
    assert "1 xfailed" in done.stdout.splitlines()[-1]
    cases = read(results).worst()
    assert cases["backoff-series"].verdict == "known bug"
    assert cases["backoff-series"].messages == f"{told}\nlate"
    assert cases["start-order"].expected.startswith("a failure on kubelet 1.31.14")
    assert 'type="pytest.xfail"' in junit.read_text()


def test_a_bug_that_ends_the_kubelet_says_so_in_its_data() -> None:
    """The sentence is for readers; the verdict goes by `ends_kubelet`."""
    named = [(case, bug) for case in all_cases() for bug in case.bugs]
    says_so = [(case.id, bug) for case, bug in named if re.search(ENDS, bug.what)]
    assert says_so
    assert [name for name, bug in says_so if not bug.ends_kubelet] == []


def test_every_known_bug_of_a_case_is_one_of_kubelets_that_run_it() -> None:
    """A case that is skipped on all kubelets that have its bug could never show it."""
    named = [(case, bug) for case in load_cases() for bug in case.bugs]
    assert named
    for case, bug in named:
        oldest = (*case.since, 0) if case.since else (release_of(bug.since) or (1, 25, 0))
        assert bug.is_in(oldest), f"{case.id}: {bug}"
