"""Mirror pods: the picture of static pods at the API, which shows their state and controls
nothing."""

from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, runs
from kubelet_conformance.registry import Feature, conformance

API, RESTART, VIRTUAL = Feature.API, Feature.RESTART, Feature.VIRTUAL_TIME
MIRROR = "kubernetes.io/config.mirror"


async def mirror_running(node: Node, name: str) -> str:
    """Run until the mirror pod shows Running, and return its UID."""
    await node.run_until(
        lambda: node.api.phase(name) == "Running",
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what=f"the mirror of {name} shows Running",
    )
    return mirror_uid(node, name)


def mirror_uid(node: Node, name: str) -> str:
    """The UID of the mirror pod; "" when there is none."""
    return str(((node.api.pod(name) or {}).get("metadata") or {}).get("uid", ""))


def deletions(node: Node, name: str) -> list[Any]:
    """The kubelet's requests that deleted the pod of that name in the API."""
    requests = node.api.requests("DELETE", f"/pods/{node.runtime.pod_name(name)}$")
    return [r for r in requests if r.status < 300]


def expect_deleted_as_orphan(node: Node, name: str) -> None:
    """Fail unless the mirror was deleted with grace 0 and whatever its UID is."""
    body = deletions(node, name)[-1].body
    fields = (body.get("gracePeriodSeconds"), (body.get("preconditions") or {}).get("uid"))
    expect_equal(node, fields, (0, None), "grace period and UID in the DELETE")


@conformance(
    id="mirror-created",
    rules=["MIRR-021.1", "MIRR-022.1", "MIRR-022.2", "MIRR-022.3", "MIRR-022.4", "MIRR-022.5"],
    needs=[API],
    alone=True,
)
async def a_static_pod_has_a_mirror(node: Node) -> None:
    """The mirror pod has the static pod's annotations for hash, source and mirror, a UID of its
    own, and the Node as its only owner, whatever the manifest says."""
    other = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u-1"}
    marks = {"annotations": {"example.com/mine": "kept"}, "ownerReferences": [other]}
    await node.apply_static(pod("web", metadata=marks))
    await mirror_running(node, "web")
    metadata = (node.api.pod("web") or {})["metadata"]
    static_uid = node.calls("RunPodSandbox", pod="web")[0].uid
    notes = metadata["annotations"]
    expect_equal(node, notes.get("kubernetes.io/config.hash"), static_uid, "config.hash")
    expect_equal(node, notes.get(MIRROR), static_uid, "config.mirror")
    expect_equal(node, notes.get("kubernetes.io/config.source"), "file", "config.source")
    expect(node, metadata["uid"] != static_uid, "a UID of its own", metadata["uid"])
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": node.name,
        "uid": node.api.node_uid(),
        "controller": True,
    }
    expect_equal(node, metadata["ownerReferences"], [owner], "ownerReferences")
    expect_equal(node, notes.get("example.com/mine"), "kept", "the manifest's own annotation")


@conformance(
    id="mirror-status", rules=["STAT-022.2", "MIRR-037.1", "MIRR-037.2", "LIFE-189.1"], needs=[API]
)
async def the_mirror_shows_the_status_of_the_static_pod(node: Node) -> None:
    """The mirror pod shows container states, readiness and IP of the static pod, and no generation
    that was observed: a static pod has none."""
    await node.apply_static(pod("web"))
    await mirror_running(node, "web")
    row = node.api.container("web", "main")
    expect(node, row["ready"] and "running" in row["state"], "main is ready", row)
    mirror = node.api.pod("web") or {}
    expect(node, mirror["status"].get("podIP"), "podIP")
    expect_equal(node, mirror["metadata"].get("generation"), 1, "generation")
    observed = mirror["status"].get("observedGeneration")
    expect_equal(node, observed, None, "observedGeneration")


