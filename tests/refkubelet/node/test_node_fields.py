"""Every field of the Node: what the kubelet does when somebody else changes or removes it.

The tables name each field of the API's types. A field that comes with a later version of them has
no row, and the first test fails until somebody says whose it is.
"""

from __future__ import annotations

from copy import deepcopy
from enum import Enum
from typing import Any, Final

import msgspec
import pytest
from lightkube.models import core_v1, meta_v1

from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.node.patches import has_changed, node_patch
from refkubelet.node.status import NODE_INFO, NodeFacts, default_labels
from refkubelet.node.updated import NodeReport, updated_node


class Then(Enum):
    """What becomes of a field that somebody else has written."""

    PUT_RIGHT = "it is as before with the next update, which comes at once"
    IN_PASSING = "it is as before once something else has to be written"
    KEPT = "it stays as it is, and leads to no write"


PUT_RIGHT, IN_PASSING, KEPT = Then.PUT_RIGHT, Then.IN_PASSING, Then.KEPT
REPORT: Final = NodeReport(
    NodeFacts(
        "n1",
        internal_ips=("10.0.0.1",),
        labels=default_labels("n1", "amd64"),
        capacity={"cpu": 4 * NANO, "memory": 100 * NANO, "hugepages-2Mi": 10 * NANO},
        allocatable={"cpu": 3 * NANO, "memory": 80 * NANO, "hugepages-2Mi": 10 * NANO},
        info=dict.fromkeys(NODE_INFO, "own"),
        kubelet_port=10250,
    ),
    "2026-01-01T00:00:00Z",
    devices=Amounts({"v/gpu": 3}, {"v/gpu": 2}),
    fields={
        "images": [{"names": ["a:1"], "sizeBytes": 1}],
        "runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}],
        "features": {"supplementalGroupsPolicy": True},
        "declaredFeatures": ["A"],
        "volumesInUse": ["v"],
    },
)
FOREIGN: Final[dict[str, Any]] = {
    "metadata": {
        "name": "n1",
        "labels": {"example.com/mine": "yes", "kubernetes.io/hostname": "other"},
        "annotations": {"example.com/mine": "yes"},
    },
    "spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}], "podCIDRs": ["10.0.0.0/24"]},
    "status": {
        "capacity": {"example.com/dongle": "4"},
        "conditions": [{"type": "example.com/Mine", "status": "True"}],
        "volumesAttached": [{"name": "v", "devicePath": ""}],
        "config": {"error": "x"},
    },
}
"""A Node with something of others in every place that has something of others."""
NODE: Final = updated_node(FOREIGN, REPORT)
"""The same with all that the kubelet tells: nothing is left to write."""

