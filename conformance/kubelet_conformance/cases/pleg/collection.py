"""What is cleaned up in the runtime, and what must be kept."""

from kubecri.v1 import api_pb2 as cri

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, VIRTUAL = Feature.STATUS, Feature.VIRTUAL_TIME
API, FAULTS = Feature.API, Feature.FAULTS
UID = "11111111-2222-3333-4444-555555555555"


async def run_unknown_pod(node: Node) -> str:
    """Make a sandbox with the labels of a pod that no source has, and return its ID."""
    metadata = cri.PodSandboxMetadata(name="stranger", namespace="default", uid=UID)
    labels = {
        "io.kubernetes.pod.name": "stranger",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": UID,
    }
    config = cri.PodSandboxConfig(metadata=metadata, labels=labels, hostname="stranger")
    answer = await node.runtime.direct.call(
        "RunPodSandbox", cri.RunPodSandboxRequest(config=config)
    )
    return str(answer.pod_sandbox_id)


async def run_unknown_container(node: Node, *, start: bool = True) -> str:
    """Run a container in such a sandbox, or with `start=False` only make it, and return its ID."""
    sandbox = await run_unknown_pod(node)
    config = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="main"),
        image=cri.ImageSpec(image="localhost/busybox:1"),
        command=["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait $!"],
        labels={
            "io.kubernetes.pod.name": "stranger",
            "io.kubernetes.pod.namespace": "default",
            "io.kubernetes.pod.uid": UID,
            "io.kubernetes.container.name": "main",
        },
    )
    metadata = cri.PodSandboxMetadata(name="stranger", namespace="default", uid=UID)
    request = cri.CreateContainerRequest(
        pod_sandbox_id=sandbox,
        config=config,
        sandbox_config=cri.PodSandboxConfig(metadata=metadata),
    )
    creation = await node.runtime.direct.call("CreateContainer", request)
    if start:
        started = cri.StartContainerRequest(container_id=creation.container_id)
        await node.runtime.direct.call("StartContainer", started)
    return str(creation.container_id)


@conformance(
    id="unknown-pod-killed",
    rules=["LIFE-072", "LIFE-015", "PLEG-101", "LIFE-036.5", "LIFE-072.1", "LIFE-072.2"],
    needs=[STATUS],
    alone=True,
)
async def a_running_pod_without_source_is_killed(node: Node) -> None:
    """Housekeeping stops a pod that runs in the runtime and that no source has, with 2 s."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    ghost = await run_unknown_container(node)
    await node.run_until(
        lambda: any(c.request.container_id == ghost for c in node.calls("StopContainer")),
        within_s=2 * limits.HOUSEKEEPING_S + limits.NOTICE_S,
        what="StopContainer of the unknown container",
    )
    stop = next(c for c in node.calls("StopContainer") if c.request.container_id == ghost)
    expect_equal(node, stop.request.timeout, 2, "timeout of StopContainer")
    await node.run_until(lambda: node.count("StopPodSandbox"), within_s=limits.STOP_S)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops of web")


@conformance(id="removed-after-end", rules=["GC-003.1", "GC-020"], needs=[STATUS, VIRTUAL])
async def containers_of_a_removed_pod_are_removed_soon(node: Node) -> None:
    """When a removed static pod has stopped, its containers are removed at the next relist or by
    the next garbage collection."""
    await node.apply_static(pod("web", container("main"), container("other")))
    await node.wait_running("web", "main", "other")
    await node.remove_static("web")
    await node.run_until(
        lambda: (
            {c.container for c in node.calls("RemoveContainer", pod="web")} == {"main", "other"}
        ),
        within_s=limits.STOP_S + limits.GC_PERIOD_S + limits.NOTICE_S,
        what="RemoveContainer of both",
    )


@conformance(
    id="sandbox-collected",
    rules=["GC-010.2", "GC-010.4", "GC-010.5", "GC-001"],
    needs=[STATUS, VIRTUAL],
)
async def the_sandbox_of_a_removed_pod_goes_within_a_minute(node: Node) -> None:
    """Garbage collection stops and removes the sandbox of a removed pod, after its containers."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("RemovePodSandbox", pod="web"),
        within_s=limits.GC_PERIOD_S + limits.STOP_S + limits.NOTICE_S,
        what="RemovePodSandbox",
    )
    expected = ["RemoveContainer main/0", "StopPodSandbox/0", "RemovePodSandbox/0"]
    expect_order(node, node.writes("web"), expected, "RemoveContainer before RemovePodSandbox")


