"""What the kubelet measures, as /stats/summary shows it."""

from datetime import datetime
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

MI = 1024 * 1024


@conformance(
    id="summary-node", rules=["SRV-030", "EVIC-020", "EVIC-022", "EVIC-023", "EVIC-025"],
    needs=[Feature.STATUS], alone=True,
)  # fmt: skip
async def the_summary_has_all_that_signals_are_made_from(node: Node) -> None:
    """The summary of the node has what eviction signals are made of: memory, the disks of the
    kubelet and of the images, and processes."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.EVICTION_CYCLE_S)
    summary = (await node.kubelet.summary())["node"]
    expect_equal(node, summary["nodeName"], node.name, "nodeName")
    memory = summary["memory"]
    for name in ("time", "availableBytes", "workingSetBytes"):
        expect(node, memory.get(name), f"memory has {name}", memory)
    room = ("time", "availableBytes", "capacityBytes", "inodesFree", "inodes", "usedBytes")
    disks = {"fs": summary["fs"], **summary["runtime"]}
    expect_equal(node, sorted(disks), ["containerFs", "fs", "imageFs"], "filesystems of the node")
    for disk, values in disks.items():
        for name in room:
            expect(node, name in values, f"{disk} has {name}", values)
        expect(node, 0 < values["availableBytes"] < values["capacityBytes"], disk, values)
    images, containers = summary["runtime"]["imageFs"], summary["runtime"]["containerFs"]
    sizes = ("capacityBytes", "inodes", "time")
    same = [(images[n], containers[n]) for n in sizes]
    expect(node, all(a == b for a, b in same), "imageFs and containerFs alike (EVIC-024)", same)
    limit = summary["rlimit"]
    expect(node, 0 < limit["curproc"] < limit["maxpid"], "processes below their limit", limit)


@conformance(id="summary-pod", rules=["SRV-030", "EVIC-029"], needs=[Feature.STATUS], alone=True)
async def the_summary_has_the_pods_that_run(node: Node) -> None:
    """A pod with a running container is in the summary, with its containers and their disks."""
    await node.apply_static(pod("web", container("main"), container("side")))
    await node.wait_running("web", "main", "side")
    await node.run_for(limits.EVICTION_CYCLE_S)
    pods = {p["podRef"]["name"]: p for p in (await node.kubelet.summary())["pods"]}
    expect(node, node.runtime.pod_name("web") in pods, "web is in the summary", sorted(pods))
    web = pods[node.runtime.pod_name("web")]
    expect_equal(node, sorted(c["name"] for c in web["containers"]), ["main", "side"], "containers")
    for stats in web["containers"]:
        for part in ("cpu", "memory", "rootfs", "logs", "swap", "startTime"):
            expect(node, part in stats, f"{stats['name']} has {part}", sorted(stats))
        expect(node, "workingSetBytes" in stats["memory"], "its workingSetBytes", stats["memory"])
        expect(node, "usedBytes" in stats["rootfs"], "its rootfs.usedBytes", stats["rootfs"])
        expect(node, "usedBytes" in stats["logs"], "its logs.usedBytes", stats["logs"])
    for part in ("cpu", "memory", "ephemeral-storage"):
        expect(node, part in web, f"web has {part}", sorted(web))


@conformance(
    id="summary-io", rules=["SRV-030.11"], needs=[Feature.STATUS], since="1.34", alone=True
)
async def what_nobody_tells_of_io_has_a_time(node: Node) -> None:
    """Containers in the summary have the part io with a time, whether or not it is known how long
    they waited for it."""
    await node.apply_static(pod("web", container("main"), container("side")))
    await node.wait_running("web", "main", "side")
    await node.run_for(limits.EVICTION_CYCLE_S)
    pods = {p["podRef"]["name"]: p for p in (await node.kubelet.summary())["pods"]}
    web = pods[node.runtime.pod_name("web")]
    for stats in (*web["containers"], web):
        expect(node, stats.get("io", {}).get("time"), "io has a time", stats.get("io"))


@conformance(
    id="summary-pressure",
    rules=["SRV-030.7"],
    needs=[Feature.STATUS, Feature.FAULTS, Feature.SHORTAGE],
    node_config={"featureGates": {"PodAndContainerStatsFromCRI": True}},
    since="1.36",
    alone=True,
)
async def the_summary_has_the_pressure_that_the_runtime_tells(node: Node) -> None:
    """With the gate PodAndContainerStatsFromCRI the psi of a container's CPU, memory and io are
    what ListPodSandboxStats tells of them."""

    def pressed(answer: Any) -> None:
        for sandbox in answer.stats:
            for stats in sandbox.linux.containers:
                for weight, part in enumerate((stats.cpu, stats.memory, stats.io), start=1):
                    part.timestamp = max(part.timestamp, 1)
                    part.psi.Some.Total, part.psi.Some.Avg10 = 1000 * weight, 1.5 * weight
                    part.psi.Full.Total, part.psi.Full.Avg300 = 100 * weight, 0.5 * weight

    node.runtime.on("ListPodSandboxStats").changes_answer(pressed)
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.EVICTION_CYCLE_S)
    pods = {p["podRef"]["name"]: p for p in (await node.kubelet.summary())["pods"]}
    (main,) = pods[node.runtime.pod_name("web")]["containers"]
    for weight, name in enumerate(("cpu", "memory", "io"), start=1):
        psi = main.get(name, {}).get("psi")
        some = {"total": 1000 * weight, "avg10": 1.5 * weight, "avg60": 0, "avg300": 0}
        full = {"total": 100 * weight, "avg10": 0, "avg60": 0, "avg300": 0.5 * weight}
        expect_equal(node, psi, {"some": some, "full": full}, f"psi of {name}")


@conformance(
    id="summary-network",
    rules=["SRV-030.5", "SRV-030.6"],
    needs=[Feature.STATUS, Feature.RESTART],
)
async def the_summary_has_the_traffic_of_the_node(node: Node) -> None:
    """The summary of the node has its network interfaces but for those of the node itself and of
    pods. Its startTime is that of the machine, whenever the kubelet was started."""
    summary = (await node.kubelet.summary())["node"]
    network = summary.get("network", {})
    for name in ("time", "name", "interfaces"):
        expect(node, name in network, f"network has {name}", network)
    interfaces = network["interfaces"]
    own = [i["name"] for i in interfaces if i["name"].startswith(("lo", "veth"))]
    expect_equal(node, own, [], "interfaces of the node itself and of pods")
    for interface in interfaces:
        for name in ("rxBytes", "rxErrors", "txBytes", "txErrors"):
            expect(node, interface.get(name, -1) >= 0, f"its {name}", interface)
    default = [i["name"] for i in interfaces if i["name"] == "eth0"]
    expect_equal(node, [network["name"]], default or [""], "the interface beside the time")
    await node.run_for(5)
    await node.kubelet.restart()
    again = (await node.kubelet.summary())["node"]
    apart_s = seconds_apart(summary["startTime"], again["startTime"])
    expect(node, apart_s <= 2, "the same startTime", [summary["startTime"], again["startTime"]])


def seconds_apart(one: str, other: str) -> float:
    """How far two times of the API are from each other; a kubelet counts back from now."""
    return abs((datetime.fromisoformat(one) - datetime.fromisoformat(other)).total_seconds())


@conformance(
    id="summary-ended", rules=["EVIC-029"], needs=[Feature.STATUS, Feature.OUTSIDE_KILL], alone=True
)
async def a_pod_without_running_containers_has_no_statistics(node: Node) -> None:
    """A pod whose only container has ended is not in the summary."""
    await node.apply_static(pod("web", restartPolicy="Never"))
    await node.wait_running("web")
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.phase("web") in ("Failed", "Succeeded"), within_s=limits.STOP_S
    )
    names = [p["podRef"]["name"] for p in (await node.kubelet.summary())["pods"]]
    expect(node, node.runtime.pod_name("web") not in names, "web is not in the summary", names)
