"""Which containers are told as lost when a pod has finished, and the parts of patches."""

from __future__ import annotations

from typing import Any

import pytest
from pods import container, make_pod
from status_world import BACKOFF, BACKOFF_OK, BAD, NEW, OK, RUNNING, UNSTARTED, pod_of, status_of

from refkubelet.model.objects import PodStatus, to_dict
from refkubelet.status.merge import illegal_transition, terminated_status
from refkubelet.status.patch import diff_objects, status_patch

LOST = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
}


def lost(status: PodStatus, group: str) -> str:
    """The names of containers of the group that are told as lost."""
    rows: list[dict[str, Any]] = to_dict(status).get(group, [])
    return "".join(row["name"] for row in rows if row["state"].get("terminated") == LOST)


@pytest.mark.parametrize(
    ("names", "told", "initialized"),
    [
        ("a", {}, True),
        ("ia", {}, False),
        ("ia", {"a": NEW}, False),
        ("ia", {"a": RUNNING}, True),
        ("ia", {"a": BACKOFF}, True),
        ("ia", {"a": {"lastState": OK["state"]}}, True),
        ("ia", {"a": {}}, True),
        ("ia", {"i": NEW}, False),
        ("ia", {"i": RUNNING}, False),
        ("ia", {"i": BAD}, False),
        ("ia", {"i": OK}, True),
        ("ia", {"i": BACKOFF}, False),
        ("ia", {"i": BACKOFF_OK}, True),
        ("ia", {"i": {"lastState": OK["state"]}}, True),
        ("ia", {"i": {}}, False),
        ("ija", {"i": OK}, True),
        ("ija", {"i": BAD, "ij": OK}, False),
        ("sa", {"s": RUNNING}, True),
        ("sa", {"s": UNSTARTED}, False),
        ("sa", {"s": {"started": True}}, False),
        ("sa", {"s": {"started": True, **NEW}}, False),
        ("sa", {"s": OK}, False),
        ("isa", {"i": OK, "s": RUNNING}, True),
        ("isa", {"i": OK, "s": UNSTARTED}, False),
        ("sia", {"s": RUNNING, "i": BAD}, False),
        ("sia", {"s": UNSTARTED, "i": OK}, True),
        ("ia", {"s": OK}, False),
        ("ia", {"i": OK, "s": OK}, False),
    ],
)
def test_containers_are_lost_only_when_the_pod_was_initialized_STAT_010(
    names: str, told: dict[str, Any], initialized: bool
) -> None:
    pod = pod_of(*names)
    pod.status = status_of(**told)
    final = terminated_status(pod, status_of(a=NEW))
    assert lost(final, "containerStatuses") == ("a" if initialized else "")


def test_a_pod_without_a_status_was_not_initialized_STAT_010() -> None:
    pod = pod_of("i", "a")
    pod.status = None
    assert lost(terminated_status(pod, status_of(a=NEW)), "containerStatuses") == ""


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({}, ""),
        ({"i": NEW}, "i"),
        ({"i": NEW, "s": NEW}, "i"),
        ({"i": NEW, "s": RUNNING, "ix": NEW}, "is"),
        ({"i": NEW, "s": BACKOFF, "ix": NEW}, "is"),
        ({"i": NEW, "s": {"lastState": {}, **NEW}}, "i"),
        ({"i": OK, "s": {}}, "s"),
        ({"i": OK, "s": BAD, "ix": NEW}, ""),
    ],
)
def test_init_containers_are_lost_up_to_the_last_that_began_STAT_010(
    told: dict[str, Any], wanted: str
) -> None:
    final = terminated_status(pod_of("i", "s", "ix", "a"), status_of(**told))
    assert lost(final, "initContainerStatuses") == wanted


