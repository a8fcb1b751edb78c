"""Mutants by lot: drawn again the same, asked of the cases that reach them, a row for each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lot_mutants
import msgspec
import pytest
from lot_draw import Site, drawn
from lot_mutants import Head, main, read, rows_in
from lot_reach import Mentions, in_order, never_run, noticing_cases, plan_of, rules_in
from lot_report import HANGS, NEVER, NOTICED, SURVIVES, Row, interval, row_of, shown, tables
from lot_values import FIXED
from mutant_plan import rule_of
from mutant_probes import Condition, conditions, heard, new_table, probed, statements
from mutant_record import Record, Seen
from mutant_source import Source
from mutant_tables import MutantError
from places import ROOT
from suite_run import Answer

from kubelet_conformance.registry import load_cases
from kubeobjects.structs import replace

TEXT = '''\
"""A module of BACK-002."""
LIMIT = 10
DOUBLE = [2 * LIMIT]

class A:
    """BACK-003."""
    def f(self, x):
        """Says x."""
        if x < DOUBLE[0]:
            return "a"
        return "b"

def g():
    """BACK-004 is here."""
    return 1
'''
COUNT = 8
"""Six statements and a condition with two values."""
FILE = "refkubelet/pleg/x.py"
SITE = Site(FILE, "A.f", 9, "comparison moved", TEXT.index("<"), "<", "<=", (9, 8))
CONSTANT = Site(FILE, "", 2, "number changed", TEXT.index("10"), "10", "20", None, ("LIMIT",))


def tree(folder: Path) -> Path:
    (folder / "refkubelet/pleg").mkdir(parents=True)
    (folder / FILE).write_text(TEXT)
    (folder / "refkubelet/top.py").write_text("def h():\n    return 1 < 2\n")
    return folder


def test_the_same_seed_draws_the_same_and_more_draws_begin_with_fewer(tmp_path: Path) -> None:
    root = tree(tmp_path)
    few, many, other = (drawn(root, *how) for how in (("ab", 5), ("ab", 99), ("ac", 99)))
    assert many[:5] == few
    assert len(many) > 10
    assert other != many
    assert drawn(root, "ab", 99, "top") == [site for site in many if site.area == "top"] != []
    for site in many:
        assert site.texts(root)[site.file] != (root / site.file).read_text()


def test_of_one_place_and_operator_one_is_drawn(tmp_path: Path) -> None:
    found = [site for site in drawn(tree(tmp_path), "ab", 99) if site.operator == "condition fixed"]
    assert [(site.line, site.old) for site in found] == [(9, "x < DOUBLE[0]")]


def test_probes_note_which_statements_are_reached() -> None:
    source = Source(FILE, TEXT)
    lines = [line for _, line, _ in statements(source)]
    assert lines == [8, 9, 11, 10, 14, 15]  # the number of a statement is its place
    new_table(len(lines) + 4)
    space: dict[str, Any] = {}
    exec(compile(probed(source, 2, len(lines) + 2), FILE, "exec"), space)
    assert not any(heard())
    assert (space["A"]().f(99), space["A"].f.__doc__) == ("b", "Says x.")
    assert [number - 2 for number, reached in enumerate(heard()) if reached] == [1, 2, 6]
    assert not any(heard())
    space["A"]().f(0)
    assert [number - 2 for number, reached in enumerate(heard()) if reached] == [1, 3, 7]


def test_values_are_noted_of_what_decides_and_of_what_it_is_made_of() -> None:
    text = "def f(a, b):\n    if not (a and b > 1) or a:\n        return a or b\n"
    source = Source(FILE, text)
    assert [text[start:end] for _, start, end in conditions(source)] == [
        "not (a and b > 1) or a", "not (a and b > 1)", "a", "b > 1", "a",
    ]  # fmt: skip
    new_table(14)
    space: dict[str, Any] = {}
    exec(compile(probed(source, 0, 4), FILE, "exec"), space)
    assert space["f"](1, 0) == 1
    noted = [number - 4 for number, value in enumerate(heard()) if value and number >= 4]
    assert noted == [1, 3, 5, 6]  # the last `a` is not asked


def test_a_fixed_condition_is_asked_where_it_was_otherwise() -> None:
    condition = TEXT.index("x <"), "x < DOUBLE[0]"
    values = {(FILE, condition[0], condition[0] + len(condition[1])): 6}
    known = record([1, 7], [1, 6], [1, 6, 7], values=values)
    first, second, third = known.seen
    fixed = Site(FILE, "A.f", 9, FIXED, *condition, "True", (9, 8))
    assert noticing_cases(fixed, [1], known) == [second, third]
    assert noticing_cases(replace(fixed, new="False"), [1], known) == [first, third]
    assert list(known.one_sided()) == []
    always = record([1, 7], [1], values=values)
    assert list(always.one_sided()) == [(next(iter(values)), True)]
    other = Site(FILE, "A.f", 9, "condition negated", *condition, "not x", (9, 8))
    assert noticing_cases(other, [1], known) == [first, second, third]


def record(*reached: Sequence[int], values: Mapping[Condition, int] | None = None) -> Record:
    """Of three cases: which statements of TEXT they reach, and which values its condition has."""
    names = [case.id for case in load_cases()][: len(reached)]
    numbers = {at: number for number, at in enumerate(statements(Source(FILE, TEXT)))}
    seen = [
        Seen(name, 1.0 / place, True, bytes(number in lines for number in range(COUNT)))
        for place, (name, lines) in enumerate(zip(names, reached, strict=True), 1)
    ]
    return Record(numbers, bytes(COUNT), seen, values or {})


def test_cases_are_asked_that_reach_the_statement_or_what_depends_on_the_name() -> None:
    known = record([1, 3], [1, 2], [5])
    mentions = Mentions({FILE: Source(FILE, TEXT)}, known.numbers)
    first, second, third = known.seen
    assert known.reaching(mentions.of(SITE)) == [first, second]
    assert known.reaching(mentions.of(CONSTANT)) == [first, second]  # through DOUBLE
    assert {line for _, line, _ in known.never()} == {8, 14}  # docstrings
    cases = {case.id: case for case in load_cases()}
    assert in_order([first, second, third], set(), cases, known) == [second, third, first]
    cited = {rule_of(rule) for rule in cases[first].rules}
    others = [case for case in (third, second) if not cited & set(map(rule_of, cases[case].rules))]
    ordered = in_order([first, second, third], cited, cases, known)
    assert ordered[len(ordered) - len(others) :] == others
    assert plan_of(CONSTANT, known, [1], [first]).anew
    plan = plan_of(SITE, known, [1], [second])
    assert not plan.anew
    assert plan.questions[0].within_s == 7.0  # 2 s, and ten times what it takes


def test_functions_that_no_case_runs_are_named() -> None:
    source = Source(FILE, TEXT)
    assert list(never_run(source, record([1]))) == [(13, "g")]
    assert list(never_run(source, record([1, 5]))) == []


def test_rules_of_a_function_are_those_it_names_or_what_is_around_it() -> None:
    source = Source(FILE, TEXT)
    assert rules_in(source, "g") == {"BACK-004"}
    assert rules_in(source, "A.f") == {"BACK-003"}
    assert rules_in(source, "") == {"BACK-002"}


def row(told: str, number: int = 1, site: Site = SITE) -> Row:
    return Row(number, site, told, "", 3, 2, 0.5)


def test_what_a_row_says() -> None:
    told = [
        row_of(1, Answer(SITE, ("a",), 3), 9),
        row_of(1, Answer(SITE, ("a",), 3, hangs=True), 9),
        row_of(1, Answer(SITE, (), 9), 9),
        row_of(1, Answer(SITE), 0),
        row_of(1, Answer(SITE, error="SyntaxError"), 9),
    ]
    assert [(row.told, row.by, row.asked) for row in told] == [
        (NOTICED, "a", 3),
        (HANGS, "a", 3),
        (SURVIVES, "", 9),
        (NEVER, "", 0),
        (NOTICED, "import", 0),
    ]


def test_the_table_counts_by_operator_and_area() -> None:
    rows = [row(NOTICED), row(HANGS), row(SURVIVES), row(NEVER, site=CONSTANT)]
    lines = [line.split() for line in tables(rows)]
    assert ["comparison", "moved", "3", "1", "1", "1", "0", "0", "66.7%"] in lines
    assert ["number", "changed", "1", "0", "0", "0", "0", "1", "0.0%"] in lines
    assert ["pleg", "4", "1", "1", "1", "0", "1", "50.0%"] in lines
    assert next(line for line in lines if line[:1] == ["all"]) == [
        "all",
        "4",
        "1",
        "1",
        "1",
        "0",
        "1",
        "50.0%",
        "(95",
        "%",
        "sure:",
        "15.0%",
        "to",
        "85.0%)",
    ]


def test_the_interval_is_within_all() -> None:
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(10, 10)[1] == pytest.approx(1.0)
    low, high = interval(500, 1000)
    assert (round(low, 3), round(high, 3)) == (0.469, 0.531)


def test_a_survivor_is_shown_as_a_diff_with_its_rules() -> None:
    text = shown(row(SURVIVES), TEXT.encode(), {"BACK-003"})
    head, *diff = text.splitlines()
    assert head == (
        "1. refkubelet/pleg/x.py:9: A.f: comparison moved; "
        "not noticed: asked 2 of 3 cases; BACK-003"
    )
    assert "    -        if x < DOUBLE[0]:" in diff
    assert "    +        if x <= DOUBLE[0]:" in diff


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    file, head = tmp_path / "a/ab.jsonl", Head("ab", "tree")
    assert rows_in(file, head, resume=True) == []
    with file.open("ab") as target:
        target.write(msgspec.json.encode(row(NOTICED)) + b"\n")
        target.write(msgspec.json.encode(row(NOTICED, 2))[:-9])  # cut off
    assert rows_in(file, head, resume=True) == [row(NOTICED)]
    with pytest.raises(MutantError, match="leave out --resume"):
        rows_in(file, Head("ab", "another"), resume=True)
    assert rows_in(file, head, resume=False) == []


def test_what_was_told_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[int]] = []

    def rows_of(sites: Sequence[tuple[int, Site]], *_: object) -> Iterator[Row]:
        asked.append([number for number, _ in sites])
        yield from (row(NOTICED if number % 2 else SURVIVES, number) for number, _ in sites)

    monkeypatch.setattr(lot_mutants, "rows_of", rows_of)
    monkeypatch.setattr(lot_mutants, "record_of", lambda *_: None)
    monkeypatch.setattr(lot_mutants, "drawn", lambda _, __, count, ___: count * [SITE])
    monkeypatch.setattr(lot_mutants, "digest", lambda: "sum")
    monkeypatch.setattr(lot_mutants, "check_imported_from", lambda _: None)  # nothing is changed
    file = tmp_path / "rows.jsonl"
    words = ["--seed", "ab", "--results", str(file), "--resume"]
    assert main([*words, "--count", "3", "--least", "90"]) == 0  # two of three may be 90 %
    assert main([*words, "--count", "5", "--least", "99"]) == 1
    assert asked == [[1, 2, 3], [4, 5]]
    assert [each.number for each in read(file)[1]] == [1, 2, 3, 4, 5]
    assert "all                             5           3           0           2" in (
        capsys.readouterr().out
    )


ASK = """
from lot_draw import Site
from lot_mutants import rows_of
from mutant_probes import statements
from mutant_record import Record, Seen
from mutant_source import sources
from mutant_tables import MUTATED, ROOT

