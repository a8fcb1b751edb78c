"""What the kubelet takes for new: lists and statuses that come late, hang, or fail, and changes
that come meanwhile."""

from functools import partial
from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import OTHER_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

STATUS, FAULTS, KILL = Feature.STATUS, Feature.FAULTS, Feature.OUTSIDE_KILL
API, VIRTUAL = Feature.API, Feature.VIRTUAL_TIME
LATE_S = 1.7


async def touch(node: Node, name: str, for_s: float) -> None:
    """Change the pod's labels every 0.3 s for so long; each change leads to a sync."""
    end_s, number = node.now_s + for_s, 0
    while node.now_s < end_s:
        number += 1
        await node.api.patch_pod(name, {"metadata": {"labels": {"number": str(number)}}})
        await node.run_for(0.3)


@conformance(
    id="late-lists-not-trusted",
    rules=["PLEG-102.1", "PLEG-102.2", "PLEG-009"],
    needs=[API, FAULTS],
    alone=True,
)
async def a_list_from_before_a_sync_says_nothing_about_it(node: Node) -> None:
    """While lists take long, a sync never works with one that began before the sync before it has
    ended: nothing is made twice."""
    with node.runtime.on("ListContainers").answers_late(LATE_S):
        for name in ("one", "two", "three"):
            await node.api.create_pod(pod(name))
            await touch(node, name, 2.1)
        await node.run_for(3 * LATE_S)
    for name in ("one", "two", "three"):
        counts = [node.count("RunPodSandbox", pod=name), node.count("CreateContainer", pod=name)]
        expect_equal(node, counts, [1, 1], f"sandboxes and containers of {name}")


@conformance(
    id="late-statuses-waited-for",
    rules=["PLEG-009", "PLEG-102.1", "PLEG-005"],
    needs=[API, FAULTS],
    alone=True,
)
async def a_pod_whose_status_is_being_read_is_waited_for(node: Node) -> None:
    """While statuses take long to read, a sync of a pod that has changed waits for its own: nothing
    is made twice."""
    with node.runtime.on("ContainerStatus").answers_late(LATE_S):
        for name in ("one", "two"):
            await node.api.create_pod(pod(name, container("main"), container("other")))
            await touch(node, name, 4.2)
        await node.run_for(3 * LATE_S)
    for name in ("one", "two"):
        counts = [node.count("RunPodSandbox", pod=name), node.count("CreateContainer", pod=name)]
        expect_equal(node, counts, [1, 2], f"sandboxes and containers of {name}")


@conformance(
    id="list-hangs", rules=["PLEG-102.1", "PLEG-102.3"], needs=[API, STATUS, FAULTS], alone=True
)
async def a_sync_waits_for_a_list_that_hangs(node: Node) -> None:
    """While lists hang a changed pod is left alone, for more than half a minute; with the next list
    the change is made."""
    await node.api.create_pod(pod("web"))
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.run_for(limits.NOTICE_S)
    before = node.writes("web")
    rule = node.runtime.on("ListPodSandbox").hangs()
    await node.run_for(1.5)
    # The list of before is newer than the last sync, so one more sync may use it.
    await node.api.patch_pod("web", {"metadata": {"labels": {"number": "1"}}})
    await node.run_for(1.5)
    change = {"spec": {"containers": [{"name": "main", "image": OTHER_IMAGE}]}}
    await node.api.patch_pod("web", await whole_spec(node, change))
    await node.run_for(40)
    expect_equal(node, node.writes("web"), before, "changing calls while lists hang")
    rule.release()
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.STOP_S + limits.NOTICE_S + limits.START_S,
        what="a start with the other image",
    )


@conformance(
    id="status-hangs", rules=["PLEG-102.3", "PLEG-102.1"], needs=[API, FAULTS, KILL], alone=True
)
async def a_sync_waits_for_the_status_of_another_pod_that_hangs(node: Node) -> None:
    """While the status of one pod cannot be read the relist does not end, and a changed pod is left
    alone, for more than a minute."""
    for name in ("web", "other"):
        await node.api.create_pod(pod(name))
    for name in ("web", "other"):
        await node.run_until(
            partial(node.running, name), within_s=limits.START_S, what=f"{name} runs"
        )
    await node.run_for(limits.NOTICE_S)
    rule = node.runtime.on("ContainerStatus", pod="other").hangs()
    await node.runtime.kill_container("main", pod="other")
    await node.run_for(limits.RELIST_S)
    # What is known of web is newer than its last sync, so one more sync may use it.
    await node.api.patch_pod("web", {"metadata": {"labels": {"number": "1"}}})
    await node.run_for(1.5)
    before = node.writes("web")
    change = {"spec": {"containers": [{"name": "main", "image": OTHER_IMAGE}]}}
    await node.api.patch_pod("web", await whole_spec(node, change))
    await node.run_for(65)  # also where the sync of the labels has waited for half a minute
    expect_equal(node, node.writes("web"), before, "changing calls while a status hangs")
    rule.release()
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.STOP_S + limits.NOTICE_S + limits.START_S,
        what="a start with the other image",
    )