@conformance(id="mirror-late", rules=["STAT-025.1", "STAT-025.2", "MIRR-026.3"], needs=[API])
async def the_status_waits_for_the_mirror(node: Node) -> None:
    """While there is no mirror pod no status is sent; when it is created, the status follows within
    one pass."""
    with node.api.fails("POST", "/pods$"):
        await node.apply_static(pod("web", container("main"), container("other", exits(1))))
        await node.wait_running("web")
        await node.run_for(limits.STATUS_PASS_S + 1)
        expect_equal(node, node.api.pod("web"), None, "mirror")
        for method in ("GET", "PATCH"):
            sent_requests = node.api.requests(method, f"/pods/web-{node.name}")
            expect_equal(
                node, [r.path for r in sent_requests], [], f"{method} of a pod that is not there"
            )
    await node.run_until(
        lambda: node.api.pod("web"), within_s=limits.restart_after(20).high_s, what="a mirror"
    )
    await node.run_until(
        lambda: node.api.phase("web") == "Running",
        within_s=limits.STATUS_PASS_S + 1,
        what="the mirror shows Running",
    )


@conformance(
    id="mirror-deleted",
    rules=[
        "MIRR-029.1",
        "MIRR-029.2",
        "MIRR-029.3",
        "MIRR-025.1",
        "STAT-001.3",
        "LIFE-200.5",
        "LIFE-013.2",
    ],
    needs=[API],
)
async def a_deleted_mirror_is_made_again(node: Node) -> None:
    """A mirror pod that is deleted with a grace period is created again under a new UID, and the
    containers are not touched."""
    await node.apply_static(pod("web"))
    uid = await mirror_running(node, "web")
    before = node.writes("web")
    await node.api.delete_pod("web", grace_s=5)
    await node.run_until(
        lambda: mirror_uid(node, "web") not in ("", uid),
        within_s=limits.START_S,
        what="another mirror",
    )
    await mirror_running(node, "web")
    expect_equal(node, node.writes("web"), before, "changing calls")


@conformance(
    id="mirror-force-deleted",
    rules=["MIRR-030.1", "MIRR-030.2", "LIFE-010.2"],
    needs=[API, VIRTUAL],
)
async def a_force_deleted_mirror_comes_back(node: Node) -> None:
    """A mirror pod that is deleted with grace 0 is created again within two minutes, and the
    containers keep running."""
    await node.apply_static(pod("web"))
    uid = await mirror_running(node, "web")
    await node.api.delete_pod("web", grace_s=0)
    await node.run_until(
        lambda: mirror_uid(node, "web") not in ("", uid), within_s=120, what="another mirror"
    )
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="mirror-removed",
    rules=["MIRR-031.1", "MIRR-031.2", "MIRR-031.3", "MIRR-031.4", "STAT-010.5"],
    needs=[API],
)
async def the_mirror_goes_after_the_containers(node: Node) -> None:
    """After its manifest has been removed, the mirror pod stays until the containers have
    stopped."""
    await node.apply_static(pod("web", container("main", runs(stops(0, after_s=3))), grace_s=8))
    uid = await mirror_running(node, "web")
    await node.remove_static("web")
    await node.run_for(2)
    expect_equal(node, mirror_uid(node, "web"), uid, "the mirror's UID during the grace")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=3 + limits.STOP_S + limits.HOUSEKEEPING_S,
        what="the mirror goes",
    )
    stop = node.calls("StopContainer", pod="web")[0]
    expect(node, stop.ended_s is not None, "the container has stopped")
    expect_equal(node, stop.request.timeout, 8, "timeout of StopContainer")
    expect_deleted_as_orphan(node, "web")
    phases = [r.body["status"].get("phase") for r in node.api.requests("PATCH", "/pods/web-")]
    expect(node, "Failed" not in phases, "no phase Failed for a removed static pod", phases)


