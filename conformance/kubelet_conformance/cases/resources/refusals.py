"""Configurations and state files that a kubelet must not start with."""

import json
from typing import Any

from kubelet_conformance.cases.resources.cpus import STATIC, guaranteed
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART


async def refuses(node: Node, words: str, **config: Any) -> None:
    """Expect that the kubelet does not start with these fields and says these words."""
    error_text = await node.kubelet.refused_start(**config)
    plain = error_text.replace('\\"', '"')
    expect(node, words in plain, f"the words {words!r} in {plain[-600:]!r}")


@conformance(
    id="state-of-another-policy", rules=["CG-081"], needs=[STATUS, RESTART], node_config=STATIC
)
async def a_state_file_of_another_policy_stops_the_start(node: Node) -> None:
    """After a change of cpuManagerPolicy the kubelet does not start until its state file is
    removed; pods keep running."""
    await node.apply_static(pod("web", guaranteed("main", "1")))
    await node.wait_running("web")
    text = (
        'start cpu manager error: could not restore state from checkpoint: configured policy "none"'
        ' differs from state checkpoint policy "static", please drain this node and delete the CPU '
        "manager checkpoint file"
    )
    await refuses(node, text, cpuManagerPolicy="none")
    expect(node, node.count("StopContainer") == 0, "containers run on")
    await node.kubelet.start(cpuManagerPolicy="static")
    await node.wait_running("web")


@conformance(id="state-corrupted", rules=["CG-081"], needs=[STATUS, RESTART], node_config=STATIC)
async def a_corrupted_state_file_stops_the_start(node: Node) -> None:
    """With a state file whose checksum does not fit its content the kubelet does not start, and the
    file stays as it is."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    state = json.loads(node.machine.read_root_file("cpu_manager_state"))
    broken = json.dumps({**state, "checksum": 1})
    node.machine.write_root_file("cpu_manager_state", broken)
    await refuses(node, "could not restore state from checkpoint: checkpoint is corrupted")
    expect_equal(node, node.machine.read_root_file("cpu_manager_state"), broken, "state file")


@conformance(id="cpus-none-reserved", rules=["CG-081"], needs=[STATUS, RESTART])
async def static_needs_a_reservation(node: Node) -> None:
    """With policy static and no reserved CPUs the kubelet does not start."""
    text = "[cpumanager] unable to determine reserved CPU resources for static policy"
    await refuses(node, text, cpuManagerPolicy="static")


@conformance(id="memory-reserved-sum", rules=["CG-082"], needs=[STATUS, RESTART])
async def reserved_memory_must_add_up(node: Node) -> None:
    """reservedMemory must be the sum of kubeReserved, systemReserved and the hard eviction
    threshold."""
    await refuses(
        node,
        'the total amount "1Gi" of type "memory" is not equal to the value "101Mi" determined by '
        "Node Allocatable feature",
        memoryManagerPolicy="Static",
        systemReserved={"memory": "100Mi"},
        evictionHard={"memory.available": "1Mi"},
        reservedMemory=[{"numaNode": 0, "limits": {"memory": "1Gi"}}],
    )


@conformance(id="cpus-unknown-option", rules=["CG-081"], needs=[STATUS, RESTART])
async def unknown_options_stop_the_start(node: Node) -> None:
    """With an option that policy static does not have the kubelet does not start, and it names the
    option."""
    await refuses(
        node,
        'unknown CPU Manager Policy option: "whole-sockets"',
        **STATIC,
        cpuManagerPolicyOptions={"whole-sockets": "true"},
    )


@conformance(
    id="topology-too-many-nodes", rules=["CG-083"], needs=[STATUS, RESTART, Feature.NODE_RESOURCES],
    machine={"sockets": 3, "cores": 3, "nodes_per_socket": 3},
)  # fmt: skip
async def more_than_eight_nodes_are_too_many(node: Node) -> None:
    """With a topology manager policy the kubelet does not start on a machine of nine NUMA nodes,
    unless max-allowable-numa-nodes allows it."""
    text = "unsupported on machines with more than 8 NUMA Nodes"
    await refuses(node, text, topologyManagerPolicy="best-effort")
    await node.kubelet.start(
        topologyManagerPolicy="best-effort",
        topologyManagerPolicyOptions={"max-allowable-numa-nodes": "9"},
    )
    await node.apply_static(pod("web"))
    await node.wait_running("web")
