"""compute_events gives whole events: whose, which, about what (PLEG-002..004)."""

from __future__ import annotations

import pytest

from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    SandboxState,
)
from refkubelet.pleg.compute import PodLifecycleEvent, PodLifecycleEventType, compute_events

STARTED = PodLifecycleEventType.CONTAINER_STARTED
DIED = PodLifecycleEventType.CONTAINER_DIED
REMOVED = PodLifecycleEventType.CONTAINER_REMOVED


def pod(container: ContainerState | None, sandbox: SandboxState | None) -> RuntimePod:
    containers = (ListedContainer("c", "main", container, created_at_ns=1),) if container else ()
    sandboxes = (ListedSandbox("s", sandbox, created_at_ns=1),) if sandbox else ()
    return RuntimePod("u", "web", "default", containers=containers, sandboxes=sandboxes)


ALIVE = pod(ContainerState.RUNNING, SandboxState.READY)
DEAD = pod(ContainerState.EXITED, SandboxState.NOTREADY)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (None, None, []),
        (ALIVE, ALIVE, []),
        (None, ALIVE, [("c", STARTED), ("s", STARTED)]),
        (ALIVE, DEAD, [("c", DIED), ("s", DIED)]),
        (DEAD, None, [("c", REMOVED), ("s", REMOVED)]),
        (ALIVE, None, [("c", DIED), ("c", REMOVED), ("s", DIED), ("s", REMOVED)]),
        (pod(None, SandboxState.READY), ALIVE, [("c", STARTED)]),
    ],
)
def test_events_of_a_pod_PLEG_003_PLEG_004(
    old: RuntimePod | None,
    new: RuntimePod | None,
    wanted: list[tuple[str, PodLifecycleEventType]],
) -> None:
    assert compute_events(old, new) == [
        PodLifecycleEvent("u", kind, about) for about, kind in wanted
    ]
