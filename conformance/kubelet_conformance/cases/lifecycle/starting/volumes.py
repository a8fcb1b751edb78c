"""A pod's own volumes, parts of volumes, and pods whose volumes cannot be made."""

import os
import stat
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import Workload, exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

MOUNT_RETRY_S = 10.0
"""NODE-202: 0.5 s after a failed set-up, then twice as long each time; and a look at the result."""


def with_volume(name: str, work: Workload, *, restart: str, **fields: Any) -> PodPlan:
    """A pod with an emptyDir named scratch; `fields`: more of its mount (subPath)."""
    mounts = [{"name": "scratch", "mountPath": "/scratch", **fields}]
    main = container("main", work, volumeMounts=mounts)
    return pod(name, main, restartPolicy=restart, volumes=[{"name": "scratch", "emptyDir": {}}])


@conformance(
    id="volume-removed-at-end",
    rules=["LIFE-073", "LIFE-073.2"],
    needs=[Feature.API, Feature.STATUS],
)
async def a_finished_pod_keeps_no_empty_dir(node: Node) -> None:
    """The emptyDirs of a pod that has ended are removed, although the pod stays at the API."""
    await node.api.create_pod(with_volume("job", exits(0, after_s=5), restart="Never"))
    await node.wait_running("job")
    node.machine.write_volume_file("job", "scratch", "file", "x")
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded", within_s=5 + limits.START_S, what="Succeeded"
    )
    await node.run_until(
        lambda: not node.machine.has_volume_file("job", "scratch", "file"),
        within_s=limits.STOP_S,
        what="the file is removed",
    )


@conformance(id="volume-kept-by-restarts", rules=["LIFE-073", "NODE-203.4"], needs=[Feature.STATUS])
async def an_empty_dir_outlives_its_containers(node: Node) -> None:
    """A file in an emptyDir is still there when the container is restarted."""
    work = in_turn(exits(1, after_s=3), runs())
    await node.apply_static(with_volume("web", work, restart="Always"))
    await node.wait_running("web")
    node.machine.write_volume_file("web", "scratch", "file", "x")
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 1 and node.running("web"),
        within_s=3 + limits.START_S + limits.NOTICE_S,
        what="the second run",
    )
    expect_equal(
        node, node.machine.has_volume_file("web", "scratch", "file"), True, "the file is there"
    )


@conformance(id="sub-path-made", rules=["NODE-211"], needs=[Feature.STATUS])
async def a_part_of_a_volume_is_made_with_its_mode(node: Node) -> None:
    """A missing subPath becomes a directory with the volume's mode, and the container gets that
    very directory."""
    await node.apply_static(with_volume("web", runs(), restart="Always", subPath="new/part"))
    await node.wait_running("web")
    (call,) = node.calls("CreateContainer", container="main")[-1:]
    mount = next(m for m in call.request.config.mounts if m.container_path == "/scratch")
    place = node.machine.volume_path("web", "scratch", "new/part")
    expect(node, os.path.samefile(mount.host_path, place), f"{place} is mounted", mount.host_path)
    expect_equal(node, stat.S_IMODE(place.stat().st_mode), 0o777, "mode of the mounted directory")


@conformance(
    id="sub-path-link-out", rules=["NODE-211.2", "NODE-211.3", "LIFE-131"], needs=[Feature.STATUS]
)
async def a_sub_path_never_leads_out_of_its_volume(node: Node) -> None:
    """When a container replaces the part of the volume that it is given by a link to the node's
    files, its next start fails, and the message does not reveal those files."""
    work = in_turn(exits(1, after_s=5), runs())
    await node.apply_static(with_volume("web", work, restart="Always", subPath="part"))
    await node.wait_running("web")
    node.machine.replace_volume_file("web", "scratch", "part", "/")
    await node.run_until(
        lambda: (
            node.container("web", "main").get("state", {}).get("waiting", {}).get("reason")
            == "CreateContainerConfigError"
        ),
        within_s=5 + limits.NOTICE_S + 2 * limits.SYNC_ERROR_S,
        what="waiting: CreateContainerConfigError",
    )
    waiting = node.container("web", "main")["state"]["waiting"]
    expected_message = 'failed to prepare subPath for volumeMount "scratch" of container "main"'
    expect_equal(node, waiting.get("message"), expected_message, "message")
    expect_equal(node, node.count("CreateContainer", container="main"), 1, "creations of main")