@conformance(id="mirror-removed-beside", rules=["MIRR-031.3", "MIRR-031.4"], needs=[API])
async def a_pod_that_ends_slowly_holds_up_no_other_mirror(node: Node) -> None:
    """Of two static pods that are removed together the mirror of the one that ends at once goes,
    while that of the other stays as long as its container takes to stop."""
    await node.apply_static(pod("slow", container("main", ignores_term()), grace_s=30))
    await mirror_running(node, "slow")
    await node.apply_static(pod("web"))
    await mirror_running(node, "web")
    await node.remove_static("slow")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=limits.STOP_S + 2 * limits.HOUSEKEEPING_S,
        what="the mirror of web goes",
    )
    expect(node, node.api.pod("slow") is not None, "the mirror of slow is there")


@conformance(
    id="mirror-orphan",
    rules=["MIRR-033.1", "MIRR-033.2", "MIRR-020.1", "MIRR-020.2", "MIRR-031.2"],
    needs=[API],
)
async def a_mirror_without_static_pod_is_deleted(node: Node) -> None:
    """A pod with the annotation of mirror pods, whatever its value, that belongs to no static pod
    is not run, and is deleted."""
    ghosts = {"ghost": "abc", "blank": ""}
    for name, value in ghosts.items():
        await node.api.create_pod(pod(name, metadata={"annotations": {MIRROR: value}}))
    await node.run_until(
        lambda: all(node.api.pod(name) is None and deletions(node, name) for name in ghosts),
        within_s=limits.START_S + 2 * limits.HOUSEKEEPING_S,
        what="both are deleted, and the requests are answered",
    )
    for name in ghosts:
        expect_deleted_as_orphan(node, name)
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")


@conformance(id="mirror-commands-nothing", rules=["MIRR-027.1", "MIRR-027.2"], needs=[API])
async def changes_of_the_mirror_do_not_touch_the_pod(node: Node) -> None:
    """A label or a deadline that is set on the mirror pod has no effect on the static pod, and is
    not reverted."""
    await node.apply_static(pod("web"))
    uid = await mirror_running(node, "web")
    before = node.writes("web")
    patch = {"metadata": {"labels": {"x": "y"}}, "spec": {"activeDeadlineSeconds": 1}}
    await node.api.patch_pod("web", patch)
    await node.run_for(4)
    expect_equal(node, node.writes("web"), before, "changing calls")
    mirror = node.api.pod("web") or {}
    expect_equal(node, mirror["metadata"]["uid"], uid, "UID")
    expect_equal(node, mirror["metadata"].get("labels"), {"x": "y"}, "labels")


@conformance(
    id="mirror-status-corrected",
    rules=["STAT-020.2", "STAT-021.3", "MIRR-027.3", "SRC-062.1"],
    needs=[API],
)
async def a_wrong_status_at_the_api_is_corrected(node: Node) -> None:
    """A status of the mirror pod that another client has written is corrected within 10 s."""
    await node.apply_static(pod("web"))
    await mirror_running(node, "web")
    await node.api.patch_pod("web", {"status": {"phase": "Failed", "message": "lie"}}, status=True)
    await node.run_until(
        lambda: node.api.phase("web") == "Running",
        within_s=limits.STATUS_PASS_S + 2,
        what="phase Running again",
    )


@conformance(
    id="mirror-restart", rules=["MIRR-008.1", "MIRR-008.2", "MIRR-008.3"], needs=[API, RESTART]
)
async def the_mirror_survives_a_kubelet_restart(node: Node) -> None:
    """After a restart of the kubelet the mirror pod is the same one, and still Running."""
    await node.apply_static(pod("web"))
    uid = await mirror_running(node, "web")
    await node.kubelet.restart()
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    expect_equal(node, mirror_uid(node, "web"), uid, "UID of the mirror")
    expect_equal(node, node.api.phase("web"), "Running", "phase")
    expect_equal(node, node.count("CreateContainer"), 1, "creations")


