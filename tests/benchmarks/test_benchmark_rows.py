"""What a benchmark's row says, and when a run of the benchmarks fails."""

from __future__ import annotations

import pytest
import run
from measure import Row
from scaling import SIZES, Subject, growth, summary

from fakecri import FakeCRI


@pytest.mark.parametrize(
    ("row", "wanted", "measured", "verdict"),
    [
        (Row("a", 0.5, "ms"), "", "0.50 ms", ""),
        (Row("a", 0.5, "ms", 0.8), "< 0.8 ms", "0.50 ms", "ok"),
        (Row("a", 0.8, "ms", 0.8), "< 0.8 ms", "0.80 ms", "MISSED"),
        (Row("a", float("nan"), "ms", 0.8), "< 0.8 ms", "nan ms", "MISSED"),
        (Row(what="a", value=50.0, unit="x", limit=50, at_least=True), ">= 50 x", "50.0 x", "ok"),
        (
            Row(what="a", value=49.9, unit="x", limit=50, at_least=True),
            ">= 50 x",
            "49.9 x",
            "MISSED",
        ),
        (
            Row(what="a", value=None, unit="x", limit=50, remark="no Docker", at_least=True),
            ">= 50 x",
            "-",
            "skipped",
        ),
    ],
)
def test_a_row_says_what_is_wanted_and_whether_it_is_so(
    row: Row, wanted: str, measured: str, verdict: str
) -> None:
    assert (row.wanted, row.measured, row.verdict) == (wanted, measured, verdict)
    assert row.missed == (verdict == "MISSED")


def test_a_missed_number_fails_the_run_and_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Row("good", 1.0, "ms", 2), Row("left out", None, "ms", 2)]
    monkeypatch.setattr(run, "measured", lambda name, quick: rows)
    monkeypatch.setattr("sys.argv", ["run.py", "--only", "memory"])
    assert run.main() == 0
    rows.append(Row("bad", 3.0, "ms", 2))
    assert run.main() == 1
    assert "missed: bad" in capsys.readouterr().err


def subjects(**times_us: tuple[float, float, float]) -> list[Subject]:
    return [
        Subject(FakeCRI(), "", {what: [times[i] / 1e6] for what, times in times_us.items()})
        for i in range(len(SIZES))
    ]


def test_growth_of_a_list_is_per_container_and_of_another_call_whole() -> None:
    seen = subjects(Version=(10, 11, 12), ListContainers=(300, 2000, 24000))
    assert growth(seen, "Version") == pytest.approx(1.2)
    assert growth(seen, "ListContainers") == pytest.approx(1.2)
    assert not any(row.missed for row in summary(seen))


def test_a_call_that_looks_at_all_containers_is_found_out() -> None:
    seen = subjects(Version=(10, 10, 10), ImageFsInfo=(10, 50, 500), ListContainers=(1, 10, 100))
    constant, lists = summary(seen)
    assert constant.missed
    assert "ImageFsInfo" in constant.remark
    assert not lists.missed


def test_a_list_with_quadratic_cost_is_found_out() -> None:
    seen = subjects(Version=(10, 10, 10), ListContainers=(10, 1000, 100_000))
    assert [row.missed for row in summary(seen)] == [False, True]
