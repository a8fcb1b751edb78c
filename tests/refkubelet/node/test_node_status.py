"""The content of the Node object: conditions, capacity, what the runtime can do."""

from __future__ import annotations

import pytest

from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from refkubelet.admission.features import declared_features
from refkubelet.cri.records import HandlerFeatures
from refkubelet.eviction.manager import PressureCondition
from refkubelet.node.status import (
    NodeFacts,
    conditions,
    flip_events,
    initial_node,
    runtime_fields,
)
from refkubelet.node.updated import NodeReport, updated_status


def test_transition_times_change_with_the_status_only_NODE_021_EVIC_063() -> None:
    first = conditions([], [], [], "t1")
    second = conditions([PressureCondition("DiskPressure", "True")], ["one"], first, "t2")
    times = {c["type"]: c["lastTransitionTime"] for c in second}
    assert times == {
        "MemoryPressure": "t1",
        "DiskPressure": "t2",
        "PIDPressure": "t1",
        "Ready": "t2",
    }
    assert second[-1]["message"] == "one"
    assert flip_events(first, second) == ["NodeHasDiskPressure", "NodeNotReady"]


def test_reasons_and_messages_of_pressure_NODE_020() -> None:
    under = [
        PressureCondition(kind, "True")
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    calm, pressed = conditions([], [], [], "t1"), conditions(under, [], [], "t2")
    assert [(c["reason"], c["message"]) for c in pressed[:3]] == [
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ]
    assert [(c["reason"], c["message"]) for c in calm[:3]] == [
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ]
    assert flip_events(calm, pressed) == [
        "NodeHasInsufficientMemory",
        "NodeHasDiskPressure",
        "NodeHasInsufficientPID",
    ]


def test_what_a_node_says_of_its_runtime_and_of_features_NODE_035() -> None:
    handlers = {"runc": HandlerFeatures(True, False), "": HandlerFeatures(False, True)}
    fields = runtime_fields(handlers, strict_groups=True, declared=declared_features({}))
    assert fields == {
        "declaredFeatures": [
            "InPlacePodLevelResourcesVerticalScaling",
            "InPlacePodVerticalScalingInitContainers",
            "RestartAllContainersOnContainerExits",
        ],
        "features": {"supplementalGroupsPolicy": True},
        "runtimeHandlers": [
            {
                "name": "",
                "features": {"recursiveReadOnlyMounts": False, "userNamespaces": True},
            },
            {
                "name": "runc",
                "features": {"recursiveReadOnlyMounts": True, "userNamespaces": False},
            },
        ],
    }
    gates = {"NodeDeclaredFeatures": False}
    none = runtime_fields({}, strict_groups=False, declared=declared_features(gates))
    assert none == {}


def test_a_calm_node_s_conditions_whole_NODE_020_NODE_022() -> None:
    rows = conditions([PressureCondition("DiskPressure", "False")], [], [], "t1")
    assert rows[-1] == {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": "t1",
        "lastTransitionTime": "t1",
    }
    assert [row["status"] for row in rows] == ["False", "False", "False", "True"]
    again = conditions([], [], [{**row, "lastTransitionTime": "t0"} for row in rows], "t2")
    assert {(row["lastTransitionTime"], row["lastHeartbeatTime"]) for row in again} == {
        ("t0", "t2")
    }


@pytest.mark.parametrize(
    ("reasons", "message"),
    [(["one"], "one"), (["one", "two", "one"], "[one, two]"), (["one", "one"], "one")],
)
def test_why_a_node_is_not_ready_each_once_NODE_022(reasons: list[str], message: str) -> None:
    ready = conditions([], reasons, [], "t1")[-1]
    assert (ready["status"], ready["reason"]) == ("False", "KubeletNotReady")
    assert ready["message"] == message


def test_events_tell_of_every_change_and_of_pressure_from_the_first_NODE_021_NODE_024() -> None:
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready", "example.com/x")
    calm = [{"type": kind, "status": "False"} for kind in kinds]
    pressed = [{"type": kind, "status": "True"} for kind in kinds[:4]]
    calm_reasons = [
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientPID",
    ]
    assert flip_events([], calm[:4]) == calm_reasons
    assert flip_events(pressed, calm[:4]) == [*calm_reasons, "NodeNotReady"]
    assert flip_events(calm, [pressed[3], calm[0], pressed[1]]) == [
        "NodeReady",
        "NodeHasDiskPressure",
    ]
    assert flip_events(calm, calm) == []


FACTS = NodeFacts(
    name="n1",
    internal_ips=("10.0.0.1",),
    labels={"a": "b"},
    taints=({"key": "k", "value": "", "effect": "NoSchedule"},),
    provider_id="x://1",
    capacity={"memory": 2048 * NANO, "cpu": 4 * NANO},
    allocatable={"cpu": 3 * NANO + NANO // 2},
    info={"bootID": "boot"},
    kubelet_port=10250,
)


def test_the_status_of_a_node_whole_NODE_032() -> None:
    status = updated_status(None, NodeReport(FACTS, "t1", fields={"images": [{"sizeBytes": 1}]}))
    info = status.pop("nodeInfo")
    assert [c["type"] for c in status.pop("conditions")][3] == "Ready"
    assert status == {
        "capacity": {"cpu": "4", "memory": "2Ki"},
        "allocatable": {"cpu": "3500m", "memory": "2Ki"},
        "images": [{"sizeBytes": 1}],
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "Hostname", "address": "n1"},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
    }
    assert info.pop("bootID") == "boot"
    assert set(info.values()) == {""}
    assert {"architecture", "kubeletVersion", "kubeProxyVersion", "machineID"} <= info.keys()
    bare = updated_status(None, NodeReport(NodeFacts("n1"), "t1"))
    assert bare["addresses"] == [{"type": "Hostname", "address": "n1"}]


def test_the_node_to_create_whole_NODE_003() -> None:
    assert initial_node(FACTS, {"x": 1}) == {
        "metadata": {
            "name": "n1",
            "labels": {"a": "b"},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {
            "taints": [{"key": "k", "value": "", "effect": "NoSchedule"}],
            "providerID": "x://1",
        },
        "status": {"x": 1},
    }
    assert initial_node(NodeFacts("n1", attach_detach=False), {}) == {
        "metadata": {"name": "n1", "labels": {}},
        "spec": {},
        "status": {},
    }


def test_a_node_without_a_capacity_that_it_needs_is_not_ready_NODE_022() -> None:
    """What it lacks is told after everything else."""
    facts = replace(FACTS, required=("cpu", "memory", "pods", "ephemeral-storage"))
    status = updated_status(None, NodeReport(facts, "t1", not_ready=("x",)))
    lacking = "missing node capacity for resources: pods, ephemeral-storage"
    assert status["conditions"][3]["message"] == f"[x, {lacking}]"
    whole = updated_status(
        {"capacity": {"pods": "1", "ephemeral-storage": "1"}}, NodeReport(facts, "t2")
    )
    assert whole["conditions"][3]["status"] == "True"


def test_swap_is_told_beside_the_texts_of_node_info_NODE_033() -> None:
    facts = replace(FACTS, info={"swap": {"capacity": 5}})
    info = updated_status(None, NodeReport(facts, "t1"))["nodeInfo"]
    assert (info["swap"], info["bootID"]) == ({"capacity": 5}, "")
