"""The mounts of a container: their order, their fields, the file for its termination message."""

import os
import stat
from pathlib import Path
from typing import Any

from kubelet_conformance.cases.cri.common import container_config, started
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

STATUS = Feature.STATUS
PRIVATE, FROM_NODE, BOTH_WAYS = 0, 1, 2  # MountPropagation
SCRATCH = [{"name": "scratch", "emptyDir": {}}]


@conformance(
    id="cri-mounts-in-order", rules=["LIFE-138.1", "LIFE-138.2", "LIFE-138.3"], needs=[STATUS]
)
async def mounts_have_the_order_and_the_fields_of_the_spec(node: Node) -> None:
    """Mounts come in the order of the spec, then the hosts file and the file for the termination
    message; readOnly and mountPropagation reach the runtime, and a path without a slash gets
    one."""
    fields: list[dict[str, Any]] = [
        {"mountPath": "/z"},
        {"mountPath": "/a", "readOnly": True},
        {"mountPath": "/m", "mountPropagation": "HostToContainer"},
        {"mountPath": "no-slash", "mountPropagation": "None"},
    ]
    mounts = [{"name": "scratch", **each} for each in fields]
    main = container("main", volumeMounts=mounts)
    await node.apply_static(pod("web", main, volumes=SCRATCH))
    await started(node, "web")
    made_mounts = container_config(node, "main").mounts
    mount_fields = [(m.container_path, m.readonly, m.propagation) for m in made_mounts]
    expected_mounts = [
        ("/z", False, PRIVATE),
        ("/a", True, PRIVATE),
        ("/m", False, FROM_NODE),
        ("/no-slash", False, PRIVATE),
        ("/etc/hosts", False, PRIVATE),
        ("/dev/termination-log", False, PRIVATE),
    ]
    expect_equal(node, mount_fields, expected_mounts, "path, read-only, propagation of each mount")


@conformance(id="cri-mount-propagation", rules=["LIFE-138.1"], needs=[STATUS])
async def a_privileged_container_can_mount_for_the_node(node: Node) -> None:
    """Bidirectional propagation reaches the runtime as such."""
    path = node.machine.host_path("shared")
    path.mkdir()
    mount = {"name": "shared", "mountPath": "/shared", "mountPropagation": "Bidirectional"}
    main = container("main", volumeMounts=[mount], securityContext={"privileged": True})
    volumes = [{"name": "shared", "hostPath": {"path": str(path)}}]
    await node.apply_static(pod("web", main, volumes=volumes))
    await node.run_until(
        lambda: node.count("CreateContainer", container="main"), within_s=limits.START_S
    )
    first = container_config(node, "main").mounts[0]
    mount_fields = (first.container_path, first.host_path, first.propagation)
    expect_equal(node, mount_fields, ("/shared", str(path), BOTH_WAYS), "path, source, propagation")


@conformance(id="cri-message-files", rules=["LIFE-138.3"], needs=[STATUS])
async def each_run_has_a_new_message_file_that_everybody_may_write(node: Node) -> None:
    """The file for the termination message can be written by every user, and each run gets a new
    one, which is empty."""
    work = in_turn(exits(1, message="last words"), runs())
    await node.apply_static(pod("web", container("main", work)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="two starts of main",
    )
    paths = []
    for call in node.calls("CreateContainer", container="main"):
        last = call.request.config.mounts[-1]
        expect_equal(node, last.container_path, "/dev/termination-log", "path of the last mount")
        paths.append(Path(last.host_path))
    expect_equal(node, len(set(paths)), 2, "files for two runs")
    modes = [oct(stat.S_IMODE(path.stat().st_mode)) for path in paths]
    expect_equal(node, modes, ["0o666"] * 2, "modes of the files")
    expect_equal(node, os.path.getsize(paths[1]), 0, "bytes in the file of the second run")