@conformance(
    id="mirror-edit",
    rules=[
        "MIRR-032.1",
        "MIRR-032.2",
        "MIRR-025.2",
        "MIRR-025.3",
        "MIRR-025.4",
        "MIRR-025.5",
        "SRC-031.2",
    ],
    needs=[API],
)
async def an_edit_replaces_the_mirror_when_the_new_pod_starts(node: Node) -> None:
    """While the old version of an edited static pod stops, its mirror pod stays; the new version
    gets a new one in its first sync, before its containers, made right after the old one was
    deleted by its UID."""
    slow = container("main", runs(stops(0, after_s=2)))
    await node.apply_static(pod("web", slow, grace_s=6))
    uid = await mirror_running(node, "web")
    await node.apply_static(pod("web", slow, grace_s=6, metadata={"labels": {"v": "2"}}))
    await node.run_for(1)
    expect_equal(node, mirror_uid(node, "web"), uid, "UID of the mirror while the old pod stops")
    await node.run_until(
        lambda: mirror_uid(node, "web") not in ("", uid),
        within_s=2 + limits.STOP_S + limits.STATIC_SUCCESSOR_S,
        what="another mirror",
    )
    labels = (node.api.pod("web") or {})["metadata"].get("labels")
    expect_equal(node, labels, {"v": "2"}, "labels of the new mirror")
    (deleted,) = deletions(node, "web")
    fields = (deleted.body.get("gracePeriodSeconds"), deleted.body["preconditions"].get("uid"))
    expect_equal(node, fields, (0, uid), "grace period and UID in the DELETE")
    creation = [r for r in node.api.requests("POST", "/pods$") if r.status < 300][-1]
    gap_s = creation.started_s - deleted.ended_s
    expect(node, 0 <= gap_s <= 0.5 + node.slack_s, "the POST right after the DELETE", f"{gap_s} s")
    await node.wait_running("web")
    created = node.calls("CreateContainer", pod="web")[1]
    expect(node, creation.ended_s <= created.started_s, "the mirror before the new container")


@conformance(
    id="mirror-before-containers",
    rules=["MIRR-021.3", "LIFE-070.7"],
    needs=[API, Feature.FAULTS],
    alone=True,
)
async def the_mirror_is_made_before_the_containers(node: Node) -> None:
    """A static pod whose sandbox cannot be made has its mirror all the same."""
    await node.run_until(node.api.node_uid, within_s=limits.START_S, what="a Node object")
    await node.run_for(limits.NOTICE_S)
    with node.runtime.on("RunPodSandbox").fails("UNKNOWN", "no sandbox today"):
        await node.apply_static(pod("web"))
        await node.run_until(
            lambda: node.api.phase("web") == "Pending",
            within_s=limits.START_S + limits.STATUS_PASS_S,
            what="the mirror shows Pending",
        )


@conformance(
    id="mirror-after-the-network",
    rules=["MIRR-021.2", "LIFE-070.4"],
    needs=[API, Feature.FAULTS],
    alone=True,
)
async def the_mirror_waits_for_the_network(node: Node) -> None:
    """While the runtime's network is not ready a static pod outside the host network gets no
    mirror, and one in it does; when the network is ready the first one gets its mirror, too."""
    await node.run_until(node.api.node_uid, within_s=limits.START_S, what="a Node object")

    def broken(answer: Any) -> None:
        for condition in answer.status.conditions:
            condition.status = condition.type != "NetworkReady"

    with node.runtime.on("Status").changes_answer(broken):
        await node.run_for(5 + limits.NOTICE_S)  # the runtime is asked every 5 s
        await node.apply_static(pod("web"))
        await node.apply_static(pod("host", hostNetwork=True))
        await node.run_until(
            lambda: node.api.pod("host"), within_s=limits.NOTICE_S, what="the mirror of host"
        )
        await node.run_for(limits.NOTICE_S)
        expect_equal(node, node.api.pod("web"), None, "the mirror of web")
    await node.run_until(
        lambda: node.api.pod("web"), within_s=5 + limits.NOTICE_S, what="the mirror of web"
    )


