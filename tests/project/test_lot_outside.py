"""What no case runs: the reasons of the table, and what tests of ours say of mutants there."""

from __future__ import annotations

from pathlib import Path

import lot_report
import pytest
from lot_draw import Site
from lot_outside import TABLE, Entry, Place, entries, reason_of, stale
from lot_probed import heard, listen
from lot_reach import places_never_run
from lot_report import NEVER, NOTICED, OUTSIDE, Row, shown, tables, word_of
from lot_tests import asked_of, mutant_tree, write_probed
from mutant_probes import NOTES, statements
from mutant_record import Record, Seen
from mutant_source import Source
from mutant_tables import MutantError
from places import ROOT

TEXT = """\
# a comment

Only as root
    volumes/a.py: A.*

Only with sockets
    api/*
"""
ROOT_ENTRY, SOCKETS = entries(TEXT)
SITE = Site("refkubelet/cli.py", "main", 1, "", 0, '"""', '"""', (1, 0))


def row(number: int, file: str, told: str = NEVER, test: str | None = None) -> Row:
    return Row(number, Site(file, "A.f", 1, "", 0, "", ""), told, "", 0, 0, 0.0, test)


def test_a_line_is_about_modules_or_functions() -> None:
    assert [entry.reason for entry in (ROOT_ENTRY, SOCKETS)] == [
        "Only as root",
        "Only with sockets",
    ]
    for function, reason in {"A.f": "Only as root", "B.f": "", "": ""}.items():
        assert reason_of(Place("refkubelet/volumes/a.py", function), [ROOT_ENTRY]) == reason
    assert reason_of(Place("refkubelet/api/wire.py", ""), [ROOT_ENTRY, SOCKETS])
    with pytest.raises(MutantError, match=r"a\.py stands below no reason"):
        entries("    a.py\n")


def test_a_line_about_what_cases_run_is_stale() -> None:
    never = [Place("refkubelet/volumes/a.py", "B.f"), Place("refkubelet/api/wire.py", "f")]
    assert list(stale([ROOT_ENTRY, SOCKETS], never)) == [ROOT_ENTRY]


def test_each_line_of_the_table_is_about_a_module_that_is_there() -> None:
    for entry in entries(TABLE.read_text()):
        assert list(ROOT.glob(entry.file)), entry


def test_functions_with_a_statement_that_no_case_runs_are_named() -> None:
    source = Source("refkubelet/x.py", "class A:\n    def f(self):\n        if 1:\n            2\n")
    numbers = {at: number for number, at in enumerate(statements(source))}
    seen = [Seen("a", 1.0, True, bytes([1, 0]))]
    assert list(places_never_run([source], Record(numbers, bytes(2), seen))) == [
        ("refkubelet/x.py", "A.f")
    ]
    seen = [Seen("a", 1.0, True, bytes([1, 1]))]
    assert not list(places_never_run([source], Record(numbers, bytes(2), seen)))


def test_what_a_test_of_ours_notices_counts_as_outside_and_not_as_noticed() -> None:
    table: list[Entry] = [ROOT_ENTRY, SOCKETS]
    rows = [
        row(1, "refkubelet/pleg/a.py", NOTICED),
        row(2, "refkubelet/volumes/a.py", test="tests/a.py::test_a"),
        row(3, "refkubelet/volumes/a.py", test=""),
        row(4, "refkubelet/pleg/a.py"),
    ]
    assert [word_of(each, table) for each in rows] == [NOTICED, OUTSIDE, OUTSIDE, NEVER]
    lines = list(tables(rows, table))
    whole = next(line for line in lines if line.startswith("all"))
    assert whole.split()[1:7] == ["4", "1", "0", "0", "2", "1"]
    assert "25.0%" in whole
    assert "     2      1 of     2  Only as root" in lines
    assert "     1      0 of     0  never run, without a reason" in lines
    assert "noticed by tests/a.py::test_a" in shown(rows[1], b"", ())
    assert lot_report.noticed(rows) == 1


def test_the_quickest_tests_that_run_it_are_asked() -> None:
    seen = [
        Seen(name, seconds, True, bytes([reached]))
        for name, seconds, reached in [
            ("slow", 25.0, 1),
            ("a", 2.0, 1),
            ("b", 1.0, 1),
            ("c", 0.1, 0),
        ]
    ]
    record = Record({}, bytes(1), seen)
    assert asked_of(record, [0]) == ["b", "a"]
    assert asked_of(Record({}, bytes(1), seen[:1]), [0]) == ["slow"]
    assert asked_of(record, []) == []


def test_a_tree_with_a_mutant_differs_in_one_file() -> None:
    with mutant_tree(SITE) as folder:
        assert not (folder / "refkubelet/cli.py").is_symlink()
        assert (folder / "refkubelet/daemon.py").resolve() == ROOT / "refkubelet/daemon.py"
        assert (folder / "refkubelet/py.typed").exists()


def test_in_a_tree_with_probes_each_process_has_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("refkubelet/__init__.py", "refkubelet/failures.py")
    write_probed(tmp_path, {name: Source(name, (ROOT / name).read_text()) for name in names})
    assert NOTES in (tmp_path / "refkubelet/failures.py").read_text()
    assert "lot_probed.listen()" in (tmp_path / "refkubelet/__init__.py").read_text()
    (tmp_path / "tables").mkdir()
    monkeypatch.setenv("REFKUBELET_LOT_STATEMENTS", "3")
    monkeypatch.setenv("REFKUBELET_LOT_TABLES", str(tmp_path / "tables"))
    monkeypatch.setattr("builtins." + NOTES, None, raising=False)
    listen()
    table = __builtins__[NOTES]  # type: ignore[index]
    table[1] = 1
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/one").write_bytes(bytes([0, 0, 1]))  # a program that a test started
    assert heard(tmp_path / "programs") == bytes([0, 1, 1])
    assert heard(tmp_path / "programs") == bytes(3)
