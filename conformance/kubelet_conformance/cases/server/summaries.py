"""The summary of the node and its pods: what is in it, and what is said when it cannot be made."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
SUMMARY = "/stats/summary"
VOLUMES_S = 65.0
"""Volumes are measured each minute."""
FS = ("time", "availableBytes", "capacityBytes", "usedBytes", "inodesFree", "inodes", "inodesUsed")
CPU = ("time", "usageCoreNanoSeconds")
MEMORY = ("time", "workingSetBytes")
OF_NODE = {
    "nodeName": (),
    "startTime": (),
    "cpu": CPU,
    "memory": (*MEMORY, "availableBytes", "usageBytes", "rssBytes"),
    "fs": FS,
    "runtime": {"imageFs": FS, "containerFs": FS},
    "rlimit": ("time", "maxpid", "curproc"),
}
OF_POD = {
    "podRef": ("name", "namespace", "uid"),
    "startTime": (),
    "containers": (),
    "cpu": ("time",),
    "memory": ("time",),
    "volume": (),
    "ephemeral-storage": FS,
}
OF_CONTAINER = {
    "startTime": (),
    "cpu": ("time",),
    "memory": ("time",),
    "rootfs": ("time", "usedBytes"),
    "logs": ("time", "usedBytes"),
}


def lacks(part: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The paths of `wanted` that are not in the part; what a name stands for is what its part has
    to have."""
    missing = []
    for name, below in wanted.items():
        if name not in part:
            missing.append(name)
        elif isinstance(below, Mapping):
            missing += [f"{name}.{path}" for path in lacks(part[name], below)]
        else:
            missing += [f"{name}.{each}" for each in below if each not in part[name]]
    return missing


@conformance(
    id="server-summary-whole", rules=["SRV-030.1", "SRV-030.4", "SRV-030.2"],
    needs=[API, STATUS, Feature.VIRTUAL_TIME], alone=True,
)  # fmt: skip
async def the_summary_has_the_node_its_pods_and_their_parts(node: Node) -> None:
    """The summary has processors, memory, disks and processes of the node, and of each pod its
    containers with their disks and logs, its volumes and its ephemeral storage. A static pod has
    the UID of its sandbox, not that of its mirror."""
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    main = container("main", volumeMounts=mounts)
    await node.apply_static(pod("web", main, volumes=[{"name": "scratch", "emptyDir": {}}]))
    await node.wait_running("web")
    await node.run_until(lambda: node.api.pod("web"), within_s=2 * limits.START_S, what="a mirror")
    await node.run_for(VOLUMES_S)
    summary = await node.kubelet.summary()
    expect_equal(node, lacks(summary["node"], OF_NODE), [], "what the node lacks")
    expect_equal(node, summary["node"]["nodeName"], node.name, "nodeName")
    name = node.runtime.pod_name("web")
    (shown,) = [each for each in summary["pods"] if each["podRef"]["name"] == name]
    expect_equal(node, lacks(shown, OF_POD), [], "what the pod lacks")
    sandbox = node.calls("RunPodSandbox", pod="web")[0].request.config.metadata.uid
    mirror = (node.api.pod("web") or {})["metadata"]["uid"]
    uid = shown["podRef"]["uid"]
    expect(node, uid == sandbox != mirror, "the UID of the sandbox", (uid, sandbox, mirror))
    expect_equal(node, [each["name"] for each in shown["containers"]], ["main"], "containers")
    expect_equal(node, lacks(shown["containers"][0], OF_CONTAINER), [], "what the container lacks")
    (volume,) = [each for each in shown["volume"] if each["name"] == "scratch"]
    expect_equal(node, [each for each in FS if each not in volume], [], "what the volume lacks")
    short = (await node.kubelet.get(f"{SUMMARY}?only_cpu_and_memory=true")).json()
    (pod_short,) = [each for each in short["pods"] if each["podRef"]["name"] == name]
    left = {"volume", "ephemeral-storage", "network"} & set(pod_short)
    left |= {"rootfs", "logs"} & set(pod_short["containers"][0])
    left |= {"fs", "runtime", "network"} & set(short["node"])
    expect_equal(node, left, set(), "what the short summary has too much")


