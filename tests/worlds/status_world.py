"""Pods, records of containers and generated statuses, for tests of statuses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.model.objects import (
    ContainerStatus,
    Pod,
    PodStatus,
    decode_pod,
)
from refkubelet.status.generate import StatusInputs, generate_pod_status

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NS = int(NOW.timestamp()) * 10**9


def pod_with(policy: str = "Always", *, init: Any = (), deleting: bool = False, **spec: Any) -> Pod:
    meta: dict[str, Any] = {"name": "p", "namespace": "n", "uid": "u"}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    base = {"restartPolicy": policy, "containers": [{"name": "c", "image": "img"}]}
    return decode_pod({"metadata": meta, "spec": base | {"initContainers": list(init)} | spec})


def record(state: ContainerState, number: int = 0, **more: Any) -> ContainerRecord:
    values: dict[str, Any] = {"started_at_ns": NS, "restart_count": number, "image": "img"}
    return ContainerRecord(**({"id": f"id{number}", "name": "c", "state": state} | values | more))


def exited(number: int = 0, code: int = 1, **more: Any) -> ContainerRecord:
    return record(
        ContainerState.EXITED, number, exit_code=code, reason="Error", finished_at_ns=NS, **more
    )


def running(number: int = 0) -> ContainerRecord:
    return record(ContainerState.RUNNING, number)


def generate(
    pod: Pod, *records: ContainerRecord, previous: PodStatus | None = None, **inputs: Any
) -> PodStatus:
    runtime = RuntimePodStatus(
        "u", sandboxes=(SandboxRecord("s", SandboxState.READY),), containers=records
    )
    return generate_pod_status(pod, runtime, previous, StatusInputs(NOW, **inputs))


def only(status: PodStatus) -> ContainerStatus:
    (found,) = status.containerStatuses or ()
    return found
