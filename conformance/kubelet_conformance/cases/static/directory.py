"""The manifest directory over time: files that are renamed, linked, broken, and paths of other
kinds."""

from kubelet_conformance.cases.static.sources import YAML, listed
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, RESTART = Feature.API, Feature.STATUS, Feature.RESTART
PERIOD_S = 2
WATCHED_S = 3.0  # two looks for a directory that is missing (SRC-007), and what they take
OFTEN = {"fileCheckFrequency": f"{PERIOD_S}s"}


@conformance(id="static-one-file", rules=["SRC-001.1", "SRC-001.2", "SRC-006"], needs=[RESTART])
async def the_static_pod_path_may_be_one_file(node: Node) -> None:
    """A static pod path that is one file, written with a slash at its end, gives one pod; while
    that file is broken the pod runs on."""
    file = node.machine.host_path("one.yaml")
    file.write_text(YAML.format(name="one"))
    await node.kubelet.restart(staticPodPath=f"{file}/", fileCheckFrequency=f"{PERIOD_S}s")
    await node.run_until(
        lambda: node.count("StartContainer", pod="one"), within_s=limits.START_S, what="one starts"
    )
    file.write_text("{]")
    await node.run_for(2 * PERIOD_S + limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer", pod="one"), 0, "stops while the file is broken")
    file.unlink()
    await node.run_until(
        lambda: node.count("StopContainer", pod="one"),
        within_s=PERIOD_S + limits.NOTICE_S,
        what="one stops when its file is gone",
    )


@conformance(id="static-path-empty", rules=["SRC-001.3"], needs=[API, RESTART])
async def without_a_static_pod_path_no_file_is_waited_for(node: Node) -> None:
    """A kubelet without a static pod path runs the pods of the API server, and cleans up without
    waiting for files."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.kubelet.restart(staticPodPath="")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=limits.SETTLE_S + limits.START_S + 2 * limits.HOUSEKEEPING_S,
        what="the pod that no source has is stopped",
    )
    await node.api.create_pod(pod("job"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="job"), within_s=limits.START_S, what="job starts"
    )
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts of web")


@conformance(id="static-path-loop", rules=["SRC-007.3"], needs=[API, RESTART])
async def a_path_that_cannot_be_looked_at_changes_nothing(node: Node) -> None:
    """While the static pod path is a link that leads to itself its pods run on; when it leads to an
    empty directory, they stop."""
    full, empty = (node.machine.host_path(name) for name in ("filled", "bare"))
    for directory in (full, empty):
        directory.mkdir()
    link = node.machine.host_path("link")
    link.symlink_to(full)
    (full / "web.yaml").write_text(YAML.format(name="web"))
    await node.kubelet.restart(staticPodPath=str(link), fileCheckFrequency=f"{PERIOD_S}s")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web"), within_s=limits.START_S, what="web starts"
    )
    link.unlink()
    link.symlink_to(link)
    await node.run_for(2 * PERIOD_S + limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops while the path is a loop")
    link.unlink()
    link.symlink_to(empty)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=PERIOD_S + limits.NOTICE_S,
        what="web is stopped",
    )


@conformance(id="static-path-missing", rules=["SRC-007.1", "SRC-007.2", "SRC-007.4"],
             needs=[API, RESTART])  # fmt: skip
async def a_static_pod_path_may_be_missing(node: Node) -> None:
    """With a static pod path that is missing everything else works, what was made for former pods
    is cleaned up, and when the directory appears, it is watched within a second."""
    directory = node.machine.host_path("later")
    await node.kubelet.restart(staticPodPath=str(directory), fileCheckFrequency="60s")
    marks = {"annotations": {"kubernetes.io/config.mirror": "abc"}}
    await node.api.create_pod(pod("ghost", metadata=marks))
    await node.run_until(
        lambda: node.api.pod("ghost") is None,
        within_s=limits.START_S + 2 * limits.HOUSEKEEPING_S,
        what="a mirror without a static pod is deleted",
    )
    directory.mkdir()
    await node.run_for(WATCHED_S)
    (directory / "web.yaml").write_text(YAML.format(name="web"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web"),
        within_s=limits.NOTICE_S + limits.START_S,
        what="web starts when its manifest is there",
    )


@conformance(id="static-renamed", rules=["SRC-031.3", "SRC-008.1"], needs=[STATUS])
async def a_renamed_manifest_is_another_pod(node: Node) -> None:
    """A manifest under another file name is another pod; one renamed to a hidden name is removed,
    in both cases at once."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.rename_manifest("web.yaml", "other.yaml")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=limits.NOTICE_S,
        what="the pod of the old name stops",
    )
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.STOP_S + limits.STATIC_SUCCESSOR_S,
        what="the pod of the new name starts",
    )
    uids = {c.uid for c in node.calls("RunPodSandbox", pod="web")}
    expect_equal(node, len(uids), 2, "different UIDs")
    node.rename_manifest("other.yaml", ".other.yaml")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web") == 2,
        within_s=limits.NOTICE_S,
        what="the pod stops when its manifest is hidden",
    )


@conformance(id="static-linked", rules=["SRC-003.4"], needs=[STATUS], node_config=OFTEN, alone=True)
async def a_manifest_may_be_a_link(node: Node) -> None:
    """A symbolic link to a file elsewhere is read as that file; one to a directory or to nothing is
    skipped."""
    file = node.machine.host_path("elsewhere.yaml")
    file.write_text(YAML.format(name="linked"))
    folder = node.machine.host_path("folder")
    folder.mkdir()
    (folder / "below.yaml").write_text(YAML.format(name="below"))
    node.link_manifest("a.yaml", node.machine.host_path("nothing"))
    node.link_manifest("b.yaml", folder)
    node.link_manifest("c.yaml", file)
    await node.wait_running("linked")
    await node.run_for(PERIOD_S)
    expect_equal(node, listed(node), {f"linked-{node.name}"}, "pods")


@conformance(id="static-name-order", rules=["SRC-003.3"], needs=[STATUS, RESTART])
async def files_are_read_in_the_order_of_their_names(node: Node) -> None:
    """Of two files with a pod of the same name a starting kubelet takes the one whose name comes
    last."""
    await node.kubelet.stop()
    for file, number in (("c.yaml", 3), ("a.yaml", 1), ("b.yaml", 2)):
        plan = pod("web", metadata={"labels": {"file": str(number)}})
        await node.apply_static(plan, file=file)
    await node.kubelet.start()
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    files = [c.request.config.labels.get("file") for c in node.calls("RunPodSandbox", pod="web")]
    expect_equal(node, files, ["3"], "labels of the sandboxes of web")


@conformance(
    id="static-broken-not-at-once", rules=["SRC-005.2", "SRC-008.3"], needs=[STATUS], alone=True
)
async def a_broken_manifest_keeps_its_pod_until_the_next_reading(node: Node) -> None:
    """A manifest that was overwritten with garbage keeps its pod until the whole directory is read
    again, so a file that is half-written for a moment does no harm."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.write_manifest("web.yaml", "{]")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops at once")
    await node.apply_static(pod("web"))
    await node.run_for(20 + limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops after the manifest is whole again")
    expect(node, node.running("web"), "web runs")
