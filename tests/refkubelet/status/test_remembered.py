"""Containers whose record is gone, or says nothing: LIFE-171, LIFE-172, LIFE-173, LIFE-125."""

from __future__ import annotations

from typing import Any

import pytest
from pods import container, make_pod, sidecar
from status_world import NOW

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.model.objects import PodCondition, PodStatus, to_dict
from refkubelet.status.generate import StatusInputs, generate_pod_status

PLAIN = container("i")
SIDECAR = sidecar("i")
RUNS = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
DELETED = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)
REMOVED = "The container is removed because RestartAllContainers in place"


def record(name: str, state: str, code: int = 0, number: int = 0) -> ContainerRecord:
    return ContainerRecord(
        id=f"{name}{number}",
        name=name,
        state=ContainerState(state),
        exit_code=code,
        restart_count=number,
    )


def known(name: str, state: Any, count: int = 0, **more: Any) -> dict[str, Any]:
    base = {"name": name, "image": "i", "imageID": "sha256:1", "ready": False}
    return base | {"restartCount": count, "state": state} | more


def shown(
    init: dict[str, Any],
    *records: ContainerRecord,
    was: dict[str, Any] | None = None,
    restarting: bool = False,
    reason: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """The status of the init container `i` in a pod with the regular containers `a` and `b`."""
    pod = make_pod("a", "b", init=[init])
    previous = PodStatus.from_dict({"initContainerStatuses": [was]} if was else {})
    if restarting:
        condition = PodCondition(type="AllContainersRestarting", status="True")
        previous.conditions = [condition]
    boxes = (SandboxRecord("s", SandboxState.READY),)
    runtime = RuntimePodStatus("u", sandboxes=boxes, containers=records)
    inputs = StatusInputs(NOW, reason_of=lambda name: reason)
    status = generate_pod_status(pod, runtime, previous, inputs)
    found: dict[str, Any] = to_dict((status.initContainerStatuses or [])[0])
    return found


@pytest.mark.parametrize("init", [PLAIN, SIDECAR])
def test_an_init_container_that_ended_with_0_tells_no_start_error_LIFE_171(init: Any) -> None:
    found = shown(init, record("i", "exited"), reason=("CrashLoopBackOff", "why"))
    assert found["state"]["terminated"]["exitCode"] == 0


def test_a_sidecar_that_failed_tells_its_start_error_LIFE_171() -> None:
    found = shown(SIDECAR, record("i", "exited", 1), reason=("CrashLoopBackOff", "why"))
    assert found["state"]["waiting"]["reason"] == "CrashLoopBackOff"


def test_a_pruned_init_container_tells_no_start_error_LIFE_171_LIFE_173() -> None:
    found = shown(PLAIN, record("a", "running"), reason=("ErrImagePull", "why"))
    assert found["state"]["terminated"]["reason"] == "Completed"


def test_a_pruned_init_container_that_ran_is_lost_and_completed_LIFE_172_LIFE_173() -> None:
    found = shown(PLAIN, record("a", "running"), was=known("i", RUNS, 2))
    assert found["state"]["terminated"]["reason"] == "Completed"
    assert found["lastState"]["terminated"]["message"] == DELETED
    assert found["restartCount"] == 3


def test_an_init_container_pruned_in_a_restart_of_all_is_completed_LIFE_125() -> None:
    found = shown(PLAIN, record("a", "running"), was=known("i", RUNS, 2), restarting=True)
    assert found["state"]["terminated"]["reason"] == "Completed"
    assert found["lastState"]["terminated"]["reason"] == "RestartingAllContainers"
    assert found["restartCount"] == 3


@pytest.mark.parametrize(
    ("records", "completed"),
    [
        ([record("a", "created")], True),
        ([record("a", "exited", 1)], True),
        ([record("a", "unknown")], False),
        ([record("a", "unknown", number=1), record("a", "exited")], False),
        ([record("a", "unknown"), record("b", "running")], True),
        ([], False),
    ],
)
def test_what_proves_that_a_pod_is_past_its_init_containers_LIFE_173(
    records: list[ContainerRecord], completed: bool
) -> None:
    """The newest record of a regular container, unless it is in an unknown state."""
    assert ("terminated" in shown(PLAIN, *records)["state"]) is completed


def test_a_container_removed_after_its_end_keeps_what_it_was_LIFE_125() -> None:
    ended = {"terminated": {"exitCode": 42}}
    was = known("i", ended, 1, containerID="containerd://x")
    found = shown(SIDECAR, was=was, restarting=True)
    assert found["state"]["waiting"]["message"] == REMOVED
    assert (found["containerID"], found["imageID"]) == ("containerd://x", "sha256:1")
    assert found["restartCount"] == 2


def test_a_lost_container_has_no_more_than_its_end_LIFE_172() -> None:
    found = shown(SIDECAR, record("i", "unknown"), was=known("i", RUNS))
    assert found["state"]["terminated"] == {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    }


def test_an_earlier_instance_in_an_unknown_state_was_lost_LIFE_170_LIFE_172() -> None:
    records = [record("i", "running", number=1), record("i", "unknown")]
    found = shown(SIDECAR, *records, was=known("i", RUNS))
    assert found["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"


@pytest.mark.parametrize("mounts", [None, [{"name": "v", "mountPath": "/old"}]])
def test_the_mounts_are_those_of_the_last_status_LIFE_148(mounts: Any) -> None:
    """Once a container has a record; before, they are those of the spec."""
    init = SIDECAR | {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    was = known("i", RUNS, volumeMounts=mounts)
    assert shown(init, record("i", "running"), was=was).get("volumeMounts") == mounts
    assert shown(init)["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]


@pytest.mark.parametrize(
    ("mount", "supported", "wanted"),
    [
        ({}, True, {}),
        ({"readOnly": False, "recursiveReadOnly": "IfPossible"}, True, {}),
        ({"readOnly": True}, True, {"readOnly": True, "recursiveReadOnly": "Disabled"}),
        (
            {"readOnly": True, "recursiveReadOnly": "IfPossible"},
            True,
            {"readOnly": True, "recursiveReadOnly": "Enabled"},
        ),
        (
            {"readOnly": True, "recursiveReadOnly": "IfPossible"},
            False,
            {"readOnly": True, "recursiveReadOnly": "Disabled"},
        ),
        (
            {"readOnly": True, "recursiveReadOnly": "Enabled"},
            False,
            {"readOnly": True, "recursiveReadOnly": "Disabled"},
        ),
    ],
)
def test_mounts_tell_whether_they_are_read_only_throughout_LIFE_170(
    mount: dict[str, Any], supported: bool, wanted: dict[str, Any]
) -> None:
    main = container("a", volumeMounts=[{"name": "v", "mountPath": "/v", **mount}])
    inputs = StatusInputs(NOW, recursive_read_only=supported)
    status = generate_pod_status(make_pod(main), RuntimePodStatus("u"), None, inputs)
    (row,) = to_dict(status)["containerStatuses"]
    assert row["volumeMounts"] == [{"name": "v", "mountPath": "/v", **wanted}]


def test_an_init_container_whose_record_is_gone_tells_why_it_counts_as_completed_LIFE_171() -> None:
    assert shown(PLAIN, record("a", "running"))["state"]["terminated"] == {
        "exitCode": 0,
        "reason": "Completed",
        "message": "Unable to get init container status from container runtime and pod has been "
        "initialized, treat it as exited normally",
    }


@pytest.mark.parametrize(("run", "state"), [("c", "terminated"), ("", "waiting")])
def test_an_exit_that_is_known_stays_though_a_start_has_failed_before_LIFE_114(
    run: str, state: str
) -> None:
    """Of a container that has run, and of which the runtime has lost the record."""
    pod = make_pod("a", restartPolicy="OnFailure")
    was = known("a", {"terminated": {"exitCode": 0}}, containerID=f"fake://{run}" if run else "")
    previous = PodStatus.from_dict({"containerStatuses": [was]})
    boxes = (SandboxRecord("s", SandboxState.READY),)
    runtime = RuntimePodStatus("u", sandboxes=boxes)
    inputs = StatusInputs(NOW, reason_of=lambda name: ("PostStartHookError", "why"))
    status = generate_pod_status(pod, runtime, previous, inputs)
    assert list(to_dict((status.containerStatuses or [])[0])["state"]) == [state]
