"""What CSINode and Node say of drivers (NODE-216)."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.volumes.csi.node_objects import (
    MIGRATED,
    NODE_IDS,
    DriverOnNode,
    NodeInfoError,
    driver_patch,
    is_owned_by,
    new_csi_node,
    removal_patch,
    with_driver,
    without_driver,
)

EMPTY = new_csi_node("n1", "uid-1")


def node(annotation: str | None = None, **labels: str) -> dict[str, Any]:
    annotations = {NODE_IDS: annotation} if annotation is not None else None
    return {"metadata": {"annotations": annotations, "labels": labels}}


def test_a_new_one_has_an_owner_and_no_drivers_NODE_216() -> None:
    assert is_owned_by(EMPTY, "n1", "uid-1")
    assert not is_owned_by(EMPTY, "n1", "uid-2")
    assert not is_owned_by({}, "n1", "uid-1")
    assert EMPTY["spec"] == {"drivers": []}
    assert "kubernetes.io/aws-ebs," in EMPTY["metadata"]["annotations"][MIGRATED]


def test_drivers_come_and_go_NODE_216() -> None:
    first = with_driver(EMPTY, DriverOnNode("a", "n", topology={"z": "1", "r": "2"}))
    both = with_driver(first, DriverOnNode("b", "n", max_volumes=2**40))
    assert both["spec"]["drivers"] == [
        {"name": "a", "nodeID": "n", "topologyKeys": ["r", "z"]},
        {"name": "b", "nodeID": "n", "allocatable": {"count": 2**31 - 1}, "topologyKeys": None},
    ]
    assert without_driver(both, "b") == first
    assert without_driver(first, "b") == first


def test_one_that_says_the_same_changes_nothing_NODE_216() -> None:
    known = {"name": "a", "nodeID": "n", "topologyKeys": ["z", "r"], "allocatable": {"count": 3}}
    found = {**EMPTY, "spec": {"drivers": [known]}}
    same = DriverOnNode("a", "n", max_volumes=3, topology={"r": "1", "z": "1"})
    assert with_driver(found, same) == found
    for changed in (
        DriverOnNode("a", "other", max_volumes=3, topology=same.topology),
        DriverOnNode("a", "n", max_volumes=4, topology=same.topology),
        DriverOnNode("a", "n", max_volumes=3, topology={"r": "1"}),
    ):
        drivers = with_driver(found, changed)["spec"]["drivers"]
        assert len(drivers) == 1
        assert drivers != [known]


def test_the_annotation_of_migrated_plugins_is_completed_NODE_216() -> None:
    bare = {**EMPTY, "metadata": {"name": "n1", "annotations": {"a": "b"}}}
    changed = with_driver(bare, DriverOnNode("a", "n"))
    assert changed["metadata"]["annotations"] == {"a": "b", **EMPTY["metadata"]["annotations"]}


def test_the_nodes_annotation_has_the_ids_NODE_216() -> None:
    driver = DriverOnNode("b", "x")
    assert driver_patch(node(), driver) == {"metadata": {"annotations": {NODE_IDS: '{"b":"x"}'}}}
    patch = driver_patch(node('{"a":"y"}'), driver)
    assert patch == {"metadata": {"annotations": {NODE_IDS: '{"a":"y","b":"x"}'}}}
    assert driver_patch(node('{"b":"x"}'), driver) == {}


def test_the_annotation_is_gone_with_the_last_NODE_216() -> None:
    patch = removal_patch(node('{"a":"y","b":"x"}'), "b")
    assert patch == {"metadata": {"annotations": {NODE_IDS: '{"a":"y"}'}}}
    assert removal_patch(node('{"b":"x"}'), "b") == {"metadata": {"annotations": {NODE_IDS: None}}}
    assert removal_patch(node(), "b") == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"a":1}', "[" * 100_000])
def test_an_annotation_that_somebody_spoiled_is_an_error_NODE_216(text: str) -> None:
    with pytest.raises(NodeInfoError, match="failed to parse node's"):
        driver_patch(node(text), DriverOnNode("a", "n"))


def test_topology_is_labels_NODE_216() -> None:
    driver = DriverOnNode("a", "n", topology={"zone": "1", "rack": "2"})
    patch = driver_patch(node('{"a":"n"}', zone="1"), driver)
    assert patch == {"metadata": {"labels": {"zone": "1", "rack": "2"}}}
    with pytest.raises(NodeInfoError) as caught:
        driver_patch(node(zone="3"), driver)
    assert str(caught.value) == (
        'detected topology value collision: driver reported "zone":"1" but existing label is '
        '"zone":"3"'
    )
