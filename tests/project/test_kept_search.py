"""results/search.json keeps what campaigns of search said, and the page shows it."""

from __future__ import annotations

import pytest
from keep_search import row_of, take
from search_table import campaigns_table

from kubelet_conformance.search.playing import Breach
from kubelet_conformance.search.records import Excused, Head, Met

HEAD = Head(suite="x", kubelet="/usr/bin/kubelet", size="small", began="2026-11-30T10:00:00Z")
LINES = [
    Met(seed=8, kinds=(), verdict="broken", breaches=(Breach("one-running", "x"),), cpu_s=1800.0),
    Met(seed=7, kinds=(), verdict="holds", world_s=7200.0, cpu_s=36.0),
    Met(seed=9, kinds=(), verdict="excused", excused=(Excused("one-static", "112814"),) * 2),
]


def test_a_row_has_what_is_told_at_the_end_of_a_search() -> None:
    assert row_of(HEAD, LINES, "kubelet 1.36.2") == {
        "kubelet": "kubelet 1.36.2",
        "size": "small",
        "beside": "",
        "date": "2026-11-30",
        "seeds": [7, 9],
        "worlds": 3,
        "verdicts": {"broken": 1, "excused": 1, "holds": 1},
        "laws": {"one-running": 1},
        "excuses": {"112814": 2},
        "world_h": 2.0,
        "cpu_h": 0.51,
    }


def test_a_campaign_takes_the_place_of_the_one_before_it() -> None:
    old, other = row_of(HEAD, LINES[:2], "b"), row_of(HEAD, LINES[1:2], "a")
    new = row_of(HEAD, LINES, "b")
    assert take(take([other], old), new) == [other, new]
    assert take([old], row_of(HEAD, LINES[2:], "b"))[0] == old  # other seeds


def test_the_table_says_what_each_excuse_swallowed() -> None:
    (line,) = campaigns_table([row_of(HEAD, LINES, "b")]).splitlines()[2:]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["b", "small", "7-9", "3", "1", "1 (112814 2)", "1", "2", "0.51", "2026-11-30"]
    assert campaigns_table([]) == "No campaign is recorded.\n"


@pytest.mark.parametrize("beside", ["", "refkubelet"])
def test_what_was_beside_is_told(beside: str) -> None:
    row = {**row_of(HEAD, LINES, "b"), "beside": beside}
    assert (", beside refkubelet" in campaigns_table([row])) is bool(beside)
