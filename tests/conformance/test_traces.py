"""Traces: what recorded calls and requests become in them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from golden_recording import Recording

from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import load_cases
from kubelet_conformance.traces.calls import entries_of
from kubelet_conformance.traces.entries import Entry, Trace
from kubelet_conformance.traces.naming import Names
from kubelet_conformance.traces.requests import request_entry
from kubelet_conformance.traces.waits import waits_of


def golden(name: str) -> list[Entry]:
    return entries_of(list(Recording(name).rows("cri.jsonl")), Names())


def test_a_recorded_crash_loop_shows_its_waits() -> None:
    """The delays of a real kubelet, as its README has them: 0.9, 11.9, 24.9, 59.9, 83.9 ... s."""
    entries = sorted(golden("s02"), key=lambda entry: entry.at_s)
    waits = [wait for wait in waits_of(entries) if wait.container == "main"]
    took = [wait.until_s - wait.at_s for wait in waits if wait.until_s is not None]
    assert took == pytest.approx([0.9, 11.9, 24.9, 59.9, 83.9, 173.9, 305.9, 300.9], abs=0.15)


def test_probes_are_told_from_hooks_and_fail_by_their_exit_code() -> None:
    probes = [entry for entry in golden("s10") if entry.kind == "probe"]
    assert probes
    assert {entry.what for entry in probes} == {"ExecSync"}
    assert {entry.error for entry in probes} == {"", "exit code 1"}
    hooks = [entry for entry in golden("s18") if entry.what == "ExecSync"]
    assert hooks
    assert {entry.kind for entry in hooks} == {"call"}


def row(method: str, at_s: float, request: Any = None, response: Any = None, **more: Any) -> Any:
    shown = {"t_start": at_s, "t_end": at_s + 0.1, "method": method, "request": request or {}}
    return {**shown, **({"response": response} if response is not None else {}), **more}


ID = "0123456789abcdef" * 4


def test_ids_and_uids_become_names() -> None:
    metadata = {"name": "web", "uid": "11111111-2222-3333-4444-555555555555", "attempt": 1}
    made = entries_of(
        [
            row("RunPodSandbox", 0, {"config": {"metadata": metadata}}, {"pod_sandbox_id": ID}),
            row("StopPodSandbox", 1, {"pod_sandbox_id": ID}, {}),
        ],
        Names(),
    )
    calls = [entry for entry in made if entry.kind == "call"]
    assert calls[0].detail["request"]["config"]["metadata"]["uid"] == "uid:web"
    assert calls[0].detail["response"] == {"pod_sandbox_id": "sandbox:web/1"}
    assert (calls[1].pod, calls[1].attempt) == ("web", 1)
    assert [entry.what for entry in made if entry.kind == "state"] == ["ready", "notready"]


def test_a_container_has_ended_when_its_stop_is_answered_at_the_latest() -> None:
    """Times in the runtime count from the start, whose moment inside the call nobody knows."""
    ended = {"id": ID, "state": "CONTAINER_EXITED", "started_at": 1, "finished_at": 5 * 10**9}
    made = entries_of(
        [
            row("StartContainer", 0.5, {"container_id": ID}, {}),
            row("StopContainer", 5.3, {"container_id": ID}, {}),
            row("CreateContainer", 5.5, {"config": {"metadata": {"name": "main"}}}, {}),
            row("ContainerStatus", 6, {"container_id": ID}, {"status": ended}),
        ],
        names_of_main(),
    )
    exits = [entry.at_s for entry in made if entry.what == "exited"]
    assert exits == [pytest.approx(5.4)]


def names_of_main() -> Names:
    names = Names()
    names.container(ID, "web", "main", 0)
    return names


def test_a_uid_behind_a_letter_that_is_a_digit_is_found() -> None:
    names = Names()
    names.uid("225fbc023ad8f29c92460be5c80a59b7", "web")
    group = "/kubepods/pod225fbc023ad8f29c92460be5c80a59b7"
    assert names.named(group) == "/kubepods/poduid:web"


def test_a_second_thing_of_a_name_has_another_name() -> None:
    names = Names()
    names.sandbox(ID, "web", 0)
    names.sandbox(ID[::-1], "web", 0)
    assert names.named([ID, ID[::-1]]) == ["sandbox:web/0", "sandbox:web/0#2"]


def test_reads_are_counted_and_those_that_fail_are_calls() -> None:
    failed = row("Status", 2, error={"code": "UNAVAILABLE", "message": "away"})
    made = entries_of([row("Status", 0), row("Version", 1), failed, row("Status", 3)], Names())
    assert [(entry.kind, entry.told) for entry in made] == [
        ("reads", "1 Status, 1 Version"),
        ("call", ""),
        ("reads", "1 Status"),
    ]
    assert made[1].error == "UNAVAILABLE: away"


def test_a_pull_that_failed_is_waited_for() -> None:
    request = {"image": {"image": "x:1"}}
    failed = row("PullImage", 0, request, error={"code": "UNKNOWN", "message": "no"})
    made = entries_of([failed, row("PullImage", 10, request, {})], Names())
    (wait,) = waits_of(made)
    assert (wait.what, wait.at_s, wait.until_s) == ("pull", 0.1, 10)


def test_requests_are_events_or_changes_and_reads_are_none() -> None:
    event = {
        "reason": "BackOff",
        "type": "Warning",
        "message": "wait",
        "count": 3,
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{main}"},
    }
    found = request_entry(
        method="POST", path="/api/v1/namespaces/default/events", body=event, status=201,
        at_s=1, until_s=2,
    )  # fmt: skip
    assert found is not None
    assert (found.kind, found.what, found.pod, found.container) == (
        *("event", "BackOff"),
        *("web", "main"),
    )
    assert found.told == "Warning: wait (x3)"
    patch = request_entry(
        method="PATCH", path="/api/v1/namespaces/default/pods/web/status",
        body={"status": {"phase": "Running"}}, status=409, at_s=1, until_s=2, by_kubelet=False,
    )  # fmt: skip
    assert patch is not None
    assert (patch.kind, patch.pod, patch.error) == ("user", "web", "HTTP 409")
    assert request_entry(method="GET", path="/x", body=None, status=200, at_s=0, until_s=0) is None


def run_one(id: str, traces: Any) -> Trace | None:
    (case,) = (case for case in load_cases() if case.id == id)
    return run_virtual_case(case, Choice(traces=traces)).record


def test_a_case_leaves_calls_statuses_probes_events_and_patches_in_order() -> None:
    trace = run_one("probe-below-threshold", "all")
    assert trace is not None
    assert all(a.at_s <= b.at_s for a, b in pairwise(trace.entries))
    kinds = {entry.kind for entry in trace.entries}
    assert {"call", "reads", "state", "status", "event", "api", "user", "probe"} <= kinds
    assert all(entry.at_s <= trace.end_s for entry in trace.entries)


def test_a_case_that_passes_leaves_no_trace_unless_all_are_wanted() -> None:
    assert run_one("start-order", "failed") is None


def reached(id: str) -> list[Entry]:
    """What came over the network in a case."""
    trace = run_one(id, "all")
    assert trace is not None
    assert all(entry.at_s <= trace.end_s for entry in trace.entries)
    of_network = [e for e in trace.entries if e.kind in ("probe", "hook") and e.what != "ExecSync"]
    return [e for e in of_network if e.until_s is not None]


def test_probes_over_http_have_their_statuses_and_where_they_fail_PROBE_068() -> None:
    found = reached("http-liveness")
    assert ("port 8080 / -> 204", "") in {(e.told, e.error) for e in found}
    assert ("port 8080 / -> 500", "HTTP 500") in {(e.told, e.error) for e in found}
    assert {(e.kind, e.what, e.pod, e.container) for e in found} == {
        ("probe", "http", "web-node", "main")
    }


def test_probes_over_grpc_and_tcp_have_their_results_PROBE_071_PROBE_073() -> None:
    health = {(e.what, e.told, e.error) for e in reached("grpc-not-serving")}
    assert ("grpc", "port 9090 -> NOT_SERVING", "NOT_SERVING") in health
    assert {(e.told, e.error) for e in reached("grpc-serving")} >= {("port 9090 db -> SERVING", "")}
    refused = "connection refused"
    tcp = {(e.what, e.told, e.error) for e in reached("tcp-readiness")}
    assert tcp >= {
        ("tcp", f"port 8080 -> {refused}", refused),
        ("tcp", "port 8080 -> open", ""),
    }


def test_a_probe_that_was_given_up_says_so() -> None:
    first = reached("http-timeout")[0]
    assert first.error == "the client left before there was an answer"
    assert first.until_s == pytest.approx(first.at_s + 1)


def test_a_hook_over_http_is_told_from_a_probe_LIFE_142() -> None:
    assert {(e.kind, e.told) for e in reached("hook-http")} == {
        ("hook", "port 8080 /started -> 500")
    }


def test_an_exec_probe_tells_its_exit_code_and_its_output() -> None:
    request = {"container_id": ID, "cmd": ["cat", "/x"], "timeout": 1}
    answers = [{}, {"stdout": "b2s="}, {"stdout": "bm8=", "exit_code": 2}]
    asked = [row("ExecSync", at_s, request, answer) for at_s, answer in enumerate(answers)]
    unanswered = row("ExecSync", 3, request, error={"code": "DEADLINE_EXCEEDED", "message": "x"})
    made = entries_of([*asked, unanswered], Names())
    assert [(entry.kind, entry.told, entry.error) for entry in made] == [
        ("probe", "cat /x -> exit code 0", ""),
        ("probe", "cat /x -> exit code 0: ok", ""),
        ("probe", "cat /x -> exit code 2: no", "exit code 2"),
        ("probe", "cat /x", "DEADLINE_EXCEEDED: x"),
    ]
