"""A kubelet whose back-off is doubled: `diff` against a good run shows it first."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_run import planted_run

from kubelet_conformance.report.commands import main


def run(mutant: str, file: Path) -> int:
    return planted_run(mutant, "--id", "backoff-first", "--results", str(file))


def test_a_doubled_back_off_is_the_first_line_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids, UIDs and directories are others in each run, and are no difference."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    assert run("", good) == 0
    assert run("backoff/first-delay-doubled", bad) == 1
    assert main("diff", [str(good), str(bad)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[2].startswith("backoff-first: web-node: only in A: CreateContainer main/2, after 1")
    assert "the other had not made it within 2" in told[2]
    assert "backoff-first: verdict failed, in A passed" in told


def test_two_good_runs_have_no_difference(tmp_path: Path) -> None:
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    assert [run("", file) for file in files] == [0, 0]
    assert main("diff", [*map(str, files), "--exact"]) == 0
