"""Static pods and pods of the API server while the Node object is late, deleted or missing."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, RESTART = Feature.API, Feature.RESTART


@conformance(
    id="no-node-object",
    rules=["MIRR-024.1", "SRC-050.4", "SRC-060.1"],
    needs=[API],
    node_config={"registerNode": False},
)
async def without_a_node_object_pods_run_and_have_no_mirrors(node: Node) -> None:
    """Where the API server has no Node object for this node, static pods and pods of the server run
    all the same; no mirror is posted, since it would have no owner."""
    await node.apply_static(pod("web"))
    await node.api.create_pod(pod("job"))
    await node.wait_running("web")
    await node.run_until(
        lambda: node.api.phase("job") == "Running",
        within_s=limits.START_S,
        what="job Running at the API",
    )
    await node.run_for(limits.STATUS_PASS_S)
    posts = [r.body["metadata"]["name"] for r in node.api.requests("POST", "/pods$")]
    expect_equal(node, posts, ["job"], "pods that were posted")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="deleted-node-object", rules=["MIRR-024.2"], needs=[API], alone=True)
async def a_node_that_is_being_deleted_gets_no_mirrors(node: Node) -> None:
    """While the Node object is being deleted a static pod starts without a mirror."""
    await node.run_until(node.api.node_uid, within_s=limits.START_S, what="a Node object")
    await node.api.patch_node({"metadata": {"finalizers": ["example.com/wait"]}})
    await node.api.delete_node()
    await node.run_for(limits.NOTICE_S)
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.api.pod("web"), None, "mirror of web")


@conformance(id="node-listed-late", rules=["SRC-050.3", "SRC-071.6"], needs=[API, RESTART])
async def pods_are_listed_after_the_node(node: Node) -> None:
    """A starting kubelet asks for its pods when it has got its Node; static pods do not wait."""
    await node.kubelet.stop()
    before = len(node.api.requests("GET", "/api/v1/pods$"))
    looks = len(node.api.requests("GET", "/api/v1/nodes$"))
    slow_s = 3
    with node.api.slow("GET", "/api/v1/nodes$", slow_s):
        await node.apply_static(pod("web"))
        await node.kubelet.start()
        await node.run_until(
            lambda: len(node.api.requests("GET", "/api/v1/pods$")) > before,
            within_s=limits.START_S + 2 * slow_s,
            what="the pods are listed",
        )
    pods = node.api.requests("GET", "/api/v1/pods$")[before]
    nodes = node.api.requests("GET", "/api/v1/nodes$")[looks]
    expect(
        node,
        pods.started_s >= nodes.ended_s,
        "the first list of pods after that of the nodes",
        pods.started_s - nodes.ended_s,
    )
    started = node.calls("StartContainer", pod="web")[0]
    expect(node, started.started_s < nodes.ended_s, "web starts before", started.started_s)


@conformance(
    id="mirror-soon-after-node",
    rules=["MIRR-028"],
    needs=[API, RESTART],
    level=Level.SHOULD,
    since="1.32",  # kubelet.go: fastStaticPodsRegistration
)
async def mirrors_follow_as_soon_as_the_node_is_known(node: Node) -> None:
    """The mirror of a static pod that started before the Node was known is made when it is, and not
    with the next sync of the pod."""
    await node.kubelet.stop()
    slow_s = 3
    with node.api.slow("GET", "/api/v1/nodes$", slow_s):
        await node.apply_static(pod("web"))
        await node.kubelet.start()
        await node.wait_running("web")
        await node.run_until(
            lambda: node.api.pod("web"),
            within_s=2 * slow_s + limits.NOTICE_S,
            what="a mirror of web",
        )


@conformance(
    id="mirrors-soon-after-node",
    rules=["MIRR-028.1", "MIRR-028.2"],
    needs=[API, RESTART],
    level=Level.SHOULD,
    since="1.32",  # kubelet.go: fastStaticPodsRegistration
)
async def all_mirrors_follow_as_soon_as_the_node_is_known(node: Node) -> None:
    """All static pods that started before the Node was known get their mirrors when it is; the
    mirrors that are there already stay, and none is made twice."""
    await node.apply_static(pod("old"))
    await node.run_until(lambda: node.api.pod("old"), within_s=limits.START_S, what="a mirror")
    uid = (node.api.pod("old") or {})["metadata"]["uid"]
    await node.kubelet.stop()
    slow_s = 3
    names = ("one", "two", "three")
    with node.api.slow("GET", "/api/v1/nodes$", slow_s):
        for name in names:
            await node.apply_static(pod(name))
        await node.kubelet.start()
        for name in names:
            await node.wait_running(name)
        await node.run_until(
            lambda: all(node.api.pod(name) for name in names),
            within_s=2 * slow_s + limits.NOTICE_S,
            what="mirrors of all",
        )
    await node.run_for(limits.NOTICE_S)
    posts = [r for r in node.api.requests("POST", "/pods$") if r.status == 201]
    mirror_names = sorted(str(r.body["metadata"]["name"]) for r in posts)
    expected_names = sorted(node.runtime.pod_name(name) for name in (*names, "old"))
    expect_equal(node, mirror_names, expected_names, "mirrors made")
    expect_equal(node, (node.api.pod("old") or {})["metadata"]["uid"], uid, "UID of the old one")
