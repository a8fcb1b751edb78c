"""Mirror pods again: of manifests that changed while no kubelet ran, of finished pods, and of what
somebody else has deleted meanwhile; and what a mirror's UID is good for."""

from kubelet_conformance.cases.static.mirror import deletions, mirror_running, mirror_uid
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART


@conformance(
    id="mirror-removed-while-down", rules=["MIRR-009.3", "MIRR-031.1"], needs=[API, RESTART]
)
async def the_mirror_of_a_manifest_that_went_while_the_kubelet_was_down(node: Node) -> None:
    """The mirror of a pod whose manifest was removed while no kubelet ran is deleted when its
    containers have stopped; that of the other pod stays the same."""
    await node.apply_static(pod("web"))
    await node.apply_static(pod("stays"))
    await mirror_running(node, "web")
    uid = await mirror_running(node, "stays")
    await node.kubelet.stop()
    await node.remove_static("web")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=limits.SETTLE_S + limits.START_S + 2 * limits.HOUSEKEEPING_S + limits.STOP_S,
        what="the mirror of web is gone",
    )
    stopped = node.calls("StopContainer", pod="web")
    expect_equal(node, len(stopped), 1, "stops of web")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, mirror_uid(node, "stays"), uid, "UID of the other mirror")
    expect_equal(node, node.count("StopContainer", pod="stays"), 0, "stops of the other pod")


@conformance(
    id="mirror-uid-nowhere",
    rules=["MIRR-001", "MIRR-020.3"],
    needs=[API, Feature.OUTSIDE_KILL],
    alone=True,
)
async def the_runtime_never_hears_of_a_mirrors_uid(node: Node) -> None:
    """When the mirror is known and a container of its static pod starts again, the runtime is told
    the UID of the static pod, in metadata, labels and the directory of logs; the kubelet lists one
    pod, with that UID."""
    await node.apply_static(pod("web"))
    uid = await mirror_running(node, "web")
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.START_S,
        what="main starts again",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    (sandbox,) = node.calls("RunPodSandbox", pod="web")
    static_uid = sandbox.request.config.metadata.uid
    expect(node, static_uid != uid, "two UIDs", uid)
    second = node.calls("CreateContainer", pod="web")[1].request
    of_the_sandbox = second.sandbox_config
    expect_equal(node, of_the_sandbox.metadata.uid, static_uid, "UID of the sandbox")
    label = second.config.labels.get("io.kubernetes.pod.uid")
    expect_equal(node, label, static_uid, "UID in the labels of the container")
    expect(
        node, static_uid in of_the_sandbox.log_directory, "the UID", of_the_sandbox.log_directory
    )
    answer = await node.kubelet.get("/pods")
    listed = [
        item["metadata"]["uid"]
        for item in answer.json()["items"]
        if item["metadata"]["name"] == node.runtime.pod_name("web")
    ]
    expect_equal(node, listed, [static_uid], "UIDs of the pods of that name in /pods")


@conformance(id="mirror-gone-already", rules=["MIRR-026.1"], needs=[API], alone=True)
async def a_mirror_that_is_not_deleted_is_not_made_anew(node: Node) -> None:
    """When the API server answers that the outdated mirror is not there, or is another one, the
    kubelet has deleted nothing, and posts no new one in that sync; the new version runs, and gets
    its mirror with a later sync."""
    await node.apply_static(pod("web", metadata={"labels": {"v": "1"}}))
    uid = await mirror_running(node, "web")
    for version, status in (("2", 404), ("3", 409)):
        posts = len(node.api.requests("POST", "/pods$"))
        with node.api.fails("DELETE", "/pods/web-", status=status):
            await node.apply_static(pod("web", metadata={"labels": {"v": version}}))
            await node.run_until(
                lambda version=version: node.count("StartContainer", pod="web") == int(version),  # type: ignore[misc]
                within_s=limits.STOP_S + limits.STATIC_SUCCESSOR_S,
                what=f"version {version} starts",
            )
            await node.run_for(limits.NOTICE_S)
            expect(node, node.api.requests("DELETE", "/pods/web-"), "a DELETE that was refused")
            more = len(node.api.requests("POST", "/pods$")) - posts
            expect_equal(node, more, 0, f"mirrors posted after a DELETE with {status}")
            expect_equal(node, mirror_uid(node, "web"), uid, "UID of the mirror")
    expect_equal(node, deletions(node, "web"), [], "deletions so far")
    await node.run_until(
        lambda: mirror_uid(node, "web") not in ("", uid), within_s=120, what="another mirror"
    )


@conformance(id="static-finished-edited", rules=["MIRR-007.2", "MIRR-032.2"], needs=[API])
async def an_edit_of_a_finished_pod_runs_from_scratch(node: Node) -> None:
    """A static pod that has finished runs again when its manifest is edited, as another pod: from
    attempt 0, with a mirror of its own that says how the new one ended."""
    first, second = (
        pod("job", container("main", exits(0, message=text)), restartPolicy="Never")
        for text in ("one", "two")
    )
    await node.apply_static(first)
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded",
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="the mirror shows Succeeded",
    )
    uid = mirror_uid(node, "job")
    await node.apply_static(second)
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded" and mirror_uid(node, "job") != uid,
        within_s=limits.STOP_S + limits.STATIC_SUCCESSOR_S + limits.STATUS_PASS_S,
        what="another mirror shows Succeeded",
    )
    calls = node.calls("CreateContainer", pod="job")
    expect_equal(node, [c.attempt for c in calls], [0, 0], "attempts")
    expect(node, calls[0].uid != calls[1].uid, "another UID", calls[1].uid)
    ended = node.api.container("job", "main")["state"]["terminated"]
    expect_equal(node, ended.get("message"), "two", "termination message in the new mirror")
