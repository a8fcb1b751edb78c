"""Pods of the API server as a source: which are this node's, and what a change of one does."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import OTHER_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term
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


@conformance(
    id="vanished-and-replaced", rules=["SRC-060.2", "SRC-060.3", "SRC-066.2"],
    needs=[API], alone=True)  # fmt: skip
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


@conformance(
    id="changes-that-mean-nothing",
    rules=["SRC-061.1", "SRC-061.3", "SRC-061.5", "SRC-062.2", "SRC-066.3"],
    needs=[API],
    alone=True,
)
async def only_changes_that_mean_something_sync_a_pod(node: Node) -> None:
    """A pod whose finalizers, owners or status others change, or that is told again as it was, is
    not synced for it; a changed label, and a changed image, are another thing. Each sync of a pod
    with a container in its back-off has an event BackOff."""
    await node.api.create_pod(pod("bait"))
    await node.api.create_pod(pod("web", container("main", exits(1)), container("calm")))
    await node.run_until(
        lambda: (
            node.count("StartContainer", container="main") == 3
            and "running" not in node.api.container("web", "main").get("state", {"running": 1})
        ),
        within_s=limits.START_S + limits.restart_after(0).high_s + limits.restart_after(10).high_s,
        what="main waits for the longer time",
    )
    await node.run_for(limits.NOTICE_S)
    before = node.event_count("BackOff", pod="web")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u-1"}
    seen = {"type": "example.com/seen", "status": "True"}
    conditions = [*(node.api.pod("web") or {})["status"]["conditions"], seen]
    await node.api.patch_pod("web", {"metadata": {"finalizers": ["example.com/look"]}})
    await node.api.patch_pod("web", {"metadata": {"ownerReferences": [owner]}})
    await node.api.patch_pod("web", {"status": {"conditions": conditions}}, status=True)
    node.api.vanish_pod("bait")  # the kubelet has to list its pods again
    await node.run_until(
        lambda: node.count("StopContainer", pod="bait"), within_s=5, what="bait is stopped"
    )
    await node.run_for(limits.EVENTS_S)
    expect_equal(node, node.event_count("BackOff", pod="web"), before, "events BackOff so far")
    await node.api.patch_pod("web", {"metadata": {"labels": {"v": "2"}}})
    await node.run_until(
        lambda: node.event_count("BackOff", pod="web") > before,
        within_s=limits.NOTICE_S,
        what="a sync for the label",
    )
    containers = (node.api.pod("web") or {})["spec"]["containers"]
    changed = [c | {"image": OTHER_IMAGE} if c["name"] == "calm" else c for c in containers]
    await node.api.patch_pod("web", {"spec": {"containers": changed}})
    await node.run_until(
        lambda: node.count("StopContainer", container="calm"),
        within_s=limits.NOTICE_S,
        what="calm is stopped for its new image",
    )
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


@conformance(id="deletion-is-seen", rules=["SRC-061.2", "SRC-066.1"], needs=[API])
async def a_deletion_mark_alone_stops_a_pod(node: Node) -> None:
    """A pod that gets a deletionTimestamp and no other change is stopped with the grace period of
    its deletion, and its object stays until it has ended."""
    await node.api.run_pods(pod("web", container("main", ignores_term()), grace_s=20))
    await node.api.delete_pod("web", grace_s=4)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=limits.NOTICE_S, what="a stop"
    )
    stop = node.calls("StopContainer", pod="web")[0]
    expect_equal(node, stop.request.timeout, 4, "timeout of StopContainer")
    expect(node, node.api.pod("web"), "the object while the pod stops")
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=4 + limits.STOP_S, what="the object is gone"
    )


@conformance(id="all-namespaces", rules=["SRC-050.1"], needs=[API], alone=True)
async def pods_of_every_namespace_are_run(node: Node) -> None:
    """Pods that are bound to this node run whatever their namespace is."""
    far = pod("far", nodeName=node.name).manifest
    metadata = {**far["metadata"], "namespace": "kube-system"}
    manifest = {**far, "metadata": metadata}
    await node.api.send("POST", "/api/v1/namespaces/kube-system/pods", manifest)
    await node.api.run_pods(pod("near"))

    def spaces() -> dict[str, str]:
        sandboxes = [c.request.config.metadata for c in node.calls("RunPodSandbox")]
        return {metadata.name: metadata.namespace for metadata in sandboxes}

    await node.run_until(lambda: "far" in spaces(), within_s=limits.START_S, what="far is run")
    expect_equal(node, spaces(), {"near": "default", "far": "kube-system"}, "namespaces of pods")


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