@conformance(
    id="server-summary-fails",
    rules=["SRV-030.3", "SRV-031.2"],
    needs=[STATUS, FAULTS],
    alone=True,
)
async def a_summary_that_cannot_be_made_is_an_error(node: Node) -> None:
    """While the runtime does not tell of its disks, the summary is 500; while it does not tell what
    its containers use, so is the short one, and /metrics/resource says only that: it is 200, with
    resource_scrape_error 1."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.EVICTION_CYCLE_S)

    async def scraped() -> tuple[int, list[float], bool]:
        """The status, the values of resource_scrape_error, whether containers are shown."""
        answer = await node.kubelet.get("/metrics/resource")
        lines = [line for line in answer.text.splitlines() if line[:1] != "#"]
        errors = [float(x.split()[1]) for x in lines if x.startswith("resource_scrape_error ")]
        return answer.status, errors, any(line.startswith("container_") for line in lines)

    with node.runtime.on("ImageFsInfo").fails("UNKNOWN", "no disks today"):
        answer = await node.kubelet.get(SUMMARY)
    expect_equal(node, answer.status, 500, f"status of {SUMMARY} without disks")
    expect(node, "no disks today" in answer.text, "the runtime's error", answer.text)
    with node.runtime.on("ListContainerStats").fails("UNKNOWN", "no use today"):
        answer = await node.kubelet.get(f"{SUMMARY}?only_cpu_and_memory=true")
        expect_equal(node, answer.status, 500, "status of the short summary")
        page = await scraped()
    expect_equal(node, page, (200, [1.0], False), "/metrics/resource that failed")
    expect_equal(node, await scraped(), (200, [0.0], True), "/metrics/resource afterwards")


@conformance(
    id="server-summary-short-whole", rules=["SRV-030.2"], needs=[STATUS], since="1.36", alone=True
)
async def the_short_summary_has_these_parts_and_no_other(node: Node) -> None:
    """The short summary has of node, pods and containers names, start, processors, memory and swap,
    and nothing else but the containers of the system; processors in use are among it."""
    await node.apply_static(pod("web", container("main"), container("side")))
    await node.wait_running("web", "main")
    await node.wait_running("web", "side")
    await node.kubelet.summary()
    await node.run_for(limits.EVICTION_CYCLE_S)
    short = (await node.kubelet.get(f"{SUMMARY}?only_cpu_and_memory=true")).json()
    parts = {"startTime", "cpu", "memory", "swap"}
    web = short["pods"][0]
    for what, some, names in (
        ("summary", short, {"node", "pods"}),
        ("node", short["node"], {"nodeName", *parts}),
        ("pod", web, {"podRef", "containers", *parts}),
        ("container", web["containers"][0], {"name", *parts}),
    ):
        expect_equal(node, set(some) - {"systemContainers"}, names, f"parts of the short {what}")
    rates = [each["cpu"].get("usageNanoCores") is not None for each in (web, short["node"])]
    expect_equal(node, rates, [True, True], "whether processors in use are told")


@conformance(
    id="server-summary-new-sandbox", rules=["SRV-030.12"], needs=[STATUS, FAULTS], alone=True
)
async def a_pod_begins_with_its_newest_sandbox(node: Node) -> None:
    """When a pod's sandbox was made anew, the summary tells the pod's start by the new one, and
    that of its container by the new one of its name."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(5)
    stopped_s = node.unix_s
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=2 * limits.START_S,
        what="a second start",
    )
    await node.run_for(limits.NOTICE_S)
    (web,) = (await node.kubelet.summary())["pods"]
    for what, part in (("pod", web), *(("container", each) for each in web["containers"])):
        began_s = datetime.fromisoformat(part["startTime"]).timestamp()
        expect(node, began_s >= int(stopped_s), f"a start of the {what} after the stop", part)
