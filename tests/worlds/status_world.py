"""Pods, records of containers and generated statuses, for tests of statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pods import IMAGE, make_pod, sidecar

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
)
from refkubelet.status.generate import StatusInputs, generate_pod_status

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NS = int(NOW.timestamp()) * 10**9


RUNNING: Final = {"state": {"running": {}}, "started": True}
UNSTARTED: Final = {"state": {"running": {}}, "started": False}
OK: Final = {"state": {"terminated": {"exitCode": 0}}}
BAD: Final = {"state": {"terminated": {"exitCode": 3}}}
NEW: Final[dict[str, Any]] = {"state": {"waiting": {}}}
BACKOFF: Final = {"state": {"waiting": {}}, "lastState": BAD["state"]}
BACKOFF_OK: Final = {"state": {"waiting": {}}, "lastState": OK["state"]}


def pod_of(*names: str, policy: str = "Always", gates: Sequence[str] = (), **fields: Any) -> Pod:
    """A pod of these containers: names that begin with `s` are sidecars, with `i` plain init
    containers. `gates`: its readiness gates. `fields`: those of `make_pod`."""
    return make_pod(
        *(name for name in names if name[0] not in "is"),
        init=[sidecar(name) if name[0] == "s" else name for name in names if name[0] in "is"],
        restartPolicy=policy,
        readinessGates=[{"conditionType": gate} for gate in gates],
        **fields,
    )


def status_of(phase: str = "Running", **told: Mapping[str, Any] | None) -> PodStatus:
    """A status that tells this of containers, in JSON's form; None: nothing. Names that begin with
    `s` or `i` are those of init containers."""
    common = {"image": "", "imageID": "", "ready": False, "restartCount": 0}
    rows = [{**common, "name": name, **row} for name, row in told.items() if row is not None]
    return PodStatus.from_dict(
        {
            "phase": phase,
            "initContainerStatuses": [row for row in rows if row["name"][0] in "is"],
            "containerStatuses": [row for row in rows if row["name"][0] not in "is"],
        }
    )


def statuses_in(status: PodStatus) -> list[ContainerStatus]:
    """Of init containers, then of regular ones."""
    return [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())]


def record(state: ContainerState, number: int = 0, **more: Any) -> ContainerRecord:
    values: dict[str, Any] = {"id": f"id{number}", "name": "main", "image": IMAGE, "state": state}
    return ContainerRecord(**values | {"started_at_ns": NS, "restart_count": number} | more)


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
