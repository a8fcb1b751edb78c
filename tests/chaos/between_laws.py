"""Laws of one pod, from the calls and statuses of any kubelet: nothing is stopped for a probe that
has not failed, and between the steps of a sync only states are shown that a container has been in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from between_plan import BetweenPlan

from kubelet_conformance.harness.node import Node

KINDS: Final = ("startup", "liveness", "readiness")
POD: Final = "web"


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """A run of a probe that came to a result."""

    container_id: str
    good: bool
    ended_s: float


def broken_laws(node: Node, plan: BetweenPlan, *, ids_compared: bool) -> list[str]:
    """What was wrong. `ids_compared`: the kubelet does not take `started` over from a container's
    last instance, as kubelet 1.36 does for a moment (PROBE-044)."""
    wrong = []
    for container in plan.pod.containers:
        runs = {kind: list(_probe_runs(node, container.name, kind)) for kind in KINDS}
        wrong += _kills(node, plan, container.name, runs)
        wrong += _told_kills(node, plan, container.name, runs)
        wrong += _shown(node, plan, container.name, runs, ids_compared=ids_compared)
    return wrong + _conditions(node, plan)


def _probe_runs(node: Node, name: str, kind: str) -> Iterator[ProbeRun]:
    for call in node.calls("ExecSync", container=name):
        if call.request.cmd[-1] != f"/tmp/{kind}" or call.ended_s is None:
            continue
        if call.error is None or call.error[0] == "DEADLINE_EXCEEDED":
            good = call.error is None and call.response.exit_code == 0
            yield ProbeRun(call.request.container_id, good, node.ended_s(call))


def _failed_for_good(
    plan: BetweenPlan, name: str, kind: str, runs: Sequence[ProbeRun], before_s: float
) -> set[str]:
    """The IDs of containers with whose run the probe had failed so often in a row, before that
    moment. A row goes on in the next instance of the container (PROBE-027)."""
    probe = plan.probe(name, kind)
    failed, row = set(), 0
    for run in runs:
        row = 0 if run.good else row + 1
        if probe is not None and run.ended_s <= before_s and row >= probe["failureThreshold"]:
            failed.add(run.container_id)
    return failed


def _kills(
    node: Node, plan: BetweenPlan, name: str, runs: Mapping[str, Sequence[ProbeRun]]
) -> list[str]:
    """Each stop has its reason: a probe of the very container that failed, a change, or the end of
    the pod, whose sidecars are stopped."""
    if plan.may_be_stopped(name):
        return []
    wrong = []
    for call in node.calls("StopContainer", container=name):
        at_s, stopped = node.time_s(call), call.request.container_id
        failed = {
            each
            for kind in ("startup", "liveness")
            for each in _failed_for_good(plan, name, kind, runs[kind], at_s)
        }
        if stopped not in failed and not _at_the_end(node, name, at_s):
            wrong.append(f"{at_s:.3f}: {name} {stopped[:8]} is stopped, and no probe had failed")
    return wrong


def _at_the_end(node: Node, name: str, at_s: float) -> bool:
    """The pod is over, and the container was not started any more. (The event that tells of it may
    be missing: of one pod only so many are sent.)"""
    over = node.api.phase(POD) in ("Succeeded", "Failed")
    return over and not node.count("StartContainer", container=name, since_s=at_s)


def _told_kills(
    node: Node, plan: BetweenPlan, name: str, runs: Mapping[str, Sequence[ProbeRun]]
) -> list[str]:
    """No event Killing names a probe more often than it has failed."""
    wrong = []
    for kind in ("startup", "liveness"):
        told = sum(
            int(event.get("count") or 1)
            for event in node.events("Killing", pod=POD)
            if f"ontainer {name} failed {kind} probe" in event["message"]
        )
        failed = _failed_for_good(plan, name, kind, runs[kind], node.now_s)
        if told > len(failed):
            wrong.append(f"{told} events: {name} failed {kind} probe; it did {len(failed)} times")
    return wrong


def _shown(
    node: Node,
    plan: BetweenPlan,
    name: str,
    runs: Mapping[str, Sequence[ProbeRun]],
    *,
    ids_compared: bool,
) -> list[str]:
    """What statuses say of a container: created is not shown, ready and started have been found
    out, restarts are counted up."""
    wrong = []
    statuses = [s for status in node.statuses(POD) for s in _of(status, name)]
    for status in statuses:
        state, shown_id = status.get("state") or {}, _bare(status.get("containerID"))
        ended = (status.get("lastState") or {}).get("terminated") or {}
        succeeded = {
            kind: any(r.good and r.container_id == shown_id for r in runs[kind]) for kind in KINDS
        }
        if "waiting" in state and shown_id and _bare(ended.get("containerID")) != shown_id:
            wrong.append(f"{name} {shown_id[:8]} is shown as created")
        if status.get("ready") and "running" not in state:
            wrong.append(f"{name} is ready and does not run")
        if status.get("ready") and plan.probe(name, "readiness") and not succeeded["readiness"]:
            wrong.append(f"{name} {shown_id[:8]} is ready, and no probe said so")
        started = status.get("started") and plan.probe(name, "startup")
        if started and ids_compared and not succeeded["startup"]:
            wrong.append(f"{name} {shown_id[:8]} has started, and no probe said so")
    counts = [int(status.get("restartCount", 0)) for status in statuses]
    if any(later < earlier for earlier, later in pairwise(counts)):
        wrong.append(f"the restarts of {name} go down: {counts}")
    return sorted(set(wrong))


def _conditions(node: Node, plan: BetweenPlan) -> list[str]:
    """ContainersReady agrees with what the same status says of the containers."""
    wrong = set()
    for status in node.statuses(POD):
        found = {c["type"]: c["status"] for c in status.get("conditions") or []}
        if "ContainersReady" not in found:
            continue
        each = [s for c in plan.pod.containers for s in _of(status, c.name)]
        ready = bool(each) and all(s.get("ready") for s in each)
        if (found["ContainersReady"] == "True") != ready:
            names = [s["name"] for s in each if not s.get("ready")]
            wrong.add(f"ContainersReady is {found['ContainersReady']}, not ready: {names}")
    return sorted(wrong)


def _of(status: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [
        dict(entry)
        for kind in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(kind) or ()
        if entry["name"] == name
    ]


def _bare(container_id: str | None) -> str:
    return str(container_id or "").rpartition("/")[2]
