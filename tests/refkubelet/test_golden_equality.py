"""refkubelet does what the recorded kubelet did: calls, statuses and events of every recording.

Each recording is done again on the fake runtime in virtual time.
What differs stands in `golden_differences.py`, with rule and reason; everything else must be equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from golden_compare import differing_calls, differing_events, differing_statuses
from golden_differences import DIFFERENCES
from golden_files import NoSections, joined, pack, parted, scenario_texts, unpack
from golden_forms import (
    Timed,
    calls_by_pod,
    events_by_pod,
    pod_resources,
    status_line,
    statuses_by_pod,
)
from golden_recording import Recording, recordings
from golden_replay import Replayed, replay
from golden_scenarios import SCENARIOS
from places import GOLDEN, SPEC

OURS = recordings()


def differences(recording: Recording, seen: Replayed) -> list[str]:
    """Every line that only one of the two runs has."""
    calls = calls_by_pod(row for row in recording.rows("cri.jsonl") if "method" in row)
    found = differing_calls(calls, calls_by_pod(seen.calls))
    statuses = statuses_by_pod(recording.rows("pods.jsonl"))
    found += differing_statuses(statuses, statuses_by_pod(seen.pods))
    if recording.has_api:
        events = events_by_pod(recording.rows("events.jsonl"))
        found += differing_events(events, events_by_pod(seen.events))
    return found


@pytest.mark.parametrize("recording", OURS, ids=lambda recording: recording.name)
def test_a_replay_equals_the_recording(recording: Recording, tmp_path: Path) -> None:
    accepted = [d for d in DIFFERENCES if d.recording == recording.name]
    found = differences(recording, replay(recording, tmp_path))
    unexplained = [line for line in found if not any(line.startswith(d.line) for d in accepted)]
    unneeded = [d for d in accepted if not any(line.startswith(d.line) for line in found)]
    assert unexplained == []
    assert unneeded == []


@pytest.mark.parametrize("recording", OURS, ids=lambda recording: recording.name)
def test_the_calls_do_not_depend_on_which_of_two_things_at_one_instant_comes_first(
    recording: Recording, tmp_path: Path
) -> None:
    seen = replay(recording, tmp_path, loop_seed=1)
    calls = calls_by_pod(row for row in recording.rows("cri.jsonl") if "method" in row)
    assert differing_calls(calls, calls_by_pod(seen.calls)) == []


@pytest.mark.parametrize("name", ["s06", "s15/api", "s22"])
def test_a_replay_repeats_itself(name: str, tmp_path: Path) -> None:
    runs = []
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        runs.append(replay(Recording(name), tmp_path / number))
    first, second = runs  # at the same times, too; UIDs of static pods depend on their path
    assert calls_by_pod(first.calls) == calls_by_pod(second.calls)
    assert statuses_by_pod(first.pods) == statuses_by_pod(second.pods)
    assert events_by_pod(first.events) == events_by_pod(second.events)


def test_resources_of_a_pod_are_told_as_in_the_recording_CG_063(tmp_path: Path) -> None:
    """At the end it is chance whether the cgroup is still there to be read."""
    recording = Recording("s25")

    def told(rows: Iterable[dict[str, Any]]) -> list[str]:
        alive = (row["status"] for row in rows if not row.get("deletionTimestamp"))
        return [line for line, _ in groupby(map(pod_resources, alive))]

    assert told(replay(recording, tmp_path).pods) == told(recording.rows("pods.jsonl"))


def test_every_scenario_is_replayed_with_and_without_an_api_server() -> None:
    assert {recording.scenario for recording in OURS} == {
        name.partition("/")[0] for name in SCENARIOS
    }
    assert len(OURS) == 52
    assert sum(recording.has_api for recording in OURS) == 30


def test_accepted_differences_name_a_recording_and_a_rule() -> None:
    rules = "".join(path.read_text() for path in SPEC.glob("*.md"))
    for row in DIFFERENCES:
        assert row.recording in {recording.name for recording in OURS}
        assert re.search(rf"\*\*{row.rule}\*\*", rules), row
        assert row.reason.endswith(".")


# The comparison itself can fail


def test_a_text_changed_in_its_file_is_a_difference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One number of one call, one word of one status, one event: each is one line."""
    seen = replay(Recording("s10/api"), tmp_path)
    texts = {**scenario_texts(GOLDEN / "s10.txt")}
    changes = (
        ("api/cri.jsonl", '"timeout":"5"', '"timeout":"6"'),
        ("api/pods.jsonl", '"exitCode":0', '"exitCode":1'),
        ("api/events.jsonl", '"reason":"Unhealthy"', '"reason":"Unwell"'),
    )
    for number, (name, recorded, planted) in enumerate(changes):
        assert recorded in texts[name], name
        directory = tmp_path / f"golden-{number}"
        directory.mkdir()
        changed = {**texts, name: texts[name].replace(recorded, planted, 1)}
        (directory / "s10.txt").write_text(joined(changed))
        monkeypatch.setattr("golden_recording.GOLDEN", directory)
        found = differences(Recording("s10/api"), seen)
        assert found, name


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.txt")), ids=lambda file: file.stem)
def test_a_file_of_recordings_is_what_is_made_of_its_folder(file: Path, tmp_path: Path) -> None:
    assert pack(unpack(file.stem, tmp_path), tmp_path).read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    "whole", ["x\n===== a\n1\n", "===== a\n1", "===== b\n1\n===== a\n1\n", "===== a\n" * 2]
)
def test_other_texts_are_no_file_of_recordings(whole: str) -> None:
    with pytest.raises(NoSections):
        parted(whole)


