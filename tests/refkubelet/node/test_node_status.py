"""The content of the Node object: conditions, capacity, what the runtime can do."""

from __future__ import annotations

from refkubelet.admission.features import declared_features
from refkubelet.cri.records import HandlerFeatures
from refkubelet.eviction.manager import PressureCondition
from refkubelet.node.status import (
    conditions,
    flip_events,
    runtime_fields,
)


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
