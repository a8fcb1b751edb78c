"""Parts of a run: all cases once, none empty, stable, as long as each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubelet_conformance.shards import TimesError, parts, read_times

IDS = [f"case-{number}" for number in range(500)]


@pytest.mark.parametrize(("count", "cases"), [(5, 500), (7, 8), (3, 3), (2, 3)])
def test_every_part_has_cases_and_about_as_many(count: int, cases: int) -> None:
    found = parts(IDS[:cases], count, {})
    sizes = [list(found.values()).count(part) for part in range(1, count + 1)]
    assert sum(sizes) == cases
    assert min(sizes) >= 1
    assert max(sizes) <= cases / count * 1.02 + 1


def test_a_case_stays_in_its_part_when_others_come_and_go() -> None:
    before = parts(IDS, 5, {})
    assert parts(list(reversed(IDS)), 5, {}) == before
    after = parts([*IDS[60:], "new"], 5, {})
    assert sum(after[one] != before[one] for one in IDS[60:]) < 20


def test_parts_are_equally_long_where_times_are_known() -> None:
    times = {one: float(number % 37 + 1) for number, one in enumerate(IDS[:400])}
    found = parts(IDS, 4, times)  # a hundred are new: each counts as the median
    lengths = [sum(times.get(one, 19.0) for one in IDS if found[one] == p) for p in (1, 2, 3, 4)]
    assert max(lengths) / min(lengths) < 1.15


def test_times_are_read_from_results_whatever_their_form(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"cases": {"one": {"real_s": 1.5}, "two": {"outcome": "skipped"}}}))
    assert read_times(file) == {"one": 1.5}
    rows = [{"seed": 1}, {"case": "one", "real_s": 1}, {"case": "one", "real_s": 2}]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert read_times(file) == {"one": 3.0}


@pytest.mark.parametrize("text", ["", "{}", "nonsense", "[1]"])
def test_a_file_without_times_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(TimesError, match=r"--times .*run.json: (wanted a file|cannot be read)"):
        read_times(tmp_path / "run.json")


def test_a_part_is_not_empty_because_one_case_is_longer_than_all_others() -> None:
    for number in range(20):
        times = {f"{number}-long": 100.0, f"{number}-a": 1.0, f"{number}-b": 1.0}
        assert set(parts(list(times), 3, times).values()) == {1, 2, 3}