@conformance(id="mirror-delete-refused", rules=["MIRR-026.2"], needs=[API, VIRTUAL])
async def a_mirror_that_could_not_be_deleted_is_replaced_later(node: Node) -> None:
    """While the API server refuses to delete the mirror of the former version, the new version
    runs; the mirror is replaced by a later sync."""
    await node.apply_static(pod("web", metadata={"labels": {"v": "1"}}))
    uid = await mirror_running(node, "web")
    with node.api.fails("DELETE", "/pods/web-"):
        await node.apply_static(pod("web", metadata={"labels": {"v": "2"}}))
        await node.run_until(
            lambda: node.count("StartContainer", pod="web") == 2,
            within_s=limits.STOP_S + limits.STATIC_SUCCESSOR_S,
            what="the new version starts",
        )
        await node.run_for(limits.NOTICE_S)
        expect_equal(node, mirror_uid(node, "web"), uid, "the mirror's UID")
    await node.run_until(
        lambda: mirror_uid(node, "web") not in ("", uid), within_s=120, what="another mirror"
    )


@conformance(
    id="mirror-fields-corrected", rules=["STAT-021.3", "MIRR-027.3", "SRC-062.1"], needs=[API]
)
async def every_field_of_a_mirrors_status_is_corrected(node: Node) -> None:
    """Whatever another client writes into the status of a mirror pod, its addresses, containers or
    conditions, and however often, the next pass puts back what was there."""
    await node.apply_static(pod("web"))
    await mirror_running(node, "web")
    await node.run_for(limits.STATUS_PASS_S)
    right = dict((node.api.pod("web") or {})["status"])
    lies: list[dict[str, Any]] = [
        {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]},
        {"containerStatuses": [{**right["containerStatuses"][0], "restartCount": 7}]},
        {"conditions": [{"type": "Ready", "status": "False", "reason": "Lie"}]},
        {"phase": "Succeeded"},
    ]
    for lie in lies:
        await node.api.patch_pod("web", {"status": lie}, status=True)
        await node.run_until(
            lambda: without_times((node.api.pod("web") or {})["status"]) == without_times(right),
            within_s=limits.STATUS_PASS_S + 2,
            what=f"the status as it was before {sorted(lie)}",
        )


def without_times(status: dict[str, Any]) -> dict[str, Any]:
    """The status without the times of its conditions, which begin anew when one was overwritten."""
    words = [
        {k: v for k, v in condition.items() if not k.endswith("Time")}
        for condition in status["conditions"]
    ]
    return {**status, "conditions": sorted(words, key=lambda c: str(c["type"]))}


@conformance(
    id="mirror-of-the-finished",
    rules=["MIRR-030.3", "MIRR-008.1", "STAT-008", "MIRR-031.4"],
    needs=[API, RESTART],
)
async def the_mirror_of_a_finished_pod_stays_as_it_is(node: Node) -> None:
    """A static pod that has finished keeps its mirror and shows how it ended: none is made again,
    nothing is started, also after a restart of the kubelet; with its manifest it goes."""
    short_lived = container("main", exits(0, after_s=1, message="done"))
    await node.apply_static(pod("web", short_lived, restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("web") == "Succeeded",
        within_s=1 + limits.START_S + limits.STATUS_PASS_S + limits.NOTICE_S,
        what="the mirror shows Succeeded",
    )
    await node.run_for(limits.STATUS_PASS_S)
    uid, before = mirror_uid(node, "web"), dict((node.api.pod("web") or {})["status"])
    posts = len(node.api.requests("POST", "/pods$"))
    await node.run_for(2 * limits.STATUS_PASS_S)
    await node.kubelet.restart()
    await node.run_for(2 * limits.STATUS_PASS_S + 5)
    expect_equal(node, mirror_uid(node, "web"), uid, "UID of the mirror")
    after = dict((node.api.pod("web") or {})["status"])
    for field in ("phase", "containerStatuses"):
        expect_equal(node, after[field], before[field], f"{field} after the restart")
    new_mirrors = [r for r in node.api.requests("POST", "/pods$")[posts:] if r.status == 201]
    expect_equal(node, new_mirrors, [], "mirrors made")
    expect_equal(node, node.count("StartContainer"), 1, "starts")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=limits.STOP_S + 2 * limits.HOUSEKEEPING_S + limits.STATUS_PASS_S,
        what="the mirror is gone",
    )