@conformance(
    id="finished-pod-kept",
    rules=["GC-003.1", "GC-003.2", "GC-010.3", "GC-002.2", "LIFE-073.6"],
    needs=[STATUS, VIRTUAL],
)
async def a_finished_pod_keeps_its_last_containers(node: Node) -> None:
    """Garbage collection keeps the newest dead containers of a pod that still exists, also of one
    that runs again."""
    job = pod("job", container("main", exits(0)), restartPolicy="Never")
    await node.apply_static(job)
    await node.apply_static(pod("web"))
    await node.apply_static(pod("again", container("main", in_turn(exits(1), runs()))))
    await node.wait_running("web")
    await node.run_for(2 * limits.GC_PERIOD_S + 5)
    expect_equal(node, node.count("RemoveContainer"), 0, "removed containers")
    expect_equal(node, node.count("RemovePodSandbox"), 0, "removed sandboxes")
    expect_equal(node, node.writes("web")[3:], [], "calls for the running pod after its start")
    expect_equal(node, node.phase("job"), "Succeeded", "phase")


@conformance(id="api-pod-collected", rules=["LIFE-200", "GC-020"], needs=[API], level=Level.SHOULD)
async def containers_of_a_deleted_pod_are_removed_before_the_pod_is(node: Node) -> None:
    """The containers of a deleted pod are removed from the runtime soon after they have stopped."""
    # Not a second: the next relist would tell of the end before the pod's worker is done, and the
    # container would then stay until the next garbage collection.
    await node.api.create_pod(pod("web", container("main", runs(stops(0, after_s=0.4))), grace_s=5))
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("RemoveContainer", pod="web"),
        within_s=1 + limits.STOP_S + limits.NOTICE_S,
        what="RemoveContainer",
    )
    stop = node.calls("StopPodSandbox", pod="web")
    removed = node.times_s("RemoveContainer", pod="web")[0]
    expect(node, stop and removed >= node.ended_s(stop[0]), "removal after the stop", removed)