STATUS: Final[dict[str, tuple[Then, Any]]] = {
    "addresses": (PUT_RIGHT, [{"type": "Hostname", "address": "x"}]),
    "allocatable": (PUT_RIGHT, {"cpu": "9"}),
    "capacity": (PUT_RIGHT, {"cpu": "9", "example.com/dongle": "4"}),
    "conditions": (PUT_RIGHT, [{"type": "example.com/Mine", "status": "True"}]),
    "config": (KEPT, {"error": "y"}),
    "daemonEndpoints": (PUT_RIGHT, {"kubeletEndpoint": {"Port": 1}}),
    "declaredFeatures": (PUT_RIGHT, ["X"]),
    "features": (PUT_RIGHT, {"supplementalGroupsPolicy": False}),
    "images": (PUT_RIGHT, [{"names": ["x:1"], "sizeBytes": 9}]),
    "nodeInfo": (PUT_RIGHT, dict.fromkeys(NODE_INFO, "x")),
    "phase": (KEPT, "Running"),
    "runtimeHandlers": (PUT_RIGHT, [{"name": "x"}]),
    "volumesAttached": (KEPT, [{"name": "x", "devicePath": ""}]),
    "volumesInUse": (PUT_RIGHT, ["v", "x"]),
}
INFO: Final[dict[str, tuple[Then, Any]]] = {
    **dict.fromkeys(NODE_INFO, (PUT_RIGHT, "x")),
    "runningInUserNamespace": (KEPT, True),
    "swap": (KEPT, {"capacity": 5}),
}
PRESSURE: Final[dict[str, tuple[Then, Any]]] = {
    "status": (PUT_RIGHT, "True"),
    "type": (PUT_RIGHT, "Other"),
    "reason": (KEPT, "x"),
    "message": (KEPT, "x"),
    "lastTransitionTime": (KEPT, "2020-01-01T00:00:00Z"),
    "lastHeartbeatTime": (IN_PASSING, "2020-01-01T00:00:00Z"),
}
READY: Final = PRESSURE | {
    "status": (PUT_RIGHT, "Unknown"),
    "reason": (PUT_RIGHT, "NodeStatusUnknown"),
    "message": (PUT_RIGHT, "x"),
}
METADATA: Final[dict[str, tuple[Then, Any]]] = {
    **{f.name: (KEPT, None) for f in msgspec.structs.fields(meta_v1.ObjectMeta)},
    "annotations": (IN_PASSING, {"alpha.kubernetes.io/provided-node-ip": "10.9.9.9"}),
    "labels": (PUT_RIGHT, {"kubernetes.io/os": "other"}),
}
"""Of the rest of the metadata the kubelet knows nothing."""
SPEC: Final[dict[str, tuple[Then, Any]]] = {
    "configSource": (KEPT, {}),
    "externalID": (KEPT, "x"),
    "podCIDR": (KEPT, "10.2.0.0/24"),
    "podCIDRs": (KEPT, ["10.2.0.0/24"]),
    "podPreemptionPolicy": (KEPT, {}),
    "providerID": (KEPT, "x"),
    "taints": (KEPT, []),
    "unschedulable": (KEPT, True),
}


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (core_v1.NodeStatus, STATUS),
        (core_v1.NodeSystemInfo, INFO),
        (core_v1.NodeCondition, PRESSURE),
        (core_v1.NodeCondition, READY),
        (core_v1.NodeSpec, SPEC),
    ],
)
def test_each_field_has_an_answer_NODE_015(kind: type, rows: dict[str, Any]) -> None:
    assert sorted(rows) == sorted(field.name for field in msgspec.structs.fields(kind))


def test_nothing_is_left_to_write_NODE_015() -> None:
    assert updated_node(NODE, REPORT) == NODE
    assert not has_changed(NODE, updated_node(NODE, REPORT))
    assert node_patch(NODE, updated_node(NODE, REPORT)) == {}


def place_of(node: dict[str, Any], *path: str) -> dict[str, Any]:
    """The object of the Node there; a condition is named by its type."""
    place: Any = node
    for part in path:
        place = (
            next(c for c in place if c["type"] == part) if isinstance(place, list) else place[part]
        )
    return place


ROWS: Final = [
    *(((), "spec", name, answer) for name, answer in SPEC.items()),
    *(((), "status", name, answer) for name, answer in STATUS.items()),
    *((("status",), "nodeInfo", name, answer) for name, answer in INFO.items()),
    *((("status", "conditions"), "Ready", name, answer) for name, answer in READY.items()),
    *((("status", "conditions"), "PIDPressure", name, answer) for name, answer in PRESSURE.items()),
    *(((), "metadata", name, METADATA[name]) for name in ("annotations", "labels")),
]


@pytest.mark.parametrize(("path", "last", "name", "answer"), ROWS)
def test_what_becomes_of_a_field_that_somebody_changes_NODE_015(
    path: tuple[str, ...], last: str, name: str, answer: tuple[Then, Any]
) -> None:
    then, wrong = answer
    changed = deepcopy(NODE)
    place = place_of(changed, *path, last)
    assert place.get(name) != wrong
    place[name] = place[name] | wrong if name in ("labels", "annotations", "nodeInfo") else wrong
    expect_then(changed, then)


