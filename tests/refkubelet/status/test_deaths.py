"""The end of a container, shown in the middle of a sync (STAT-012)."""

from __future__ import annotations

import msgspec
from status_world import NOW, exited, pod_of, record, running

from refkubelet.cri.records import ContainerState, RuntimePodStatus, SandboxRecord, SandboxState
from refkubelet.model.objects import PodStatus
from refkubelet.status.conditions import CONTAINERS_READY, READY, find
from refkubelet.status.deaths import with_death
from refkubelet.status.generate import StatusInputs, generate_pod_status

POD = pod_of("main", "other")


def shown_at_the_start() -> PodStatus:
    """Both containers run; the sync that makes changes begins."""
    runtime = RuntimePodStatus(
        "u",
        sandboxes=(SandboxRecord("s", SandboxState.READY),),
        containers=(running(1), record(ContainerState.RUNNING, 2, name="other")),
    )
    return generate_pod_status(POD, runtime, None, StatusInputs(NOW))


def test_only_the_container_that_ended_changes_STAT_012() -> None:
    before = shown_at_the_start()
    after = with_death(POD, before, exited(1, code=3), "containerd")
    assert after is not None
    main, other = after.containerStatuses or ()
    assert main.state is not None
    assert main.state.terminated is not None
    assert main.state.terminated.exitCode == 3
    assert (main.ready, main.started, main.restartCount) == (False, False, 1)
    assert other == (before.containerStatuses or ())[1]
    for kind in (READY, CONTAINERS_READY):
        condition = find(after, kind)
        assert condition is not None
        assert condition.status == "False"
        assert condition.message == "containers with unready status: [main]"
    kept = {"containerStatuses": None, "conditions": None}
    assert msgspec.structs.replace(after, **kept) == msgspec.structs.replace(before, **kept)


def test_an_instance_that_was_not_shown_running_is_not_shown_STAT_012() -> None:
    before = shown_at_the_start()
    assert with_death(POD, before, exited(7), "containerd") is None
    once = with_death(POD, before, exited(1), "containerd")
    assert once is not None
    assert with_death(POD, once, exited(1), "containerd") is None