@conformance(
    id="logs-removed-with-container", rules=["GC-005", "LIFE-136"], needs=[STATUS], alone=True
)
async def the_log_goes_with_its_container(node: Node) -> None:
    """When a dead container is removed its log is deleted with its rotated files and the link to
    it; the logs of others and their links stay."""

    def linked() -> set[str]:
        return set(node.machine.log_links("web").values())

    work = in_turn(exits(1), exits(1, after_s=2), runs())
    await node.apply_static(pod("web", container("main", work)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="a second start",
    )
    both = {"main/0.log", "main/1.log"}
    await node.run_until(lambda: linked() == both, within_s=1, what="links to both logs")
    for attempt in (0, 1):
        node.machine.write_log("web", "main", f"{attempt}.log.20200101-000000.gz", "old")
    await node.run_until(
        lambda: node.count("RemoveContainer", container="main"),
        within_s=limits.START_S + 2 + 2 * limits.NOTICE_S,
        what="RemoveContainer of attempt 0",
    )
    files = node.machine.log_files("web", "main")
    old = {file for file in files if file.startswith("0.log")}
    has_new_logs = {"1.log", "1.log.20200101-000000.gz"} <= set(files)
    expect(node, not old and has_new_logs, "the logs of attempt 1, and no longer those of 0", files)
    right = "main/1.log" in linked() and "main/0.log" not in linked()
    expect(node, right, "a link to the log of attempt 1 and none to that of 0", linked())


@conformance(
    id="log-links-collected", rules=["GC-011"], level=Level.SHOULD,
    needs=[STATUS, FAULTS, VIRTUAL, Feature.NODE_RESOURCES],
)  # fmt: skip
async def a_link_to_a_log_that_is_gone_goes_with_its_container(node: Node) -> None:
    """Garbage collection removes the link to a log that is missing if its container has ended; that
    of a container that runs stays, because its log may come back."""
    await node.apply_static(pod("job", container("main", exits(0)), restartPolicy="Never"))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_until(lambda: node.phase("job") == "Succeeded", within_s=limits.START_S)
    names = ("job", "web")
    links = {name: [*node.machine.log_links(name).values()] for name in names}
    expect_equal(node, links, {name: ["main/0.log"] for name in names}, "links")
    node.runtime.on("ReopenContainerLog").fails("UNKNOWN", "not now")
    for name in names:
        node.machine.remove_log(name, "main", "0.log")
    await node.run_until(
        lambda: not node.machine.log_links("job"),
        within_s=limits.GC_PERIOD_S + limits.NOTICE_S,
        what="no link of job",
    )
    await node.run_for(1)
    expect(node, node.machine.log_links("web"), "the link of web")


@conformance(
    id="log-link-of-created", rules=["GC-011"], level=Level.SHOULD,
    needs=[STATUS, FAULTS, VIRTUAL, Feature.NODE_RESOURCES], alone=True,
)  # fmt: skip
async def the_link_of_a_container_that_is_about_to_start_stays(node: Node) -> None:
    """A link without a log stays while the runtime has its container and that has not ended, also
    before it runs; the link of a container that nobody knows is removed."""
    await node.apply_static(pod("other"))
    await node.wait_running("other")
    node.runtime.on("StartContainer", container="slow").hangs()
    await node.apply_static(pod("web", container("slow")))
    await node.run_until(
        lambda: node.count("StartContainer", container="slow"),
        within_s=limits.START_S,
        what="a start that takes its time",
    )
    known = node.calls("StartContainer", container="slow")[0].request.container_id
    stays, goes = (
        node.machine.link_beside("other", f"web_default_slow-{each}.log")
        for each in (known, "f" * 64)
    )
    await node.run_until(lambda: not goes.is_symlink(), within_s=65, what="one link is removed")
    expect(node, stays.is_symlink(), "the link of the container that was created")


@conformance(id="log-directory-collected", rules=["GC-011"], needs=[STATUS, VIRTUAL], alone=True)
async def the_log_directory_of_a_removed_pod_goes(node: Node) -> None:
    """Garbage collection deletes the log directory of a pod that is gone, and no other."""
    await node.apply_static(pod("web"))
    await node.apply_static(pod("stays"))
    await node.wait_running("web")
    await node.wait_running("stays")
    expect_equal(node, node.machine.log_directories("web"), 1, "log directories before")
    await node.remove_static("web")
    await node.run_until(
        lambda: not node.machine.log_directories("web"),
        within_s=2 * limits.GC_PERIOD_S + limits.STOP_S + limits.NOTICE_S,
        what="no log directory of web",
    )
    expect_equal(node, node.machine.log_files("stays", "main"), ["0.log"], "logs of the other pod")


@conformance(
    id="collection-fails", rules=["GC-001", "NODE-070.3"], needs=[API, FAULTS, VIRTUAL], alone=True
)
async def a_failed_collection_is_told_on_the_node(node: Node) -> None:
    """A garbage collection that cannot list the runtime is reported as Warning ContainerGCFailed;
    one that cannot remove something is not, and the next one tries again."""
    await node.api.create_pod(pod("job", container("main", exits(0)), restartPolicy="Never"))
    await node.run_until(lambda: node.api.phase("job") == "Succeeded", within_s=limits.START_S + 5)
    with node.runtime.on("RemovePodSandbox").fails("UNKNOWN", "device busy"):
        await node.api.delete_pod("job")
        await node.run_until(
            lambda: node.count("RemovePodSandbox") == 2,
            within_s=3 * limits.GC_PERIOD_S,
            what="RemovePodSandbox twice",
        )
    expect_equal(node, node.events("ContainerGCFailed"), [], "events ContainerGCFailed")
    gap = [Span(limits.GC_PERIOD_S - 1, limits.GC_PERIOD_S + 3)]
    expect_spans(node, node.times_s("RemovePodSandbox"), gap, "two tries to remove the sandbox")
    await node.run_until(
        lambda: node.count("RemovePodSandbox") == 3,
        within_s=limits.GC_PERIOD_S + limits.NOTICE_S,
        what="a third try to remove the sandbox",
    )
    with node.runtime.on("ListPodSandbox").fails("UNKNOWN", "no lists today"):
        await node.run_until(
            lambda: node.events("ContainerGCFailed"),
            within_s=limits.GC_PERIOD_S + limits.NOTICE_S,
            what="ContainerGCFailed",
        )
    event = node.events("ContainerGCFailed")[0]
    expect_equal(node, event["type"], "Warning", "type of the event")
    expect_equal(node, event["involvedObject"]["kind"], "Node", "object of the event")
    expect(node, "no lists today" in event["message"], "the runtime's error", event["message"])
