"""The catalogue of wrong kubelets: its tables fit, and the reader tells what is wrong with one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from mutant_in_place import check_imported_from
from mutant_plan import first_plan, second_plan
from mutant_probes import statements
from mutant_reach import concerned, numbers_of
from mutant_source import Source
from mutant_tables import (
    Hunk,
    Mutant,
    MutantError,
    applied,
    read,
    read_all,
    start_of,
    tables,
)
from mutant_tests import asked_of
from places import ROOT
from refit import refitted
from refit import written as written_table
from suite_mutants import not_good_enough, remarks
from suite_run import Answer

from kubelet_conformance.laws import LAWS
from kubelet_conformance.recordings.asking import OF_WORLDS
from kubelet_conformance.registry import load_cases

GOOD = """\
# Wrong kubelets.

doubled
  Rule: BACK-001
  Breaks: The first delay is twice as long as it should be.
  refkubelet/x.py: far_away
     before

    -DELAY = 10
    +DELAY = 20
     after

other
  Rule: BACK-002
  Breaks: Nothing.
  refkubelet/x.py:
    -a
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "backoff.txt"
    file.write_text(text)
    return file


def doubled(folder: Path) -> Mutant:
    return read(written(folder, GOOD))[0]


def test_a_mutant_fits_where_its_lines_stand(tmp_path: Path) -> None:
    mutant, other = read(written(tmp_path, GOOD))
    assert (other.name, other.hunks) == ("backoff/other", (Hunk("refkubelet/x.py", ("a",), ()),))
    mutant = replace(mutant, hunks=(replace(mutant.hunks[0], function=""),))
    assert (mutant.name, mutant.area, mutant.rules) == ("backoff/doubled", "backoff", ("BACK-001",))
    assert mutant.breaks == "The first delay is twice as long as it should be."
    hunks = mutant.hunks
    text = "a\nb\nc\nbefore\n\nDELAY = 10\nafter\n"
    assert applied(hunks, text) == "a\nb\nc\nbefore\n\nDELAY = 20\nafter\n"
    with pytest.raises(MutantError, match="stand there 0 times"):
        applied(hunks, text.replace("10", "11"))
    with pytest.raises(MutantError, match="stand there 2 times"):
        applied(hunks, text + text)


MODULE = """\
def one():
    return 1

class Two:
    def one(self):
        return 1
"""


def test_lines_are_looked_for_in_their_function() -> None:
    assert start_of(Hunk("x.py", ("        return 1",), (), "Two.one"), MODULE) == 5
    assert start_of(Hunk("x.py", ("    return 1",), (), "one"), MODULE) == 1
    with pytest.raises(MutantError, match=r"x.py: Two: these lines stand there 0 times"):
        start_of(Hunk("x.py", ("    return 1",), (), "Two"), MODULE)


def test_what_has_moved_is_put_back_where_it_is_now() -> None:
    hunk = Hunk(
        "x.py", ("def gone():", "        return 1"), ("def gone():", "        return 2"), "f"
    )
    there = Hunk("y.py", ("        return 1",), ("        return 2",), "Two.one")
    assert refitted(hunk, {"x.py": "pass\n", "y.py": MODULE}) == there
    with pytest.raises(MutantError, match="the lines that change are not there"):
        refitted(hunk, {"x.py": "pass\n"})


