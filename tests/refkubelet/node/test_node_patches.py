"""What is written to a Node that is there already."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.node.patches import ADOPTED_LABELS, adopted_node, has_changed, node_patch
from refkubelet.node.status import ATTACH_DETACH, NodeFacts, default_labels, initial_node

LABELS = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": "n1",
    "kubernetes.io/os": "linux",
}
RIGHT = {"labels": LABELS, "annotations": {ATTACH_DETACH: "true"}}
FACTS = NodeFacts(name="n1", labels=LABELS | {"zone": "a"})


def adoption(
    metadata: dict[str, Any], facts: NodeFacts = FACTS, **status: dict[str, Any]
) -> dict[str, Any]:
    """The patch by which the kubelet with these facts adopts a Node. `status`: the resources of
    the Node, those of a new one are in `new_...`."""
    there = {name: amounts for name, amounts in status.items() if not name.startswith("new_")}
    new = {n.removeprefix("new_"): status[n] for n in status if n not in there}
    existing = {"metadata": metadata, "status": there}
    initial = initial_node(facts, new)
    return node_patch(existing, adopted_node(existing, initial, devices_are_lost=False))


def test_every_node_has_five_labels_NODE_003() -> None:
    assert default_labels("n1", "amd64") == LABELS


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        (RIGHT, {}),
        ({"labels": {**LABELS, "mine": "x"}, "annotations": RIGHT["annotations"] | {"a": "b"}}, {}),
        ({}, RIGHT),
        (
            {"labels": LABELS | {"kubernetes.io/os": "odd"}, "annotations": {ATTACH_DETACH: "no"}},
            {"labels": {"kubernetes.io/os": "linux"}, "annotations": {ATTACH_DETACH: "true"}},
        ),
        ({"labels": LABELS, "annotations": {"a": "b"}}, {"annotations": {ATTACH_DETACH: "true"}}),
    ],
)
def test_an_adopted_node_gets_what_is_wrong_or_missing_NODE_004(
    metadata: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert adoption(metadata).get("metadata", {}) == wanted


@pytest.mark.parametrize("label", ADOPTED_LABELS)
def test_each_label_that_a_cluster_knows_is_put_right_NODE_004(label: str) -> None:
    facts = NodeFacts(name="n1", labels=LABELS | {label: "mine"})
    wrong = {**RIGHT, "labels": LABELS | {label: "other"}}
    assert adoption(wrong, facts) == {"metadata": {"labels": {label: "mine"}}}


def test_labels_that_the_kubelet_does_not_give_are_left_and_empty_ones_removed_NODE_004() -> None:
    zone = "topology.kubernetes.io/zone"
    there = {**RIGHT, "labels": LABELS | {zone: "a"}}
    assert adoption(there) == {}
    facts = NodeFacts(name="n1", labels=LABELS | {zone: ""})
    assert adoption(there, facts) == {"metadata": {"labels": {zone: None}}}


def test_a_kubelet_without_attach_and_detach_removes_the_annotation_NODE_004() -> None:
    facts = NodeFacts(name="n1", labels={}, attach_detach=False)
    assert adoption({}, facts) == {}
    assert adoption({"annotations": {"a": "b"}}, facts) == {}
    patch = adoption({"annotations": {ATTACH_DETACH: "true", "a": "b"}}, facts)
    assert patch == {"metadata": {"annotations": {ATTACH_DETACH: None}}}


def test_resources_are_added_where_there_are_none_NODE_004() -> None:
    new = {"cpu": "4", "hugepages-2Mi": "0"}
    assert adoption(RIGHT, new_capacity=new, new_allocatable=new) == {
        "status": {"capacity": new, "allocatable": new}
    }
    there = {"cpu": "2", "hugepages-2Mi": "0"}
    same = {"capacity": there, "allocatable": there, "new_capacity": new, "new_allocatable": new}
    assert adoption(RIGHT, **same) == {}


def test_sizes_of_huge_pages_are_those_of_this_machine_NODE_004() -> None:
    there = {"cpu": "2", "hugepages-3Mi": "3Mi", "hugepages-2Mi": "0", "hugepages-1Gi": "1024Mi"}
    new = {"cpu": "4", "hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi", "hugepages-64Ki": "0"}
    patch = adoption(
        RIGHT, capacity=there, allocatable=there, new_capacity=new, new_allocatable=new
    )
    pages = {"hugepages-3Mi": None, "hugepages-2Mi": "4Mi", "hugepages-64Ki": "0"}
    assert patch == {"status": {"capacity": pages, "allocatable": pages}}


def test_addresses_are_replaced_NODE_011() -> None:
    old = [{"type": "ExternalIP", "address": "192.0.2.1"}]
    new = [{"type": "Hostname", "address": "n1"}]
    replaced = {"status": {"addresses": [*new, {"$patch": "replace"}]}}
    assert node_patch({"status": {"addresses": old}}, {"status": {"addresses": new}}) == replaced
    assert node_patch({}, {"status": {"addresses": new}}) == {"status": {"addresses": new}}
    assert node_patch({"status": {"addresses": new}}, {"status": {"addresses": new}}) == {}


def test_a_spec_is_never_written_NODE_011() -> None:
    assert node_patch({"spec": {"taints": [1]}}, {"spec": {"taints": []}}) == {}


def test_conditions_are_merged_by_their_type_NODE_011() -> None:
    mine = {"type": "Mine", "status": "True"}
    before = {"status": {"conditions": [mine, {"type": "Ready", "status": "Unknown"}]}}
    after = {"status": {"conditions": [mine, {"type": "Ready", "status": "True"}]}}
    assert node_patch(before, after)["status"] == {
        "$setElementOrder/conditions": [{"type": "Mine"}, {"type": "Ready"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }


READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "1", "lastTransitionTime": "2"}


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"conditions": [READY]}, {"conditions": [READY | {"lastHeartbeatTime": "9"}]}, False),
        ({"conditions": [READY]}, {"conditions": [READY | {"lastTransitionTime": "9"}]}, True),
        ({"conditions": [READY]}, {"conditions": [READY | {"status": "False"}]}, True),
        ({"conditions": [READY]}, {"conditions": []}, True),
        (
            {"conditions": [READY, {"type": "A"}]},
            {"conditions": [{"type": "A"}, READY]},
            False,
        ),
        ({"capacity": {"cpu": "1000m"}}, {"capacity": {"cpu": "1"}}, False),
        ({"capacity": {"cpu": "1"}}, {"capacity": {"cpu": "2"}}, True),
        ({"allocatable": {"cpu": "1"}}, {"allocatable": {}}, True),
        ({"images": []}, {}, False),
        ({"nodeInfo": {"swap": {"capacity": 0}}}, {"nodeInfo": {}}, True),
        ({"nodeInfo": {"machineID": ""}}, {}, False),
        ({"images": [{"names": []}]}, {"images": [{}]}, False),
        ({"images": [{}]}, {"images": []}, True),
        ({"features": {"supplementalGroupsPolicy": False}}, {}, True),
    ],
)
def test_a_node_is_written_at_once_if_more_than_heartbeats_differs_NODE_010(
    before: dict[str, Any], after: dict[str, Any], changed: bool
) -> None:
    assert has_changed({"status": before}, {"status": after}) is changed


def test_labels_are_a_reason_to_write_and_annotations_are_none_NODE_015() -> None:
    before = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}
    assert not has_changed(before, {"metadata": {"labels": {"a": "b"}}})
    assert has_changed(before, {"metadata": {"labels": {"a": "c"}}})