@pytest.mark.parametrize(
    ("path", "last", "name", "answer"),
    [row for row in ROWS if row[3][0] is PUT_RIGHT and row[2] != "type"],
)
def test_a_field_of_the_kubelet_that_somebody_removes_comes_back_NODE_015(
    path: tuple[str, ...], last: str, name: str, answer: tuple[Then, Any]
) -> None:
    changed = deepcopy(NODE)
    place = place_of(changed, *path, last)
    if name == "labels":
        del place[name]["kubernetes.io/os"]
    elif name in ("capacity", "conditions"):  # what others have there stays
        place[name] = FOREIGN["status"][name]
    else:
        del place[name]
    expect_then(changed, PUT_RIGHT)


def expect_then(changed: dict[str, Any], then: Then) -> None:
    """Expect that this becomes of the Node that somebody has changed."""
    after = updated_node(changed, REPORT)
    assert has_changed(changed, after) is (then is PUT_RIGHT)
    if then is KEPT:
        assert after == changed
        assert node_patch(changed, after) == {}
        return
    kept = [c for c in after["status"]["conditions"] if c["type"] != "Other"]
    for row in kept:
        if row["status"] == place_of(NODE, "status", "conditions", row["type"])["status"]:
            row |= {"lastTransitionTime": REPORT.now} if row["type"] != "example.com/Mine" else {}
    after["status"]["conditions"] = sorted(kept, key=lambda row: row["type"])
    wanted = deepcopy(NODE)
    wanted["status"]["conditions"].sort(key=lambda row: row["type"])
    assert after == wanted


def report_without(name: str) -> NodeReport:
    """A report in which that field of the status is not told."""
    return replace(REPORT, fields={n: f for n, f in (REPORT.fields or {}).items() if n != name})


@pytest.mark.parametrize("name", ["images", "runtimeHandlers", "volumesInUse"])
def test_a_list_that_has_nothing_any_more_is_removed_NODE_015(name: str) -> None:
    after = updated_node(NODE, report_without(name))
    assert node_patch(NODE, after) == {"status": {name: None}}
    assert has_changed(NODE, after)


@pytest.mark.parametrize("name", ["features", "declaredFeatures"])
def test_features_stay_while_nothing_is_known_of_them_NODE_015(name: str) -> None:
    assert updated_node(NODE, report_without(name)) == NODE


def amounts(capacity: dict[str, str], allocatable: dict[str, str]) -> tuple[Any, Any]:
    """Capacity and allocatable after an update, where somebody has added these."""
    node = deepcopy(NODE)
    node["status"]["capacity"] |= capacity
    node["status"]["allocatable"] |= allocatable
    after = updated_node(node, REPORT)["status"]
    return after["capacity"], after["allocatable"]


def test_what_others_offer_is_allocatable_NODE_015() -> None:
    capacity, allocatable = amounts({"a.b/c": "5k", "hugepages-1Mi": "7"}, {})
    assert (capacity["a.b/c"], allocatable["a.b/c"]) == ("5k", "5k")
    assert (capacity["hugepages-1Mi"], allocatable["hugepages-1Mi"]) == ("7", "7")
    assert allocatable["memory"] == "73"  # every size of huge pages is taken from the memory


def test_what_nobody_offers_any_more_is_not_allocatable_NODE_015_NODE_031() -> None:
    _, allocatable = amounts({}, {"a.b/c": "5", "hugepages-1Mi": "7", "odd": "1"})
    assert "a.b/c" not in allocatable
    assert (allocatable["hugepages-1Mi"], allocatable["odd"]) == ("7", "1")  # no extended ones


def test_texts_that_are_no_amounts_are_left_NODE_015() -> None:
    capacity, allocatable = amounts({"a.b/c": "many", "cpu": "many"}, {"a.b/d": "many"})
    assert (capacity["a.b/c"], capacity["cpu"]) == ("many", "4")
    assert allocatable == NODE["status"]["allocatable"] | {"a.b/d": "many"}