@pytest.mark.parametrize(
    ("policy", "fields", "old", "new", "wanted"),
    [
        ("OnFailure", {}, None, {"a": RUNNING}, None),
        ("Never", {}, {}, {"a": RUNNING}, None),
        ("Never", {}, {"a": {}}, {"a": RUNNING}, None),
        ("Never", {}, {"a": OK}, {"a": {}}, "a"),
        ("Never", {}, {"a": OK}, {}, None),
        ("Never", {}, {"x": OK, "b": BAD}, {"x": RUNNING, "b": RUNNING}, "b"),
        ("Never", {}, {"a": OK, "b": BAD}, {"a": OK, "b": RUNNING}, "b"),
        ("Never", {}, {"a": OK, "i": OK}, {"a": RUNNING, "i": RUNNING}, "a"),
        ("Never", {"restartPolicy": "Always"}, {"a": OK}, {"a": RUNNING}, None),
        (
            "Never",
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {
                        "action": "RestartAllContainers",
                        "exitCodes": {"operator": "In", "values": [9]},
                    }
                ],
            },
            {"a": OK},
            {"a": RUNNING},
            None,
        ),
        ("Always", {}, {"a": OK}, {"a": RUNNING}, None),
    ],
)
def test_what_has_ended_stays_so_STAT_008(
    policy: str, fields: dict[str, Any], old: Any, new: Any, wanted: str | None
) -> None:
    pod = make_pod(container("a", **fields), "b", init=["i"], restartPolicy=policy)
    before = None if old is None else status_of(**old)
    assert illegal_transition(before, status_of(**new), pod) == wanted


def resized(cpu: str) -> dict[str, Any]:
    return {"resources": {"limits": {"cpu": cpu, "memory": "1Mi"}}}


@pytest.mark.parametrize(
    ("live", "merged", "wanted"),
    [
        ({}, {}, None),
        (None, {"phase": "Pending"}, {"phase": "Pending"}),
        ({"phase": "Running"}, {}, {"phase": None}),
        (resized("1"), resized("2"), {"resources": {"limits": {"cpu": "2"}}}),
        (resized("1"), {}, {"resources": None}),
        ({}, resized("1"), resized("1")),
        (
            {"conditions": [{"type": "A", "status": "True"}], "message": "old"},
            {
                "conditions": [{"type": "B", "status": "True"}, {"type": "A", "status": "True"}],
                "message": "new",
                "hostIPs": [{"ip": "192.0.2.1"}],
            },
            {
                "conditions": [{"type": "B", "status": "True"}],
                "$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}],
                "message": "new",
                "hostIPs": [{"ip": "192.0.2.1"}],
            },
        ),
        (
            {"message": "old", "podIPs": [{"ip": "::1"}, {"ip": "::2"}]},
            {"message": "new", "podIPs": [{"ip": "::2"}, {"ip": "::1"}]},
            {"message": "new", "$setElementOrder/podIPs": [{"ip": "::2"}, {"ip": "::1"}]},
        ),
        ({"podIPs": [{"ip": "::1"}]}, {}, {"podIPs": None}),
    ],
)
def test_a_patch_holds_the_difference_alone_STAT_022(
    live: dict[str, Any] | None, merged: dict[str, Any], wanted: dict[str, Any] | None
) -> None:
    before = None if live is None else PodStatus.from_dict(live)
    patch = status_patch("u-1", before, PodStatus.from_dict(merged))
    whole = {"metadata": {"uid": "u-1"}, "status": wanted}
    assert patch == (None if wanted is None else whole)


def test_a_list_in_front_does_not_lose_what_comes_before_it_STAT_022() -> None:
    keys = {"list": "name"}
    before = {"a": 1, "list": [{"name": "x", "v": 1}], "z": 1}
    after = {"a": 2, "list": [{"name": "x", "v": 2}, {"name": "y"}], "z": 2}
    assert diff_objects(before, after, keys) == {
        "a": 2,
        "$setElementOrder/list": [{"name": "x"}, {"name": "y"}],
        "list": [{"v": 2, "name": "x"}, {"name": "y"}],
        "z": 2,
    }
    nested = {"o": {"list": [{"name": "x"}]}}
    other = {"o": {"list": [{"name": "y"}]}}
    assert diff_objects(nested, other, keys) == other