def test_the_tables_are_as_refit_writes_them() -> None:
    for table in tables():
        assert written_table(table.stem, read(table)) == table.read_text(), table.name


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (GOOD.replace("BACK-001", "the first"), "Rule: wanted clauses"),
        (GOOD.replace("Breaks:", "Why:"), "'Why: The first delay"),
        (GOOD.partition("  refkubelet")[0], "has no place"),
        (GOOD.replace("+DELAY = 20", "+DELAY = 10"), "change nothing"),
        (GOOD.replace("x.py", "x.md"), "wanted a module"),
        (GOOD.replace("  Breaks: Nothing.", "  Breaks: Nothing.\n  Rule: BACK-003"), "each once"),
        (GOOD.replace("  refkubelet/x.py: far_away\n", ""), "wanted a place before lines"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(tmp_path: Path, wrong: str, told: str) -> None:
    with pytest.raises(MutantError, match=told):
        read(written(tmp_path, wrong))


def test_every_mutant_of_the_catalogue_fits() -> None:
    mutants = read_all()
    for mutant in mutants:
        for hunk in mutant.hunks:
            text = (ROOT / hunk.file).read_text()
            changed = applied([h for h in mutant.hunks if h.file == hunk.file], text)
            compile(changed, hunk.file, "exec")
    assert len({mutant.name for mutant in mutants}) == len(mutants)


def test_each_law_has_a_wrong_kubelet_that_it_must_notice() -> None:
    """But those that drawn worlds show (tests/conformance/search/test_wrong_kubelets.py, and
    test_search_known.py): about a node that was left alone, those that only worlds are asked, and
    about phases, which cases look at themselves."""
    named = {law for mutant in read_all() for law in mutant.laws}
    of_worlds = {each.__name__ for each in OF_WORLDS}
    drawn = {law.name for law in LAWS if law.breaches.__module__ in of_worlds}
    drawn |= {"phases-go-on", "nothing-after-its-end"}
    assert named == {law.name for law in LAWS} - drawn


def test_contract_tests_are_asked_about_wrong_runtimes(tmp_path: Path) -> None:
    """And about nothing else: a wrong kubelet is a matter of unit tests."""
    kubelet = doubled(tmp_path)
    runtime = replace(kubelet, name="runtime/doubled")
    contract = "tests/verified/test_cri_logs.py: test_a"
    citing = {"BACK-001": [contract, "tests/refkubelet/test_a.py: test_b"], "CRI-100": ["no"]}
    assert asked_of(runtime, citing) == [contract]
    assert asked_of(kubelet, citing) == ["tests/refkubelet/test_a.py: test_b"]


def test_cases_that_cite_the_rule_are_all_asked(tmp_path: Path) -> None:
    mutant = doubled(tmp_path)
    cases = load_cases()
    first = first_plan(mutant, cases, {"backoff/doubled": ["static-created"]})
    citing = [q.case for q in first.questions if not q.enough]
    assert citing == [c.id for c in cases if any(r.startswith("BACK-001") for r in c.rules)]
    assert first.questions[len(citing)].case == "static-created"


def test_for_an_answer_one_case_is_enough(tmp_path: Path) -> None:
    """Without links the case that noticed the mutant last time is asked first."""
    mutant = doubled(tmp_path)
    cases = load_cases()
    kept = {"backoff/doubled": ["static-created"]}
    quick = first_plan(mutant, cases, kept, links=False).questions
    linked = first_plan(mutant, cases, kept).questions
    assert quick[0].case == "static-created"
    assert all(question.enough for question in quick)
    assert {q.case for q in quick} == {q.case for q in linked}


def test_then_the_cases_that_reach_it(tmp_path: Path) -> None:
    mutant = doubled(tmp_path)
    cases = load_cases()
    first = first_plan(mutant, cases, {})
    area = [c.id for c in cases if c.area == "backoff"]
    own = [q.case for q in second_plan(first, cases, None).questions]
    assert set(area) < set(own) < {c.id for c in cases}
    other = next(c.id for c in cases if c.area == "static")
    reaching = {area[0], other}
    assert {q.case for q in second_plan(first, cases, reaching).questions} == reaching
    excused = replace(first, mutant=replace(mutant, survives="nothing shows it"))
    assert [q.case for q in second_plan(excused, cases, reaching).questions] == [area[0]]


SOURCE = """\
LIMIT = 1

def far(x):
    if x:
        y = near(
            x)
        return y
    return 2
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("            x)", "            -x)", {5, 6}),
        ("    if x:", "    if not x:", {4}),
        ("        return y\n    return 2", "        return y\n    print()\n    return 2", {7, 8}),
        ("LIMIT = 1", "LIMIT = 2", set()),
    ],
)
def test_lines_that_a_change_concerns(old: str, new: str, lines: set[int]) -> None:
    hunk = Hunk("refkubelet/x.py", tuple(old.splitlines()), tuple(new.splitlines()))
    assert concerned(SOURCE, hunk) == lines


def test_statements_by_which_cases_reach_a_mutant() -> None:
    """What is executed at import is reached by every case that executes a function of the module;
    another line by those that execute it."""
    constant, line = read_all(["backoff/first-delay-doubled", "backoff/from-the-last-start"])
    files = {mutant.hunks[0].file for mutant in (constant, line)}
    ats = [at for f in files for at in statements(Source(f, (ROOT / f).read_text()))]
    numbers = {at: number for number, at in enumerate(ats)}
    of_module = {n for (file, _, _), n in numbers.items() if file == constant.hunks[0].file}
    assert numbers_of(constant, numbers) == of_module
    assert 0 < len(numbers_of(line, numbers)) < 5


@pytest.mark.timeout(1200)  # some seconds of work, on a busy machine minutes
def test_the_catalogue_is_asked_about_in_processes() -> None:
    """A mutant that is noticed, in a process of its own."""
    script = ROOT / "tests" / "mutants" / "suite_mutants.py"
    done = subprocess.run(
        [sys.executable, str(script), "backoff/first-delay-doubled", "-v", "--links"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{script.parent}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of    1 noticed" in done.stdout
    assert "backoff-first" in done.stdout


def test_what_a_run_must_reach(tmp_path: Path) -> None:
    mutant = doubled(tmp_path)
    seen, unseen = Answer(mutant, ("backoff-first",)), Answer(mutant)
    excused = Answer(replace(mutant, survives="nothing shows it"))
    assert not_good_enough([seen] * 19 + [excused], whole=True) == ""
    assert not_good_enough([seen] * 18 + [excused] * 2, whole=True) == "fewer than 95% are noticed"
    known = [mutant.name]
    assert not_good_enough([seen] * 19 + [unseen], whole=False, known=known) == ""
    assert "fewer" in not_good_enough([seen] * 18 + [unseen] * 2, whole=False, known=known)
    assert not_good_enough([unseen] * 20, whole=False, known=["another"]) == ""
    assert "do not agree" in not_good_enough([seen] * 19 + [unseen], whole=True)
    assert "do not agree" in not_good_enough([replace(excused, noticed=("a",))], whole=True)
    broken = Answer(mutant, error="does not fit")
    assert "could not be asked" in not_good_enough([broken], whole=False)
    assert [line.rpartition(": ")[2] for line in remarks([seen, unseen, excused, broken])] == [
        mutant.breaks,
        "does not fit",
    ]


def test_an_installed_copy_is_refused() -> None:
    """Its files have other paths than those that the tables name, so no mutant would be seen.
    tox has its copy below the root."""
    package = ModuleType("refkubelet")
    package.__file__ = str(ROOT / ".tox/env/lib/site-packages/refkubelet/__init__.py")
    with pytest.raises(MutantError, match=rf"put {ROOT} into PYTHONPATH"):
        check_imported_from(package)
    package.__file__ = str(ROOT / "refkubelet/__init__.py")
    check_imported_from(package)


def test_unknown_names_are_told() -> None:
    with pytest.raises(MutantError, match="nosuch"):
        read_all(["nosuch"])
    assert all(isinstance(mutant, Mutant) for mutant in read_all(["backoff"]))