@conformance(
    id="host-path-type", rules=["NODE-204", "NODE-202"], needs=[Feature.API, Feature.STATUS]
)
async def a_host_path_of_another_type_keeps_its_pod_waiting(node: Node) -> None:
    """While a hostPath that must be a directory does not exist, the pod gets no sandbox and an
    event says why, after each try: the tries are twice as far apart each time. It starts once the
    directory exists."""
    path = node.machine.host_path("data")
    volume = {"name": "data", "hostPath": {"path": str(path), "type": "Directory"}}
    main = container("main", volumeMounts=[{"name": "data", "mountPath": "/data"}])
    await node.api.create_pod(pod("web", main, volumes=[volume]))
    await node.run_until(
        lambda: node.events("FailedMount", pod="web"),
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="an event FailedMount",
    )
    message = node.events("FailedMount", pod="web")[0]["message"]
    why = f"hostPath type check failed: {path} is not a directory"
    expected_message = f'MountVolume.SetUp failed for volume "data" : {why}'
    expect_equal(node, message, expected_message, "message of the event")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    for number in range(12):  # tries after 0.5, 1.5, 3.5 s, however often the pod is synced
        await node.run_for(0.5)
        await node.api.patch_pod("web", {"metadata": {"annotations": {"number": str(number)}}})
    tries = node.event_count("FailedMount", pod="web")
    expect(node, 3 <= tries <= 5, "three to five tries in 6 s", tries)
    path.mkdir()
    await node.run_until(
        lambda: node.running("web"),
        within_s=MOUNT_RETRY_S + limits.START_S,
        what="the pod runs",
    )


@conformance(id="volume-unused", rules=["NODE-201"], needs=[Feature.API, Feature.STATUS])
async def a_volume_that_no_container_mounts_is_not_set_up(node: Node) -> None:
    """A pod with a volume of a ConfigMap that does not exist runs if no container mounts it."""
    volume = {"name": "settings", "configMap": {"name": "none"}}
    await node.api.create_pod(pod("web", container("main"), volumes=[volume]))
    await node.wait_running("web")


@conformance(id="volume-missing-object", rules=["NODE-201", "NODE-202"], needs=[Feature.API])
async def a_volume_that_cannot_be_mounted_keeps_its_pod_waiting(node: Node) -> None:
    """A pod that mounts a ConfigMap that does not exist gets no sandbox and an event says why; the
    pod can be deleted."""
    volume = {"name": "settings", "configMap": {"name": "none"}}
    main = container("main", volumeMounts=[{"name": "settings", "mountPath": "/settings"}])
    await node.api.create_pod(pod("web", main, volumes=[volume]))
    await node.run_until(
        lambda: node.events("FailedMount", pod="web"),
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="an event FailedMount",
    )
    await node.run_for(limits.SYNC_ERROR_S)
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    expect_equal(node, node.api.phase("web"), "Pending", "phase")
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=limits.STOP_S + limits.STATUS_PASS_S + limits.HOUSEKEEPING_S,
        what="the pod is gone",
    )


@conformance(id="empty-dir-group", rules=["NODE-203"], needs=[Feature.STATUS])
async def an_empty_dir_is_for_the_group_of_its_pod(node: Node) -> None:
    """With fsGroup that group may write into an emptyDir, and files that are made there belong to
    it."""
    group = os.getgid() or (2000 if os.geteuid() == 0 else 0)
    main = container("main", volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}])
    volumes = [{"name": "scratch", "emptyDir": {}}]
    context = {"fsGroup": group}
    await node.apply_static(pod("web", main, volumes=volumes, securityContext=context))
    await node.wait_running("web")
    status = node.machine.volume_path("web", "scratch").stat()
    expect_equal(
        node, (status.st_gid, oct(status.st_mode & 0o7777)), (group, "0o2777"), "owner, mode"
    )
