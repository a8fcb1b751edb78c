"""Containers and pods that vanish: what the status shows then, and what it keeps."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from fakecri import stops
from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import MISSING_IMAGE, container, hook, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, FAULTS, RESTART = Feature.API, Feature.FAULTS, Feature.RESTART
STATUS = Feature.STATUS


def newest_id(node: Node, name: str) -> str:
    """The ID of the newest container of that name."""
    return str(node.calls("StartContainer", container=name)[-1].request.container_id)


async def remove(node: Node, container_id: str) -> None:
    """Remove a container behind the kubelet's back, running or not."""
    await node.runtime.direct.call(
        "RemoveContainer", cri.RemoveContainerRequest(container_id=container_id)
    )


@conformance(
    id="lost-container-restarts",
    rules=["LIFE-172", "BACK-020", "LIFE-172.1", "LIFE-114.2"],
    needs=[STATUS],
)
async def a_running_container_that_vanished_counts_as_a_restart(node: Node) -> None:
    """A container that was removed behind the kubelet's back is replaced in the same sandbox, and
    its end is shown as unknown."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await remove(node, newest_id(node, "main"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=2 * limits.NOTICE_S,
        what="a second start of main",
    )
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 1,
        within_s=limits.NOTICE_S,
        what="restart count 1",
    )
    last = node.container("web", "main").get("lastState", {}).get("terminated", {})
    fields = (last.get("exitCode"), last.get("reason"))
    expect_equal(node, fields, (137, "ContainerStatusUnknown"), "exit code, reason of the lost one")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")


@conformance(id="one-status-missing", rules=["PLEG-001"], needs=[STATUS, FAULTS])
async def containers_of_which_the_runtime_knows_no_more_hide_no_other(node: Node) -> None:
    """While the runtime lists containers that have ended, but says that there are none such, the
    others of their pod are seen as ever, and none that runs is made again."""
    gone = ("first", "done")
    three = (container("main"), container("done", exits(0, after_s=2)), container("last"))
    init = [container("first", exits(0))]
    await node.apply_static(pod("web", *three, init=init, restartPolicy="OnFailure"))
    await node.wait_running("web", "last")
    await node.run_for(2 + limits.NOTICE_S)
    for name in gone:
        node.runtime.on("ContainerStatus", container=name).fails("NOT_FOUND", "no such container")
    await node.runtime.kill_container("last", pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", container="last") == 2,
        within_s=limits.START_S,
        what="a second start of the last one",
    )
    await node.run_for(limits.NOTICE_S)
    made = {name: node.count("CreateContainer", container=name) for name in ("main", "last")}
    expect_equal(node, made, {"main": 1, "last": 2}, "containers made")


@conformance(id="lost-while-deleted", rules=["LIFE-172.2"], needs=[API])
async def a_container_that_vanishes_while_its_pod_ends_is_no_restart(node: Node) -> None:
    """A container that is removed behind the kubelet's back while its pod is being deleted is shown
    to have ended as unknown, and its restart count stays."""
    two = (container("main", ignores_term()), container("other", ignores_term()))
    plan = pod("web", *two, grace_s=30, metadata={"finalizers": ["example.com/look"]})
    await node.api.create_pod(plan)
    await api_running(node, "web")
    await node.api.delete_pod("web", grace_s=10)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web") == 2, within_s=limits.STOP_S, what="stops"
    )
    await remove(node, newest_id(node, "main"))
    await node.run_until(
        lambda: node.api.phase("web") == "Failed",
        within_s=10 + limits.STOP_S + limits.STATUS_PASS_S,
        what="Failed",
    )
    shown = node.api.container("web", "main")
    ended = shown.get("lastState", {}).get("terminated", {})
    fields = (ended.get("exitCode"), ended.get("reason"), shown["restartCount"])
    expect_equal(node, fields, (137, "ContainerStatusUnknown", 0), "exit, reason, restart count")
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


@conformance(id="exit-code-not-forgotten", rules=["LIFE-173", "STAT-029"], needs=[STATUS])
async def an_exit_outlives_its_container(node: Node) -> None:
    """When the dead container of a finished pod is removed, the status keeps the phase and the exit
    code."""
    job = pod("job", container("main", exits(3)), restartPolicy="Never")
    await node.apply_static(job)
    await node.run_until(lambda: node.phase("job") == "Failed", within_s=limits.START_S + 2)
    await node.run_until(lambda: node.count("StopPodSandbox", pod="job"), within_s=limits.STOP_S)
    await remove(node, newest_id(node, "main"))
    await node.run_for(2 * limits.NOTICE_S)
    ended: dict[str, Any] = node.container("job", "main")["state"].get("terminated", {})
    expect_equal(node, ended.get("exitCode"), 3, "exit code")
    expect_equal(node, node.phase("job"), "Failed", "phase")
    expect_equal(node, node.count("CreateContainer", pod="job"), 1, "containers made")


@conformance(id="deleted-before-start", rules=["STAT-010.1", "STAT-010.4", "LIFE-205"], needs=[API])
async def a_pod_deleted_before_it_ran_fails(node: Node) -> None:
    """A pod that is deleted before its container has ever started ends as Failed, with exit code
    137 and an unknown reason."""
    absent = container("main", image=MISSING_IMAGE, imagePullPolicy="Never")
    plan = pod("web", absent, metadata={"finalizers": ["example.com/look"]})
    await node.api.create_pod(plan)
    await node.run_until(
        lambda: node.events("ErrImageNeverPull", pod="web"), within_s=limits.START_S
    )
    await node.api.delete_pod("web", grace_s=2)
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=2 + limits.STOP_S, what="Failed"
    )
    ended = node.api.container("web", "main")["state"].get("terminated", {})
    fields = (ended.get("exitCode"), ended.get("reason"), ended.get("message"))
    text = "The container could not be located when the pod was terminated"
    expect_equal(node, fields, (137, "ContainerStatusUnknown", text), "exit code, reason, message")
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


@conformance(
    id="force-deleted",
    rules=["LIFE-201", "STAT-024.1", "STAT-022.4", "LIFE-201.1", "LIFE-201.3", "LIFE-034.4"],
    needs=[API],
)
async def a_pod_that_vanished_from_the_api_is_stopped_and_its_name_is_free(node: Node) -> None:
    """A force-deleted pod is stopped with the minimum grace period; a new pod of that name starts
    meanwhile, and is never given the status of the old one."""
    await node.api.create_pod(pod("web", container("main", runs(stops(0, after_s=4))), grace_s=7))
    await api_running(node, "web")
    old = (node.api.pod("web") or {})["metadata"]["uid"]
    old_id = str(node.api.container("web", "main")["containerID"])
    await node.api.delete_pod("web", grace_s=0)
    await node.api.create_pod(pod("web", container("main"), grace_s=7))
    await node.run_until(
        lambda: (
            node.count("RunPodSandbox", pod="web") == 2 and node.count("StopContainer", pod="web")
        ),
        within_s=limits.START_S,
        what="a sandbox for the new pod, and the old one being stopped",
    )
    stop = node.calls("StopContainer", pod="web")[0]
    expect_equal(node, (stop.uid, stop.request.timeout), (old, 2), "UID, timeout of the stop")
    began = node.times_s("RunPodSandbox", pod="web")[1]
    ended = node.ended_s(stop)
    expect(node, ended < 0 or began < ended, "the new pod does not wait for the old", began)
    await api_running(node, "web")
    await node.run_for(4 + limits.STOP_S)
    expect_equal(node, node.api.phase("web"), "Running", "phase of the new pod")
    new = (node.api.pod("web") or {})["metadata"]["uid"]
    patches = node.api.requests("PATCH", "/pods/web/status")
    uids = {r.body["metadata"]["uid"] for r in patches if r.status < 300}
    expect_equal(node, uids, {old, new}, "UIDs in the patches of statuses that were accepted")
    mixed = [r.body for r in patches if r.body["metadata"]["uid"] == new and old_id in str(r.body)]
    expect_equal(node, mixed, [], "patches of the new pod with the container of the old one")


@conformance(id="old-status", rules=["STAT-024.1", "LIFE-189.2"], needs=[API], alone=True)
async def a_late_status_is_not_written_to_a_new_pod_of_that_name(node: Node) -> None:
    """When a kubelet that is about to write a status finds another pod of that name at the API
    server, that pod is not given the status."""
    ends = container("main", in_turn(exits(1, after_s=3), runs()))
    await node.api.create_pod(pod("web", ends))
    await api_running(node, "web")
    old_id = str(node.api.container("web", "main")["containerID"])
    with node.api.slow("GET", "/pods/web$", 3):
        await node.run_until(
            lambda: node.count("StartContainer", pod="web") == 2,
            within_s=3 + limits.START_S,
            what="a second start, of which the status tells",
        )
        await node.api.delete_pod("web", grace_s=0)
        await node.api.create_pod(pod("web"))
        await node.run_for(3 + limits.NOTICE_S)
    await api_running(node, "web")
    new = (node.api.pod("web") or {})["metadata"]["uid"]
    patches = node.api.requests("PATCH", "/pods/web/status")
    mixed = [r.body for r in patches if r.body["metadata"]["uid"] == new and old_id in str(r.body)]
    expect_equal(node, mixed, [], "patches of the new pod with the container of the old one")


@conformance(
    id="vanished",
    rules=["LIFE-201", "LIFE-001", "LIFE-002.5", "LIFE-013.3", "LIFE-002.1"],
    needs=[API],
    alone=True,
)
async def a_pod_that_is_missed_in_a_list_is_stopped_with_its_own_grace(node: Node) -> None:
    """A pod that vanishes from the API without having been marked as deleted is stopped with the
    grace period of its spec."""
    await node.api.create_pod(pod("web", container("main", runs(stops(0, after_s=1))), grace_s=7))
    await node.api.create_pod(pod("stays"))
    await api_running(node, "web")
    await api_running(node, "stays")
    node.api.vanish_pod("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=60 + 1 + limits.STOP_S,
        what="StopPodSandbox",
    )
    timeouts = [c.request.timeout for c in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [7], "timeouts of StopContainer")
    expect_equal(node, node.count("StopContainer", pod="stays"), 0, "stops of the other pod")


@conformance(
    id="vanished-while-stopping",
    rules=["LIFE-201", "LIFE-033", "LIFE-201.1"],
    needs=[API],
    alone=True,
)
async def a_pod_that_vanishes_while_it_stops_keeps_its_deletion_grace(node: Node) -> None:
    """A pod that vanishes from the API while it is being stopped keeps the grace period of its
    deletion."""
    await node.api.create_pod(pod("web", container("main", runs(stops(0, after_s=6))), grace_s=20))
    await api_running(node, "web")
    await node.api.delete_pod("web", grace_s=11)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=limits.STOP_S, what="StopContainer"
    )
    node.api.vanish_pod("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=6 + limits.STOP_S,
        what="StopPodSandbox",
    )
    timeouts = [c.request.timeout for c in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [11], "timeouts of StopContainer")


def requests_for(node: Node, name: str) -> dict[str, int]:
    """How often the kubelet asked for the pod, and wrote its status."""
    paths = {"GET": f"/pods/{name}$", "PATCH": f"/pods/{name}/status$"}
    return {m: len(node.api.requests(m, path, of_users=False)) for m, path in paths.items()}


@conformance(
    id="gone-while-down",
    rules=["LIFE-203", "LIFE-072", "LIFE-203.1", "LIFE-072.2", "LIFE-072.3"],
    needs=[API, RESTART],
)
async def a_pod_that_vanished_while_the_kubelet_was_down_is_killed(node: Node) -> None:
    """A restarted kubelet stops the containers of a pod that has vanished from the API with 2 s,
    and without the preStop hook. It has no status to write of that pod, and asks for none."""
    hooks = {"preStop": hook(takes_s=1)}
    await node.api.create_pod(pod("web", container("main", hooks=hooks), grace_s=9))
    await api_running(node, "web")
    await node.kubelet.stop()
    await node.api.delete_pod("web", grace_s=0)
    before = requests_for(node, "web")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.START_S + limits.STOP_S,
        what="StopPodSandbox",
    )
    await node.run_for(limits.STATUS_PASS_S + 1)
    expect_equal(node, requests_for(node, "web"), before, "requests for the pod")
    timeouts = [c.request.timeout for c in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [2], "timeouts of StopContainer")
    expect_equal(node, node.count("ExecSync", pod="web"), 0, "hooks run")


@conformance(
    id="status-write-retried", rules=["STAT-023.2", "STAT-023.3", "STAT-021.1"], needs=[API]
)
async def a_status_that_was_not_written_is_written_later(node: Node) -> None:
    """While the API server refuses statuses pods keep running; afterwards it gets the newest status
    within 10 s."""
    with node.api.fails("PATCH", "/pods/web/status"):
        await node.api.create_pod(
            pod("web", container("main", in_turn(exits(4, after_s=2), runs())))
        )
        await node.run_until(
            lambda: node.count("StartContainer", container="main") == 2,
            within_s=2 + limits.START_S + limits.NOTICE_S,
            what="a second start",
        )
        await node.run_for(limits.NOTICE_S)
        expect_equal(node, node.api.phase("web"), "Pending", "phase while it cannot be written")
    await node.run_until(
        lambda: node.api.container("web", "main").get("restartCount", 0) >= 1,
        within_s=limits.STATUS_PASS_S + limits.NOTICE_S,
        what="the newest status",
    )
    last = node.api.container("web", "main")["lastState"]["terminated"]
    expect_equal(node, last["exitCode"], 4, "exit code of the run whose status was not written")


@conformance(
    id="status-changed-meanwhile",
    rules=["STAT-020.1", "STAT-023.4", "STAT-001.2", "LIFE-189.4"],
    needs=[API],
    alone=True,
)
async def what_changes_while_a_status_is_written_is_written_next(node: Node) -> None:
    """A status that changes while the one before is being written is not lost: it is written as
    soon as that is done."""
    slow_s = 3
    with node.api.slow("PATCH", "/pods/web/status", slow_s):
        await node.api.create_pod(
            pod("web", container("main", in_turn(exits(4, after_s=1), runs())))
        )
        await node.run_until(
            lambda: node.count("StartContainer", pod="web") == 2,
            within_s=1 + limits.START_S,
            what="a restart of main",
        )
        await node.run_until(
            lambda: node.api.container("web", "main").get("restartCount") == 1,
            within_s=2 * slow_s,
            what="the restart at the API",
        )
    ended = node.api.container("web", "main")["lastState"]["terminated"]
    expect_equal(node, ended["exitCode"], 4, "exit code of the first run")


@conformance(
    id="termination-messages-share",
    rules=["STAT-006.2", "STAT-006.4", "LIFE-145", "LIFE-145.6"],
    needs=[API],
)
async def termination_messages_share_their_room(node: Node) -> None:
    """Termination messages share 12 KiB: of four containers with 4000 bytes each, one of them an
    init container, 3072 bytes are kept of each."""
    first, *loud = (container(f"c{i}", exits(0, message=f"{i}" * 4000)) for i in (0, 3, 2, 1))
    await node.api.create_pod(pod("job", *loud, init=[first], restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded", within_s=limits.START_S + limits.STOP_S
    )
    for i in range(4):
        ended = node.api.container("job", f"c{i}")["state"]["terminated"]
        expect_equal(node, len(ended["message"]), 3072, f"length of the message of c{i}")
    names = [c["name"] for c in (node.api.pod("job") or {})["status"]["containerStatuses"]]
    expect_equal(node, names, sorted(names), "order of the statuses")
