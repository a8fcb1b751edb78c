"""What the Node tells of its machine and its kubelet, and how it is written."""

import os
from pathlib import Path
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.quantity import NANO, parse_nano
from kubeobjects.topology import HugePages

API, STATUS, FAULTS, RESTART = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.RESTART
NODES = r"/api/v1/nodes$"
THE_NODE = r"/api/v1/nodes/[^/]+$"
OF_THE_NODE = r"/api/v1/nodes/[^/]+/status$"
UPDATE_S = 10.4  # NODE-010
REGISTER_S = 7.0 + limits.START_S  # NODE-002: between two tries, and a start
STATUS_S = 5.0  # NODE-050
STANDS_STILL_S = 300.0  # NODE-053


def _text(file: str) -> str:
    """The text of a file of this machine; "" if it cannot be read."""
    try:
        return Path(file).read_text(errors="replace").strip("\0 \t\r\n")
    except OSError:
        return ""


def _first(*files: str) -> str:
    """The text of the first of these files that has one."""
    return next(filter(None, map(_text, files)), "")


@conformance(
    id="node-info",
    rules=["NODE-033.1", "NODE-033.2", "NODE-033.3", "NODE-035.4"],
    needs=[API, FAULTS, RESTART],
)
async def the_node_tells_of_its_machine(node: Node) -> None:
    """The Node has the IDs, the kernel and the system of its machine, the name and the version of
    its runtime without what a distribution has added, and the port of its kubelet; nothing of
    kube-proxy."""

    def packaged(answer: Any) -> None:
        answer.runtime_name, answer.runtime_version = "packaged", "1.6.20~ds1"

    node.runtime.on("Version").changes_answer(packaged)
    await node.kubelet.restart()
    await node.run_until(
        lambda: (
            (node.api.node_status("nodeInfo") or {}).get("containerRuntimeVersion")
            == "packaged://1.6.20"
        ),
        within_s=REGISTER_S + UPDATE_S,
        what="packaged://1.6.20 as containerRuntimeVersion",
    )
    info = dict(node.api.node_status("nodeInfo"))
    release = dict(line.partition("=")[::2] for line in _text("/etc/os-release").splitlines())
    labels = node.api.node_metadata("labels")
    expected = {
        "machineID": _first("/etc/machine-id", "/var/lib/dbus/machine-id"),
        "systemUUID": _first("/sys/class/dmi/id/product_uuid", "/etc/machine-id"),
        "kernelVersion": os.uname().release,
        "osImage": release.get("PRETTY_NAME", "").strip('"'),
        "operatingSystem": "linux",
        "architecture": labels["kubernetes.io/arch"],
        "kubeProxyVersion": "",
    }
    expect_equal(node, {key: info.get(key, "") for key in expected}, expected, "nodeInfo")
    expect(node, info.get("bootID"), "a bootID", info)
    expect(node, str(info.get("kubeletVersion")).startswith("v1."), "kubeletVersion", info)
    ports = node.api.node_status("daemonEndpoints")
    config = (await node.kubelet.get("/configz")).json()["kubeletconfig"]
    expect_equal(node, ports, {"kubeletEndpoint": {"Port": config["port"]}}, "daemonEndpoints")


