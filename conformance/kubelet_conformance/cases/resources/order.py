"""The order in which the managers are asked about the containers of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubelet_conformance.cases.resources.memory import CONFIG as MEMORY
from kubelet_conformance.cases.resources.topology import SERVER
from kubelet_conformance.cases.resources.widgets import (
    NEEDS,
    UNEXPECTED,
    WIDGET,
    rejected,
    widgets,
)
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Container, PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

LARGE: Final = {"cpu": "200", "memory": "900Gi", WIDGET: "5"}
FINE: Final = {"cpu": "1", "memory": "1Gi", WIDGET: "1"}
WORDS: Final = {"devices": WIDGET, "CPUs": "not enough cpus", "memory": "NUMA"}


def with_amounts(name: str, *large: str) -> Container:
    """A container with equal requests and limits, too large for the named resources."""
    amounts = {key: (LARGE if key in large else FINE)[key] for key in FINE}
    return container(name, resources={"requests": amounts, "limits": amounts})


async def refused_for(node: Node, plan: PodPlan) -> str:
    """Create the pod, and return what it is refused for."""
    await node.api.create_pod(plan)
    status: Mapping[str, Any] = await rejected(node, plan.name)
    expect_equal(node, status["reason"], UNEXPECTED, f"reason of {plan.name}")
    found = [kind for kind, word in WORDS.items() if word in status["message"]]
    expect(node, len(found) == 1, "a message about one resource", status["message"])
    return found[0]


@conformance(
    id="managers-in-order", rules=["CG-080.1", "CG-080.2"], machine=SERVER,
    needs=[*NEEDS, Feature.NODE_RESOURCES],
    node_config={
        **MEMORY,
        "cpuManagerPolicy": "static",
        "systemReserved": {"memory": "1Gi", "cpu": "1"},
    },
)  # fmt: skip
async def devices_then_cpus_then_memory(node: Node) -> None:
    """For each container the device manager is asked first, then that of CPUs, then that of memory;
    init containers come before regular ones: the first that lacks something refuses the pod."""
    await widgets(node, "w1", "w2")
    all_three = ("cpu", "memory", WIDGET)
    main = with_amounts("main", *all_three)
    plans = {
        "all": (pod("all", main), "devices"),
        "two": (pod("two", with_amounts("main", "cpu", "memory")), "CPUs"),
        "one": (pod("one", with_amounts("main", "memory")), "memory"),
        "init": (pod("init", main, init=[with_amounts("setup", "memory")]), "memory"),
    }
    kinds = {name: await refused_for(node, plan) for name, (plan, _) in plans.items()}
    expect_equal(node, kinds, {name: kind for name, (_, kind) in plans.items()}, "refused for")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
