"""The pod-resources API: which container has which resources, for monitoring programs."""

from __future__ import annotations

from typing import Any, Final

from fakecri.deviceplugin import PluginDevice
from kubelet_conformance.cases.resources.memory import CONFIG as MEMORY
from kubelet_conformance.cases.resources.topology import SERVER
from kubelet_conformance.cases.resources.widgets import (
    NEEDS,
    WIDGET,
    shows,
    widgets,
    with_widgets,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance
from refkubelet.model.cpuset import format_cpuset


@conformance(id="pod-resources-list", rules=["CG-085"], needs=NEEDS)
async def the_pod_resources_api_shows_which_pod_has_which_device(node: Node) -> None:
    """List has sidecars and regular containers with their devices, one entry for each device and
    NUMA node, and leaves plain init containers out."""
    await widgets(node, PluginDevice("w1", nodes=(0,)), PluginDevice("w2", nodes=(0,)))
    sidecar = with_widgets(1, "proxy", restartPolicy="Always")
    plan = pod("web", with_widgets(1), init=[with_widgets(1, "setup", exits(0)), sidecar])
    await node.api.create_pod(plan)
    await node.wait_running("web")
    listed = await node.kubelet.pod_resources("List")
    (web,) = [entry for entry in listed.pod_resources if entry.name == "web"]
    rows = [
        (c.name, [(d.resource_name, list(d.device_ids), _nodes(d)) for d in c.devices])
        for c in web.containers
    ]
    expected = [("proxy", [(WIDGET, ["w1"], [0])]), ("main", [(WIDGET, ["w2"], [0])])]
    expect_equal(node, [name for name, _ in rows], ["proxy", "main"], "containers")
    lists = sorted(d for _, devices in rows for d in devices)
    expect_equal(
        node, lists, sorted(d for _, devices in expected for d in devices), "given devices"
    )


def _nodes(shown: Any) -> list[int]:
    return [numa_node.ID for numa_node in shown.topology.nodes]


@conformance(id="pod-resources-ended", rules=["CG-085.2"], needs=NEEDS)
async def a_pod_that_has_ended_is_not_listed(node: Node) -> None:
    """List has only active pods: one that has succeeded is left out while it is still at the API
    server."""
    await widgets(node, "w1")
    job = pod("job", with_widgets(1, "main", exits(0, after_s=1)), restartPolicy="Never")
    await node.api.run_pods(pod("web"))
    await node.api.create_pod(job)
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded",
        within_s=limits.START_S + limits.STOP_S + limits.STATUS_PASS_S,
        what="job has succeeded",
    )
    listed = await node.kubelet.pod_resources("List")
    names = [entry.name for entry in listed.pod_resources]
    expect_equal(node, names, ["web"], "pods in the answer to List")


@conformance(id="pod-resources-v1alpha1", rules=["CG-085.5"], needs=NEEDS)
async def older_monitors_get_the_devices_of_all_pods(node: Node) -> None:
    """List of v1alpha1 has the devices of regular containers alone, without nodes, and every pod
    that the node has, also one that has ended."""
    await widgets(node, "w1", "w2")
    await node.api.run_pods(pod("bare"))
    job = pod("job", container("main", exits(0, after_s=1)), restartPolicy="Never")
    await node.api.create_pod(job)
    sidecar = with_widgets(1, "proxy", restartPolicy="Always")
    await node.api.create_pod(pod("web", with_widgets(1), init=[sidecar]))
    await node.wait_running("web")
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded",
        within_s=limits.START_S + limits.STOP_S + limits.STATUS_PASS_S,
        what="job has succeeded",
    )
    listed = await node.kubelet.pod_resources("v1alpha1.List")
    rows = {
        entry.name: [(c.name, [d.resource_name for d in c.devices]) for c in entry.containers]
        for entry in listed.pod_resources
    }
    expected: dict[str, list[tuple[str, list[str]]]] = {
        "bare": [("main", [])], "job": [("main", [])], "web": [("main", [WIDGET])]
    }  # fmt: skip
    expect_equal(node, rows, expected, "pods, their containers and devices")


@conformance(id="pod-resources-get", rules=["CG-085.3", "CG-085.4"], needs=NEEDS, since="1.34")
async def the_pod_resources_api_shows_one_pod_and_what_there_is(node: Node) -> None:
    """Get shows one pod, or an error if there is no such pod in that namespace;
    GetAllocatableResources shows the healthy devices, free or not."""
    plugin = await widgets(node, "w1", "w2")
    await node.api.create_pod(pod("web", with_widgets(1)))
    await node.wait_running("web")
    answer = await node.kubelet.pod_resources("Get", pod_name="web", pod_namespace="default")
    (main,) = answer.pod_resources.containers
    expect_equal(node, len(main.devices), 1, "devices of the container")
    for name, namespace in (("no", "default"), ("web", "kube-system")):
        error_text = await _error_of_get(node, name, namespace)
        expected_error = f"pod {name} in namespace {namespace} not found"
        expect_equal(node, error_text, expected_error, "error of Get")
    plugin.set_health("w2", "Unhealthy")
    await shows(node, "1")
    free = await node.kubelet.pod_resources("GetAllocatableResources")
    healthy = [list(d.device_ids) for d in free.devices]
    expect_equal(node, healthy, [["w1"]], "healthy devices")


async def _error_of_get(node: Node, name: str, namespace: str) -> str:
    """What Get says of that pod: its error, or its answer."""
    try:
        return str(await node.kubelet.pod_resources("Get", pod_name=name, pod_namespace=namespace))
    except LookupError as error:
        return str(error)


RESERVED: Final = {"memory": "1Gi", "cpu": "1"}


@conformance(
    id="pod-resources-all",
    rules=["CG-085", "CG-081", "CG-082"],
    needs=[*NEEDS, Feature.NODE_RESOURCES],
    node_config={**MEMORY, "cpuManagerPolicy": "static", "systemReserved": RESERVED},
    machine=SERVER,
    since="1.34",
)
async def own_cpus_and_memory_of_numa_nodes_are_shown_beside_devices(node: Node) -> None:
    """The API shows the device, the two CPUs of its own and the memory of one NUMA node that a
    Guaranteed container has."""
    await widgets(node, PluginDevice("w1", nodes=(1,)))
    amounts = {"cpu": "2", "memory": "4Gi", WIDGET: "1"}
    main = container("main", resources={"requests": amounts, "limits": amounts})
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    answer = await node.kubelet.pod_resources("Get", pod_name="web", pod_namespace="default")
    (row,) = answer.pod_resources.containers
    created = node.calls("CreateContainer", pod="web")[0].request.config.linux.resources
    expect_equal(node, [list(d.device_ids) for d in row.devices], [["w1"]], "devices")
    expect_equal(node, format_cpuset(row.cpu_ids), created.cpuset_cpus, "CPUs of its own")
    blocks = [(m.memory_type, m.size, _nodes(m)) for m in row.memory]
    expected = [("memory", 4 << 30, [int(created.cpuset_mems)])]
    expect_equal(node, blocks, expected, "memory")
    free = await node.kubelet.pod_resources("GetAllocatableResources")
    expect(node, len(free.cpu_ids) > 2, "more than two assignable CPUs", list(free.cpu_ids))
    kinds = [m.memory_type for m in free.memory]
    expect(node, kinds.count("memory") == 2, "memory entries of both NUMA nodes", kinds)