@conformance(
    id="node-machine",
    rules=["NODE-030.1", "NODE-030.2", "NODE-033.3"],
    needs=[API, Feature.NODE_RESOURCES],
    machine={"cores": 4, "memory_bytes": 6 << 30, "swap_bytes": 1 << 30},
)
async def the_node_has_what_its_machine_has(node: Node) -> None:
    """CPUs, memory and swap of the Node are those of the machine, and without podsPerCore it takes
    maxPods pods."""
    await node.run_until(lambda: node.api.capacity("cpu"), within_s=REGISTER_S, what="the Node")
    amounts = {name: node.api.capacity(name) for name in ("cpu", "memory", "pods")}
    amounts["memory"] = str(parse_nano(amounts["memory"]) // NANO)
    expected = {"cpu": "4", "memory": str(6 << 30), "pods": "110"}
    expect_equal(node, amounts, expected, "capacity")
    swap = node.api.node_status("nodeInfo").get("swap")
    expect_equal(node, swap, {"capacity": 1 << 30}, "swap")


@conformance(
    id="node-nothing-left", rules=["NODE-031.1", "NODE-031.2"], needs=[API, Feature.NODE_RESOURCES],
    machine={"cores": 2, "memory_bytes": 4 << 30, "hugepages": (HugePages(2 << 20, 1536),)},
    node_config={"kubeReserved": {"memory": "2Gi", "cpu": "500m"}, "systemReserved": {"cpu": "1"}},
)  # fmt: skip
async def the_node_never_promises_less_than_nothing(node: Node) -> None:
    """Where reservations and huge pages together are more memory than the machine has, nothing is
    allocatable: the amount is 0, and not negative. Of the CPUs both reservations are missing."""
    await node.run_until(lambda: node.api.capacity("memory"), within_s=REGISTER_S, what="the Node")
    amounts = {name: node.api.allocatable(name) for name in ("memory", "cpu", "hugepages-2Mi")}
    expected = {"memory": "0", "cpu": "500m", "hugepages-2Mi": "3Gi"}
    expect_equal(node, amounts, expected, "allocatable")


@conformance(
    id="node-patches", rules=["NODE-011.1", "NODE-011.5"], needs=[API],
    node_config={"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "2s"},
)  # fmt: skip
async def only_status_and_metadata_are_written(node: Node) -> None:
    """The Node is written by strategic merge patches of its status alone. The spec is never part of
    them: what somebody else writes there meanwhile stays."""
    await node.run_until(node.api.node_uid, within_s=REGISTER_S, what="the Node")
    taint = {"key": "dedicated", "value": "tests", "effect": "NoSchedule"}
    await node.api.patch_node({"spec": {"unschedulable": True, "taints": [taint]}})
    await node.run_for(8)
    patches = node.api.requests("PATCH", OF_THE_NODE, of_users=False)
    expect(node, len(patches) >= 3, "three writes or more in 8 s", len(patches))
    kinds = {request.content_type for request in patches}
    expect_equal(node, kinds, {"application/strategic-merge-patch+json"}, "types of the patches")
    parts = {part for request in patches for part in request.body}
    expect(node, parts <= {"metadata", "status"}, "metadata and status alone", parts)
    for method, path in (("PUT", r"/api/v1/nodes/"), ("PATCH", THE_NODE)):
        others = node.api.requests(method, path, of_users=False)
        expect_equal(node, len(others), 0, f"requests {method} {path}")
    spec = node.api.node_object()["spec"]
    stays = spec.get("unschedulable"), [row["key"] for row in spec.get("taints", [])]
    expect(node, stays[0] and "dedicated" in stays[1], "unschedulable and the taint", stays)


@conformance(id="node-registered-first", rules=["NODE-002.1", "NODE-002.3"], needs=[API, RESTART])
async def no_status_is_written_before_the_node_is_registered(node: Node) -> None:
    """A kubelet offers its Node at once. While it cannot register, it does not write the status of
    the Node that is there; it does so as soon as it can."""
    await node.run_until(node.api.node_uid, within_s=REGISTER_S, what="the Node")
    await node.kubelet.stop()
    posts, patches = (len(node.api.requests(*of)) for of in (("POST", NODES), ("PATCH", "nodes")))
    with node.api.fails("POST", NODES):
        await node.kubelet.start()
        await node.run_until(
            lambda: len(node.api.requests("POST", NODES)) > posts,
            within_s=limits.START_S,
            what="a try to register",
        )
        await node.run_for(UPDATE_S + 2)
        written = len(node.api.requests("PATCH", "nodes")) - patches
        expect_equal(node, written, 0, "writes of the Node before it is registered")
    await node.run_until(
        lambda: len(node.api.requests("PATCH", OF_THE_NODE)) > patches,
        within_s=7.0 + 2,
        what="a write of the status",
    )


@conformance(
    id="node-runtime-never",
    rules=["NODE-023.1", "NODE-023.6", "NODE-022.2"],
    needs=[API, FAULTS, RESTART],
)
async def a_runtime_that_never_answered_is_told(node: Node) -> None:
    """While the runtime's status was never told since the start, the node is not ready: the check
    may not have completed, and of the network nothing is known."""
    await node.run_until(node.api.node_uid, within_s=REGISTER_S, what="the Node")
    await node.kubelet.stop()
    with node.runtime.on("Status").fails("UNKNOWN", "not yet"):
        await node.kubelet.start()
        text = "[container runtime status check may not have completed yet, network state unknown]"
        await node.run_until(
            lambda: node.api.node_condition("Ready").get("message") == text,
            within_s=REGISTER_S + UPDATE_S,
            what=f"Ready with the message {text}",
        )
        ready = node.api.node_condition("Ready")
        expect_equal(
            node, (ready["status"], ready["reason"]), ("False", "KubeletNotReady"), "Ready"
        )
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("status") == "True",
        within_s=UPDATE_S + STATUS_S,
        what="Ready True",
    )
    ready = node.api.node_condition("Ready")
    words = ready["reason"], ready["message"]
    expected_words = ("KubeletReady", "kubelet is posting ready status")
    expect_equal(node, words, expected_words, "reason and message of a node that is ready")


@conformance(
    id="node-condition-untold", rules=["NODE-023.4", "NODE-023.5", "CRI-130.1"],
    needs=[API, FAULTS], node_config={"nodeStatusUpdateFrequency": "1s"},
)  # fmt: skip
async def a_condition_that_the_runtime_does_not_tell_is_nil(node: Node) -> None:
    """A runtime whose Status says nothing of its network, or of itself, makes the node not ready:
    in the message `<nil>` stands for what is not told."""

    def without(kind: str) -> Any:
        def change(answer: Any) -> None:
            for condition in answer.status.conditions:
                if condition.type == kind:
                    condition.type = "SomethingElse"

        return change

    await node.run_until(node.api.node_uid, within_s=REGISTER_S, what="the Node")
    texts = {
        "NetworkReady": "container runtime network not ready: <nil>",
        "RuntimeReady": "container runtime not ready: <nil>",
    }
    for kind, text in texts.items():
        with node.runtime.on("Status").changes_answer(without(kind)):
            await node.run_until(
                lambda text=text: node.api.node_condition("Ready").get("message") == text,  # type: ignore[misc]
                within_s=REGISTER_S + UPDATE_S,
                what=f"Ready with the message {text}",
            )
        await node.run_until(
            lambda: node.api.node_condition("Ready").get("status") == "True",
            within_s=STATUS_S + 3,
            what="Ready True",
        )


@conformance(
    id="network-away",
    rules=["NODE-052.2", "NODE-052.3", "NODE-052.4"],
    needs=[API, FAULTS],
    alone=True,
)
async def pods_that_wait_for_the_network_are_tried_each_second(node: Node) -> None:
    """While the network is not ready, a pod that needs it is tried again every 1 to 1.5 s, with an
    event each time, and starts soon after it is ready; a pod that runs is neither stopped nor
    shown otherwise."""

    def no_network(answer: Any) -> None:
        for condition in answer.status.conditions:
            condition.status &= condition.type != "NetworkReady"

    await node.api.run_pods(pod("old"))
    with node.runtime.on("Status").changes_answer(no_network):
        await node.run_for(STATUS_S + 1)
        await node.api.create_pod(pod("web"))
        await node.api.patch_pod("old", {"metadata": {"annotations": {"note": "sync"}}})
        await node.run_until(
            lambda: node.event_count("NetworkNotReady", pod="web"), within_s=3, what="an event"
        )
        before = node.event_count("NetworkNotReady", pod="web")
        await node.run_for(12)
        tries = node.event_count("NetworkNotReady", pod="web") - before
        expect(node, 6 <= tries <= 13, "a try every 1 to 1.5 s, 7 to 12 in 12 s", tries)
        expect_equal(node, node.api.phase("web"), "Pending", "phase of web")
        expect_equal(node, node.running("old"), True, "old runs")
    await node.run_until(
        lambda: node.count("RunPodSandbox", pod="web"), within_s=STATUS_S + 2.5, what="a sandbox"
    )
    expect_equal(node, node.phases("old")[-1], "Running", "phase of old")
    calls = [call for call in node.writes("old") if call.startswith(("Stop", "Remove"))]
    expect_equal(node, calls, [], "stops and removals of old")


@conformance(
    id="sync-loop-stands-still",
    rules=["NODE-053", "NODE-051.1", "NODE-051.2", "NODE-051.3", "NODE-051.4", "SRV-002.2"],
    needs=[API, STATUS, FAULTS, Feature.VIRTUAL_TIME],
    node_config={"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "60s"},
)
async def a_loop_that_stands_still_for_five_minutes_is_not_healthy(node: Node) -> None:
    """While the runtime is not ready the sync loop does nothing; after five minutes the check
    `syncloop` fails. The node's status is written meanwhile, what runs is left alone, and so is a
    pod that is deleted, until the runtime is ready again: then the loop goes on within 5 s."""

    def not_ready(answer: Any) -> None:
        for condition in answer.status.conditions:
            condition.status &= condition.type != "RuntimeReady"

    async def syncloop() -> int:
        return (await node.kubelet.get("/healthz/syncloop")).status

    await node.api.run_pods(pod("web"), pod("gone", grace_s=1))
    await node.run_for(limits.NOTICE_S)
    before = node.writes("web")
    reports = len(node.api.requests("PATCH", OF_THE_NODE))
    with node.runtime.on("Status").changes_answer(not_ready):
        await node.run_for(STATUS_S + 2)
        await node.api.delete_pod("gone")
        await node.run_for(STANDS_STILL_S - STATUS_S - 12)
        expect_equal(node, await syncloop(), 200, "status of /healthz/syncloop before 5 min")
        await node.run_for(22)
        expect_equal(node, await syncloop(), 500, "status of /healthz/syncloop after 5 min")
        whole = await node.kubelet.get("/healthz")
        expect_equal(node, whole.status, 500, "status of /healthz after 5 min")
        reports = len(node.api.requests("PATCH", OF_THE_NODE)) - reports
        expect(node, reports >= 4, "a report each minute", reports)
        expect_equal(node, node.count("StopContainer", pod="gone"), 0, "stops of gone")
    await node.run_until(
        lambda: node.count("StopContainer", pod="gone"),
        within_s=STATUS_S + 5 + 1,
        what="the loop goes on",
    )
    await node.run_for(1)
    expect_equal(node, await syncloop(), 200, "status of /healthz/syncloop when the loop goes on")
    expect_equal(node, node.writes("web"), before, "changing calls for web")