async def whole_spec(node: Node, change: dict[str, Any]) -> dict[str, Any]:
    """The change as a merge patch, which replaces lists: with all other fields of the container."""
    listed = (node.api.pod("web") or {})["spec"]["containers"][0]
    return {"spec": {"containers": [{**listed, **change["spec"]["containers"][0]}]}}


@conformance(
    id="sandbox-death-noticed", rules=["PLEG-002.1", "PLEG-012.1"], needs=[STATUS, FAULTS, KILL]
)
async def the_death_of_a_sandbox_alone_is_noticed(node: Node) -> None:
    """A sandbox that stops while its containers are dead already is replaced after at most one
    relist and one sync."""
    work = in_turn(exits(1), exits(1, after_s=1), runs())
    await node.apply_static(pod("web", container("main", work)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2 and not node.running("web"),
        within_s=limits.START_S + 1 + limits.NOTICE_S,
        what="main has ended twice",
    )
    await node.run_for(limits.NOTICE_S)
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("RunPodSandbox") == 2, within_s=limits.NOTICE_S, what="a new sandbox"
    )


@conformance(id="vanished-container-replaced", rules=["PLEG-012.1", "PLEG-003"], needs=[STATUS])
async def a_running_container_that_is_gone_is_replaced(node: Node) -> None:
    """A running container that is removed behind the kubelet's back is replaced after at most one
    relist and one sync."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(1.3)
    container_id = node.calls("CreateContainer", pod="web")[0].response.container_id
    request = cri.RemoveContainerRequest(container_id=container_id)
    await node.runtime.direct.call("RemoveContainer", request)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.NOTICE_S,
        what="a second start",
    )


@conformance(id="status-error-forgotten", rules=["PLEG-006.2"], needs=[API, FAULTS, VIRTUAL])
async def an_error_does_not_outlive_what_caused_it(node: Node) -> None:
    """When the status of a pod could not be read, it is read again at the next relist, also if the
    list is by then as it was before: no sync fails after that."""
    await node.api.create_pod(pod("web"))
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.run_for(limits.NOTICE_S)
    sandbox = node.calls("RunPodSandbox", pod="web")[0]
    first = node.calls("CreateContainer", pod="web")[0].request
    config = cri.ContainerConfig()
    config.CopyFrom(first.config)
    config.metadata.name = config.labels["io.kubernetes.container.name"] = "stranger"
    config.log_path = "stranger/0.log"
    request = cri.CreateContainerRequest(
        pod_sandbox_id=sandbox.response.pod_sandbox_id,
        config=config,
        sandbox_config=first.sandbox_config,
    )
    with node.runtime.on("ContainerStatus").fails("UNKNOWN", "try later"):
        creation = await node.runtime.direct.call("CreateContainer", request)
        await node.run_for(2.5)
        removal = cri.RemoveContainerRequest(container_id=creation.container_id)
        await node.runtime.direct.call("RemoveContainer", removal)
        await node.run_for(0.2)
    before = node.event_count("FailedSync", pod="web")
    await node.run_for(limits.NOTICE_S)
    await node.run_for(100)
    expect_equal(node, node.event_count("FailedSync", pod="web"), before, "events FailedSync")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="removed-pod-starts-anew",
    rules=["PLEG-007", "GC-010.2", "GC-011"],
    needs=[STATUS, VIRTUAL],
    alone=True,
)
async def a_pod_that_was_collected_begins_anew(node: Node) -> None:
    """When a static pod was removed and collected, the same manifest begins with attempt 0 again:
    nothing of it is remembered."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: not node.machine.log_directories("web"),
        within_s=2 * limits.GC_PERIOD_S + limits.STOP_S + limits.NOTICE_S,
        what="no log directory of web",
    )
    await node.run_for(limits.NOTICE_S)
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    attempts = [c.attempt for c in node.calls("RunPodSandbox", pod="web")]
    expect_equal(node, attempts, [0, 0], "attempts of the sandboxes")
    attempts = [c.attempt for c in node.calls("CreateContainer", pod="web")]
    expect_equal(node, attempts, [0, 0], "attempts of the containers")


@conformance(
    id="pod-ip-of-the-new-sandbox", rules=["PLEG-010.1"], needs=[STATUS, FAULTS, KILL, VIRTUAL]
)
async def the_ip_is_that_of_the_newest_sandbox(node: Node) -> None:
    """After its sandbox was replaced a pod has the IP of the new one."""

    def address() -> str:
        return str(((node.pod("web") or {}).get("status") or {}).get("podIP", ""))

    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.NOTICE_S + limits.STOP_S,
        what="a second start",
    )
    await node.run_for(limits.NOTICE_S)
    newest = node.calls("RunPodSandbox", pod="web")[-1].response.pod_sandbox_id
    ips = {
        c.response.status.network.ip
        for c in node.calls("PodSandboxStatus", pod="web")
        if c.response and c.response.status.id == newest
    }
    expect_equal(node, {address()}, ips - {""}, "IP addresses of the pod and of its sandbox")