def told(*lines: str, step_s: float = 1.0) -> dict[str, list[Timed]]:
    return {"web": [Timed(number * step_s, line) for number, line in enumerate(lines)]}


def test_a_status_too_many_or_too_few_is_a_difference() -> None:
    short, long = told("Pending", "Running"), told("Pending", "Failed", "Running")
    assert differing_statuses(long, short) == ["status web - Failed"]
    assert differing_statuses(short, long) == ["status web + Failed"]


def test_a_brief_status_may_be_missing_but_not_wrong() -> None:
    seen = told("Pending", "Running")
    assert differing_statuses(told("Pending", "Odd", "Running", step_s=0.05), seen) == []
    other = {"web": [Timed(0.0, "Pending"), Timed(0.05, "Odd"), Timed(1.0, "Running")]}
    assert differing_statuses(other, seen) == ["status web - Odd"]


def test_calls_in_another_order_are_a_difference_except_removals_at_the_end() -> None:
    run = told("RunPodSandbox", "CreateContainer a", "StartContainer a", "StopPodSandbox")
    swapped = told("RunPodSandbox", "StartContainer a", "CreateContainer a", "StopPodSandbox")
    assert len(differing_calls(run, swapped)) == 2
    longer = {"web": [*run["web"], Timed(9.0, "RemoveContainer a")]}
    assert differing_calls(run, longer) == []
    assert differing_calls({"web": run["web"][:-1]}, longer) == ["call web + StopPodSandbox"]


def test_an_event_more_is_a_difference() -> None:
    assert differing_events(told("Created x1"), told("Created x2")) == [
        "event web - Created x1",
        "event web + Created x2",
    ]


def test_statuses_that_differ_in_one_field_give_different_lines() -> None:
    status = {
        "phase": "Running",
        "qosClass": "BestEffort",
        "podIP": "10.0.0.1",
        "startTime": "2026-11-21T09:37:01Z",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "started": True,
                "restartCount": 1,
                "containerID": "containerd://x",
                "state": {"running": {"startedAt": "2026-11-21T09:37:01Z"}},
                "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
            }
        ],
    }
    (container,) = status["containerStatuses"]
    changed = [
        status | {"phase": "Pending"},
        status | {"qosClass": "Burstable"},
        status | {"podIP": None},
        status | {"startTime": None},
        status | {"reason": "Evicted"},
        status | {"conditions": [{"type": "Ready", "status": "False"}]},
        status | {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}]},
        *[
            status | {"containerStatuses": [container | change]}
            for change in (
                {"ready": False},
                {"started": False},
                {"restartCount": 2},
                {"containerID": None},
                {"state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                {"lastState": {"terminated": {"exitCode": 4, "reason": "Error"}}},
                {"lastState": {}},
                {"allocatedResources": {"cpu": "1"}},
            )
        ],
    ]
    lines = [status_line(each) for each in [status, *changed]]
    assert len(set(lines)) == len(lines)
