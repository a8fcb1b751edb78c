"""Every field of a pod's status: what the kubelet does when somebody else changes or removes it.

The tables name each field of the API's types. A field that comes with a later version of them has
no row, and the first test fails until somebody says whose it is.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

import msgspec
import pytest
from lightkube.models import core_v1

from refkubelet.model.objects import Pod, PodStatus, decode_pod, to_dict
from refkubelet.status.conditions import OWNED
from refkubelet.status.merge import merge_pod_status
from refkubelet.status.normalize import normalize_status, statuses_equal
from refkubelet.status.patch import status_patch


class Then(Enum):
    """What becomes of a field that somebody else has written."""

    PUT_RIGHT = "it is as before within ten seconds"
    IN_PASSING = "it is as before once something else has to be written"
    KEPT = "it stays as it is, and leads to no write"


PUT_RIGHT, IN_PASSING, KEPT = Then.PUT_RIGHT, Then.IN_PASSING, Then.KEPT
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
NOW: Final = datetime(2026, 3, 3, tzinfo=UTC)
AMOUNTS: Final = {"cpu": "1"}
CONDITION: Final = {
    "status": "True",
    "reason": "Own",
    "message": "own",
    "lastTransitionTime": EARLY,
    "lastProbeTime": EARLY,
    "observedGeneration": 2,
}
CONTAINER: Final[dict[str, Any]] = {
    "name": "main",
    "image": "a:1",
    "imageID": "sha",
    "containerID": "x://1",
    "ready": True,
    "started": True,
    "restartCount": 1,
    "state": {"running": {"startedAt": EARLY}},
    "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": EARLY}},
    "allocatedResources": AMOUNTS,
    "resources": {"requests": AMOUNTS},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "user": {"linux": {"uid": 1, "gid": 1}},
    "allocatedResourcesStatus": [{"name": "v/gpu", "resources": []}],
    "stopSignal": "SIGTERM",
}
POD: Final[Pod] = decode_pod(
    {
        "metadata": {"name": "web", "uid": "u"},
        "spec": {"containers": [{"name": "main"}], "initContainers": [{"name": "main"}]},
    }
)
OWN: Final[dict[str, Any]] = {
    "phase": "Running",
    "reason": "Own",
    "message": "own",
    "startTime": EARLY,
    "qosClass": "Burstable",
    "observedGeneration": 2,
    "hostIP": "10.0.0.1",
    "hostIPs": [{"ip": "10.0.0.1"}],
    "podIP": "10.0.0.2",
    "podIPs": [{"ip": "10.0.0.2"}],
    "conditions": [CONDITION | {"type": kind} for kind in sorted(OWNED)],
    "containerStatuses": [CONTAINER],
    "initContainerStatuses": [CONTAINER],
    "ephemeralContainerStatuses": [CONTAINER],
    "allocatedResources": AMOUNTS,
    "resources": {"requests": AMOUNTS},
}
"""What the kubelet has in its cache."""
FOREIGN: Final[dict[str, Any]] = {
    "resourceClaimStatuses": [{"name": "c"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": []},
    "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}],
}
THERE: Final = OWN | FOREIGN
"""The status at the API server, with what others have written."""

STATUS: Final[dict[str, tuple[Then, Any]]] = {
    "allocatedResources": (PUT_RIGHT, {"cpu": "2"}),
    "conditions": (PUT_RIGHT, []),
    "containerStatuses": (PUT_RIGHT, []),
    "ephemeralContainerStatuses": (PUT_RIGHT, []),
    "extendedResourceClaimStatus": (KEPT, {"resourceClaimName": "x", "requestMappings": []}),
    "hostIP": (PUT_RIGHT, "10.9.9.9"),
    "hostIPs": (PUT_RIGHT, [{"ip": "10.9.9.9"}]),
    "initContainerStatuses": (PUT_RIGHT, []),
    "message": (PUT_RIGHT, "x"),
    "nodeAllocatableResourceClaimStatuses": (KEPT, [{"resourceClaimName": "x"}]),
    "nominatedNodeName": (PUT_RIGHT, "n2"),
    "observedGeneration": (PUT_RIGHT, 9),
    "phase": (PUT_RIGHT, "Pending"),
    "podIP": (PUT_RIGHT, "10.9.9.9"),
    "podIPs": (PUT_RIGHT, [{"ip": "10.9.9.9"}]),
    "qosClass": (PUT_RIGHT, "BestEffort"),
    "reason": (PUT_RIGHT, "x"),
    "resize": (PUT_RIGHT, "Deferred"),
    "resourceClaimStatuses": (KEPT, [{"name": "x"}]),
    "resources": (PUT_RIGHT, {"requests": {"cpu": "2"}}),
    "startTime": (PUT_RIGHT, LATE),
    "volumeHealth": (PUT_RIGHT, [{"name": "v", "status": "x"}]),
}
OF_A_CONDITION: Final[dict[str, tuple[Then, Any]]] = {
    "status": (PUT_RIGHT, "Unknown"),
    "reason": (PUT_RIGHT, "x"),
    "message": (PUT_RIGHT, "x"),
    "type": (PUT_RIGHT, "example.com/other"),
    "lastTransitionTime": (IN_PASSING, LATE),
    "lastProbeTime": (IN_PASSING, LATE),
    "observedGeneration": (IN_PASSING, 9),
}
OF_A_CONTAINER: Final[dict[str, tuple[Then, Any]]] = {
    "name": (PUT_RIGHT, "other"),
    "image": (PUT_RIGHT, "x:1"),
    "imageID": (PUT_RIGHT, "x"),
    "containerID": (PUT_RIGHT, "x://2"),
    "ready": (PUT_RIGHT, False),
    "started": (PUT_RIGHT, False),
    "restartCount": (PUT_RIGHT, 9),
    "state": (PUT_RIGHT, {"waiting": {"reason": "x"}}),
    "lastState": (PUT_RIGHT, {"terminated": {"exitCode": 2}}),
    "allocatedResources": (PUT_RIGHT, {"cpu": "2"}),
    "resources": (PUT_RIGHT, {"limits": AMOUNTS}),
    "volumeMounts": (PUT_RIGHT, [{"name": "v", "mountPath": "/x"}]),
    "user": (PUT_RIGHT, {"linux": {"uid": 9, "gid": 1}}),
    "allocatedResourcesStatus": (PUT_RIGHT, [{"name": "x/gpu", "resources": []}]),
    "stopSignal": (PUT_RIGHT, "SIGUSR1"),
}
OF_AN_EXIT: Final[dict[str, tuple[Then, Any]]] = {
    "exitCode": (PUT_RIGHT, 7),
    "signal": (PUT_RIGHT, 9),
    "reason": (PUT_RIGHT, "x"),
    "message": (PUT_RIGHT, "x"),
    "startedAt": (PUT_RIGHT, LATE),
    "finishedAt": (PUT_RIGHT, LATE),
    "containerID": (PUT_RIGHT, "x://3"),
}
LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (core_v1.PodStatus, STATUS),
        (core_v1.PodCondition, OF_A_CONDITION),
        (core_v1.ContainerStatus, OF_A_CONTAINER),
        (core_v1.ContainerStateTerminated, OF_AN_EXIT),
    ],
)
def test_each_field_has_an_answer_STAT_021_STAT_026(kind: type, rows: dict[str, Any]) -> None:
    assert sorted(rows) == sorted(field.name for field in msgspec.structs.fields(kind))


def test_nothing_is_left_to_write_STAT_021() -> None:
    expect_then(THERE, KEPT)


def expect_then(there: dict[str, Any], then: Then) -> None:
    """Expect that this becomes of the status at the API server, which somebody has changed."""
    live, own = (msgspec.convert(each, PodStatus) for each in (there, OWN))
    assert statuses_equal(normalize_status(POD, live), own) is (then is not PUT_RIGHT)
    merged = merge_pod_status(live, own, could_run=True, now=NOW)
    patch = status_patch("u", live, merged)
    assert (patch is None) is (then is KEPT)
    shown = to_dict(merged)
    if then is KEPT:
        assert shown == to_dict(live)
        return
    shown["conditions"] = [c for c in shown["conditions"] if c["type"] in OWNED]
    assert shown == to_dict(msgspec.convert(THERE, PodStatus))


@pytest.mark.parametrize("name", STATUS)
def test_what_becomes_of_a_field_that_somebody_changes_STAT_021_STAT_026(name: str) -> None:
    then, wrong = STATUS[name]
    assert THERE.get(name) != wrong
    expect_then(THERE | {name: wrong}, then)


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_field_that_somebody_removes_comes_back_STAT_021(name: str) -> None:
    expect_then({key: value for key, value in THERE.items() if key != name}, PUT_RIGHT)


@pytest.mark.parametrize("name", OF_A_CONDITION)
@pytest.mark.parametrize("kind", sorted(OWNED))
def test_what_becomes_of_a_condition_of_the_kubelet_STAT_007(kind: str, name: str) -> None:
    there = deepcopy(THERE)
    place = next(c for c in there["conditions"] if c["type"] == kind)
    then, place[name] = OF_A_CONDITION[name]
    expect_then(there, then)


@pytest.mark.parametrize("name", OF_A_CONTAINER)
@pytest.mark.parametrize("kind", LISTS)
def test_what_becomes_of_a_containers_status_STAT_021(kind: str, name: str) -> None:
    then, wrong = OF_A_CONTAINER[name]
    there = deepcopy(THERE)
    there[kind][0][name] = wrong
    expect_then(there, then)


@pytest.mark.parametrize("name", OF_AN_EXIT)
def test_what_becomes_of_an_exit_STAT_021(name: str) -> None:
    then, wrong = OF_AN_EXIT[name]
    there = deepcopy(THERE)
    there["containerStatuses"][0]["lastState"]["terminated"][name] = wrong
    expect_then(there, then)


def test_a_condition_of_others_stays_STAT_026() -> None:
    mine = {"type": "example.com/mine", "status": "True"}
    expect_then(THERE | {"conditions": [mine, *THERE["conditions"]]}, KEPT)


def test_a_disruption_that_somebody_removes_is_a_difference_that_is_not_written_STAT_026() -> None:
    """It is shared: the kubelet compares it, and sends it only when the pod ends (STAT-027)."""
    target = CONDITION | {"type": "DisruptionTarget"}
    own = msgspec.convert(OWN | {"conditions": [*OWN["conditions"], target]}, PodStatus)
    live = msgspec.convert(THERE, PodStatus)
    assert not statuses_equal(normalize_status(POD, live), own)
    assert status_patch("u", live, merge_pod_status(live, own, could_run=True, now=NOW)) is None
