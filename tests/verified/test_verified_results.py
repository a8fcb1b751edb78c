"""The record of verified runs: what is kept, what the page shows, and what counts as a race won."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import differences
import pytest
from differences import FieldRow
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri
from pairs import Mismatch, Pair, Side

from fakecri.errors import CriError, status_code
from results import Machine, Results, save
from simclock import run_virtual


def whole_run(**changes: Any) -> Results:
    rows = {differences.FIELDS[0]: 3}
    run = Results(
        containerd="1.6.20~ds1",
        runc="1.1.5",
        expected=2,
        passed=1,
        failed=1,
        machine=Machine(2000, 0, rows),
        facts={"date": "2026-11-21"},
    )
    for name, value in changes.items():
        setattr(run, name, value)
    return run


def test_a_whole_run_takes_the_place_of_the_last_one_of_its_version(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    assert save(path, whole_run(containerd="2.1.9"))
    assert save(path, whole_run())
    assert save(path, whole_run(passed=2, failed=0))
    kept = json.loads(path.read_text())
    assert list(kept) == ["1.6", "2.1"]
    assert kept["1.6"]["contract"] == {"passed": 2, "failed": 0}
    assert kept["1.6"]["differences"][0]["times"] == 3


@pytest.mark.parametrize(
    "missing", [{"machine": None}, {"containerd": ""}, {"passed": 0}, {"expected": 0}], ids=str
)
def test_a_run_of_parts_is_not_kept(tmp_path: Path, missing: dict[str, Any]) -> None:
    assert not save(tmp_path / "v.json", whole_run(**missing))
    assert not (tmp_path / "v.json").exists()


@pytest.mark.parametrize(
    ("bounds", "has", "has_not"),
    [
        ({}, ["1.6.20~ds1", "2.1.9", ""], []),
        ({"since": "2.1"}, ["2.1.9+unknown", "v2.4.0"], ["1.7.24", "2.0.1"]),
        ({"before": "2.0"}, ["1.6.20", "1.7.24"], ["2.0.0", "2.1.9"]),
        ({"since": "1.7", "before": "2.2"}, ["1.7.1", "2.1.9"], ["1.6.36", "2.2.0"]),
    ],
)
def test_a_row_holds_for_the_versions_it_names(
    bounds: dict[str, str], has: list[str], has_not: list[str]
) -> None:
    row = FieldRow("Status", "status", "because of a test", **bounds)
    assert all(map(row.holds, has))
    assert not any(map(row.holds, has_not))


class Answers:
    """A call target that gives these errors ("": success), one after another."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)

    async def call(self, method: str, request: Message, **_: Any) -> Message:
        code, _, text = self.errors.pop(0).partition(" ")
        if code:
            raise CriError(status_code(code), text)
        return cri.StopContainerResponse()


def race(
    method: str, real: tuple[str, str], fake: tuple[str, str], version: str = "1.6.20"
) -> Pair:
    pair = Pair(Side("real", Answers(*real), "/a", version), Side("fake", Answers(*fake), "/b"))
    run_virtual(lambda: pair.race(method, lambda side: cri.StopContainerRequest()))
    return pair


def test_who_wins_a_race_does_not_matter() -> None:
    race("StartContainer", ("", "UNKNOWN late"), ("UNKNOWN is starting", ""))


def test_an_accident_of_containerd_counts_as_success_in_a_race() -> None:
    """Seen on 1.6.20 and 2.1.9: the second kill finds the connection of the first closed."""
    lost = 'UNKNOWN failed to kill container "c1": ttrpc: closed: unknown'
    pair = race("StopContainer", ("", lost), ("", ""))
    assert [row.reason for row in pair.used] == [differences.RACES[0].reason]


def test_another_failure_in_a_race_is_a_mismatch_that_shows_every_answer() -> None:
    with pytest.raises(Mismatch, match=r"real: OK  \| UNKNOWN disk full\n  fake: OK  \| OK"):
        race("StopContainer", ("", "UNKNOWN disk full"), ("", ""))


def test_a_code_of_another_version_counts_only_there() -> None:
    real = ("", "FAILED_PRECONDITION failed to reserve sandbox name")
    race("RunPodSandbox", real, ("", "UNKNOWN taken"), version="2.1.9")
    with pytest.raises(Mismatch):
        race("RunPodSandbox", real, ("", "UNKNOWN taken"), version="1.7.24")
