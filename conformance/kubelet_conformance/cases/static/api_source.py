"""Pods of the API server as a source: which are this node's, and what a change of one does."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, KILL = Feature.API, Feature.OUTSIDE_KILL
SOURCE, SEEN = "kubernetes.io/config.source", "kubernetes.io/config.seen"


@conformance(id="other-nodes-pods", rules=["SRC-050.2"], needs=[API])
async def pods_of_other_nodes_are_not_run(node: Node) -> None:
    """Of the pods at the API server only those that are bound to this node are run; the status of
    the others is not touched."""
    bindings: dict[str, dict[str, Any]] = {"far": {"nodeName": "elsewhere"}, "unbound": {}}
    for name, fields in bindings.items():
        plan = pod(name, **fields)
        await node.api.create_object("pods", plan.manifest)
    await node.api.run_pods(pod("web"))
    await node.run_for(limits.STATUS_PASS_S)
    names = {c.request.config.metadata.name for c in node.calls("RunPodSandbox")}
    expect_equal(node, names, {"web"}, "pods with a sandbox")
    with_patches = {r.path.split("/")[-2] for r in node.api.requests("PATCH", "/pods/.*/status$")}
    expect_equal(node, with_patches, {"web"}, "pods whose status was written")


@conformance(
    id="api-pod-metadata",
    rules=["SRC-034.4", "SRC-061.3", "SRC-061.4", "SRC-065.1", "SRC-065.2", "SRC-068"],
    needs=[API, KILL],
)
async def a_new_sandbox_has_the_newest_labels_and_annotations(node: Node) -> None:
    """A label or an annotation that was changed stops nothing; a sandbox that is made later has it,
    with the source of the pod and the time when the pod was first seen."""
    await node.api.run_pods(
        pod("labelled", metadata={"labels": {"v": "1"}}),
        pod("noted", metadata={"annotations": {"v": "1"}}),
    )
    await node.api.patch_pod("labelled", {"metadata": {"labels": {"v": "2"}}})
    await node.api.patch_pod("noted", {"metadata": {"annotations": {"v": "2"}}})
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    for name in ("labelled", "noted"):
        await node.runtime.stop_sandbox(name)
        await node.run_until(
            lambda name=name: node.count("RunPodSandbox", pod=name) == 2,  # type: ignore[misc]
            within_s=limits.STOP_S + limits.NOTICE_S,
            what=f"a second sandbox of {name}",
        )
        first, second = (c.request.config for c in node.calls("RunPodSandbox", pod=name)[:2])
        marks = second.annotations if name == "noted" else second.labels
        expect_equal(node, marks.get("v"), "2", f"the mark of {name} at its second sandbox")
        expect_equal(node, second.annotations.get(SOURCE), "api", f"source of {name}")
        expect(node, first.annotations.get(SEEN), "config.seen", dict(first.annotations))
        seen_mark = second.annotations.get(SEEN)
        expect_equal(node, seen_mark, first.annotations.get(SEEN), f"config.seen of {name}")


@conformance(id="vanished-and-replaced", rules=["SRC-060.2", "SRC-060.3"], needs=[API], alone=True)
async def a_pod_made_again_between_two_looks_is_another_pod(node: Node) -> None:
    """When a pod vanished from the API and another one of that name is there at the next list, the
    old one is stopped and the new one runs from the start."""
    await node.api.run_pods(pod("web", grace_s=7))
    old = (node.api.pod("web") or {})["metadata"]["uid"]
    node.api.vanish_pod("web")
    await node.api.create_pod(pod("web"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=60 + limits.START_S,
        what="the container of the new pod starts",
    )
    new = (node.api.pod("web") or {})["metadata"]["uid"]
    expect_equal(node, [c.uid for c in node.calls("RunPodSandbox", pod="web")], [old, new], "UIDs")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=limits.STOP_S,
        what="the old pod is stopped",
    )
    stop = node.calls("StopContainer", pod="web")[0]
    expect_equal(node, (stop.uid, stop.request.timeout), (old, 7), "UID, timeout of StopContainer")


@conformance(
    id="label-and-status-at-once", rules=["SRC-062.3", "STAT-021.3"], needs=[API], alone=True
)
async def a_status_that_changes_with_a_label_is_seen(node: Node) -> None:
    """When a pod's labels and its status have both changed between two looks at the API server, the
    status is corrected as if it had changed alone."""
    await node.api.run_pods(pod("web"), pod("bait"))
    node.api.vanish_pod("bait")  # the kubelet has to list its pods again, in a moment
    lie = {"phase": "Pending", "message": "lie"}
    await node.api.patch_pod("web", {"status": lie}, status=True)
    await node.api.patch_pod("web", {"metadata": {"labels": {"v": "2"}}})
    await node.run_until(
        lambda: node.count("StopContainer", pod="bait"), within_s=60, what="bait is stopped"
    )
    await node.run_until(
        lambda: node.api.phase("web") == "Running",
        within_s=limits.STATUS_PASS_S + 2,
        what="phase Running again",
    )


@conformance(id="evicted-seen", rules=["SRC-066.5", "LIFE-014"], needs=[API])
async def dead_containers_of_an_evicted_pod_are_removed(node: Node) -> None:
    """When the API shows a pod as evicted its dead containers are removed at once; those that run
    stay."""
    short_lived = container("done", exits(0))
    await node.api.create_pod(pod("web", container("main"), short_lived, restartPolicy="Never"))
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "done").get("state", {}),
        within_s=limits.START_S,
        what="done has ended",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("RemoveContainer", pod="web"), 0, "removed before")
    evicted = {"phase": "Failed", "reason": "Evicted"}
    await node.api.patch_pod("web", {"status": evicted}, status=True)
    await node.run_until(
        lambda: node.count("RemoveContainer", pod="web", container="done"),
        within_s=limits.NOTICE_S,
        what="done is removed",
    )
