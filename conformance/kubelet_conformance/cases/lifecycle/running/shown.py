"""What a status shows of containers and pods: exits, addresses, conditions, directories."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import ExecProbe, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
RESTART, KILL = Feature.RESTART, Feature.OUTSIDE_KILL


@conformance(
    id="exit-is-shown", rules=["LIFE-171.2", "LIFE-170.3"], needs=[STATUS, FAULTS], alone=True
)
async def a_container_has_ended_until_its_next_start_fails(node: Node) -> None:
    """While the next instance of a container that has ended is being made, the container is shown
    as ended; it waits with a reason only when a start has failed, and then its end is in the last
    state."""
    work = in_turn(exits(6, after_s=3), runs())
    await node.apply_static(pod("web", container("main", work)))
    await node.wait_running("web")
    slow = node.runtime.on("CreateContainer", container="main").delays(4)
    await node.run_until(
        lambda: node.count("CreateContainer", container="main") == 2,
        within_s=3 + limits.NOTICE_S,
        what="a second creation",
    )
    await node.run_for(2)
    row = node.container("web", "main")
    ended = row["state"].get("terminated", {})
    expect_equal(node, ended.get("exitCode"), 6, "exit code in the state of main")
    slow.remove()
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 1,
        within_s=4 + limits.NOTICE_S,
        what="the second instance is shown",
    )
    last = node.container("web", "main").get("lastState", {}).get("terminated", {})
    expect_equal(node, last.get("exitCode"), 6, "exit code in the last state")


@conformance(id="unknown-is-lost", rules=["LIFE-172.3"], needs=[API, FAULTS, RESTART], alone=True)
async def a_container_of_unknown_state_is_shown_as_lost(node: Node) -> None:
    """A container that ran, and of which the runtime does not know the state any more, is shown as
    lost while the next one is made, and that counts as a restart."""

    def unknown(answer: Any) -> None:
        if answer.status.metadata.attempt == 0:
            answer.status.state = cri.CONTAINER_UNKNOWN

    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    slow = node.runtime.on("CreateContainer", container="main").delays(4)
    lost = node.runtime.on("ContainerStatus", container="main").changes_answer(unknown)
    with slow, lost:
        await node.kubelet.restart()
        await node.run_until(
            lambda: node.count("CreateContainer", pod="web") == 2,
            within_s=limits.START_S + limits.STOP_S,
            what="a second creation of main",
        )
        await node.run_for(2)
        row = node.api.container("web", "main")
        ended = row["state"].get("terminated", {})
        fields = (ended.get("exitCode"), ended.get("reason"), ended.get("message"))
        text = "The container could not be located when the pod was terminated"
        expect_equal(node, fields, (137, "ContainerStatusUnknown", text), "end of main")
        expect_equal(node, row["restartCount"], 1, "restart count")


@conformance(id="host-network-address", rules=["LIFE-176.4", "LIFE-102"], needs=[API], alone=True)
async def a_pod_in_the_host_network_has_the_address_of_the_node(node: Node) -> None:
    """A pod in the host network shows the node's address as its own, and keeps its sandbox though
    the runtime tells no address of it."""
    await node.api.create_pod(pod("web", hostNetwork=True))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    status = (node.api.pod("web") or {})["status"]
    own = [each["ip"] for each in status.get("podIPs") or []]
    expect(node, status.get("hostIP"), "an address of the node", status.get("hostIP"))
    expect_equal(node, own, [status["hostIP"]], "addresses of the pod")
    expect_equal(node, status.get("podIP"), status["hostIP"], "podIP")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")


@conformance(id="pod-directories", rules=["LIFE-070.8"], needs=[API], alone=True)
async def a_pod_needs_its_directories(node: Node) -> None:
    """A running pod has its directories, for itself and the group only. While a file stands in
    their place, the pod does not start, and an event says so; it starts when that is gone."""
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    top = node.machine.pod_directory("web")
    modes = {name: (top / name).stat().st_mode & 0o777 for name in (".", "volumes", "plugins")}
    expect_equal(node, modes, dict.fromkeys(modes, 0o750), "modes of the directories")
    uid = "11111111-2222-3333-4444-777777777777"
    node.machine.write_root_file(f"pods/{uid}", "")
    await node.api.create_pod(pod("late", metadata={"uid": uid}))
    await node.run_until(
        lambda: node.events("Failed", pod="late"), within_s=limits.START_S, what="event Failed"
    )
    message = node.events("Failed", pod="late")[0]["message"]
    start = "error making pod data directories: "
    expect(node, message.startswith(start), f"{start}...", message)
    expect_equal(node, node.count("RunPodSandbox", pod="late"), 0, "sandboxes of late")
    (top.parent / uid).unlink()
    await node.run_until(
        lambda: node.api.phase("late") == "Running",
        within_s=limits.SYNC_ERROR_S + limits.START_S,
        what="late runs",
    )


@conformance(
    id="ephemeral-after-new-sandbox", rules=["LIFE-111.6", "LIFE-111.1"], needs=[API, RESTART, KILL]
)
async def an_ephemeral_container_waits_for_the_containers_of_a_new_sandbox(node: Node) -> None:
    """When a pod needs a new sandbox, its containers start there first, and an ephemeral container
    with the next sync."""
    web = pod("web")
    await node.api.create_pod(web)
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.runtime.stop_sandbox("web")
    await node.api.debug(web, container("debug"))
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StartContainer", container="debug"),
        within_s=limits.START_S + limits.NOTICE_S + limits.STOP_S,
        what="debug starts",
    )
    order = [
        "StopPodSandbox/0",
        "RunPodSandbox/1",
        "StartContainer main/1",
        "StartContainer debug/0",
    ]
    expect_order(node, node.writes("web"), order, "the new sandbox, main, then debug")


@conformance(
    id="initialized-stays-with-main",
    rules=["LIFE-181.2", "LIFE-121.1"],
    needs=[STATUS, RESTART, KILL],
)
async def a_pod_whose_main_container_runs_is_initialized(node: Node) -> None:
    """A static pod whose sidecar died while the kubelet was away is initialized all the same,
    because its main container runs; the sidecar starts again, and no other init container."""
    init = [container("setup", exits(0)), sidecar("side")]
    await node.apply_static(pod("web", init=init))
    await node.run_until(lambda: node.running("web", "side", "main"), within_s=limits.START_S)
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.runtime.kill_container("side", pod="web")
    seen = len(node.statuses("web"))
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="side starts again",
    )
    await node.run_for(limits.NOTICE_S)
    later = node.statuses("web")[seen:]
    shown = [
        c["status"]
        for status in later
        for c in status.get("conditions") or []
        if c["type"] == "Initialized"
    ]
    expect(node, shown and set(shown) == {"True"}, "Initialized is True all the time", shown)
    expect_equal(node, node.count("StartContainer", container="setup"), 1, "starts of setup")


@conformance(id="initialized-by-sidecar", rules=["LIFE-181.1", "LIFE-113.2"], needs=[API])
async def a_pod_is_initialized_when_its_sidecar_has_started(node: Node) -> None:
    """While the startup probe of a sidecar has not succeeded, the pod is not initialized, the
    message names the sidecar, and the main container does not start."""
    side = sidecar("side", probes={"startup": ExecProbe(from_s=5, failure_threshold=30)})
    await node.api.create_pod(pod("web", init=[side]))
    await node.run_until(
        lambda: "running" in node.api.container("web", "side").get("state", {}),
        within_s=limits.START_S,
        what="side runs",
    )
    kinds = {c["type"]: c for c in (node.api.pod("web") or {})["status"]["conditions"]}
    fields = [kinds["Initialized"].get(name) for name in ("status", "reason", "message")]
    text = "containers with incomplete status: [side]"
    expect_equal(node, fields, ["False", "ContainersNotInitialized", text], "Initialized")
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations of main")
    await node.run_until(
        lambda: node.api.phase("web") == "Running", within_s=5 + limits.START_S, what="Running"
    )
    kinds = {c["type"]: c["status"] for c in (node.api.pod("web") or {})["status"]["conditions"]}
    expect_equal(node, kinds["Initialized"], "True", "Initialized at the end")