FILE = "refkubelet/kuberuntime/decisions/backoff.py"
LINE = "return cls(round(min(initial_s, max_s)"
text = (ROOT / FILE).read_text()
every = [at for source in sources(ROOT, MUTATED).values() for at in statements(source)]
line = text.count("\\n", 0, text.index(LINE)) + 1
(at,) = [(n, column) for file, n, column in every if (file, n) == (FILE, line)]
reached = bytes([1]) * len(every)
cases = [Seen(case, 0.05, True, reached) for case in ("backoff-first", "CASE")]
record = Record({at: number for number, at in enumerate(every)}, bytes(len(every)), cases)


def site(old, new, at):
    return Site(FILE, "", 1, "", text.index(old), old, new, at, ("INITIAL_DELAY_S",))


sites = [
    site("10.0", "20.0", None),
    site("min(initial_s, max_s)", "min(max_s, initial_s)", at),
    site("min(initial_s, max_s)", "min(2 * initial_s, max_s)", at),
    site("return cls(round(min(", "while True: pass\\n        return cls(round(min(", at),
]
for row in rows_of(list(enumerate(sites, 1)), record, 2):
    print(row.number, row.told, row.by, row.asked, sep="|")
"""


@pytest.mark.timeout(1200)  # some seconds of work, on a busy machine minutes
def test_what_is_wrong_is_noticed_what_is_equal_is_not_and_what_hangs_ends() -> None:
    folders = (ROOT / "tests/mutants", ROOT)
    other = next(case.id for case in load_cases() if case.area == "static")
    done = subprocess.run(
        [sys.executable, "-c", ASK.replace("CASE", other)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "1|noticed|backoff-first|1",
        "2|not noticed||2",
        "3|noticed|backoff-first|1",
        "4|times out|backoff-first|1",
    ]
