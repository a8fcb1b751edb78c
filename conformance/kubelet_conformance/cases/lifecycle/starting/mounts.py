"""The files that the kubelet itself mounts into containers: /etc/hosts and the termination log."""

from pathlib import Path
from typing import Any

from kubelet_conformance.cases.lifecycle.starting.config import created
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

STATUS = Feature.STATUS
HOSTS, LOG = "/etc/hosts", "/dev/termination-log"


def sources(config: Any) -> list[tuple[str, str]]:
    """Each mount of a container: its path there, and its source on the node."""
    return [(mount.container_path, mount.host_path) for mount in config.mounts]


@conformance(id="mount-order", rules=["LIFE-138.1", "LIFE-138.2"], needs=[STATUS])
async def the_kubelets_own_mounts_come_last(node: Node) -> None:
    """The mounts of the spec come first, in order, then /etc/hosts, then the termination log; a
    container that mounts /etc/hosts itself gets its own file only."""
    file = node.machine.host_path("hosts")
    file.write_text("127.0.0.1 localhost\\n")
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "file", "hostPath": {"path": str(file)}}]
    two = [{"name": "data", "mountPath": path} for path in ("/b", "/a")]
    plain = container("plain", volumeMounts=two)
    own = container("own", volumeMounts=[{"name": "file", "mountPath": HOSTS}])
    await node.apply_static(pod("web", plain, own, volumes=volumes))
    paths = [path for path, _ in sources(await created(node, "plain"))]
    expect_equal(node, paths, ["/b", "/a", HOSTS, LOG], "mounts of plain")
    mounts = sources(await created(node, "own"))
    expect_equal(node, [path for path, _ in mounts], [HOSTS, LOG], "mounts of own")
    expect_equal(node, mounts[0][1], str(file), "file at /etc/hosts")


@conformance(id="termination-log-fresh", rules=["LIFE-138.3"], needs=[STATUS])
async def each_instance_has_a_termination_log_of_its_own(node: Node) -> None:
    """Every instance of a container gets a new, empty file for its termination message, which all
    may write, so the message of the one before is not told again."""
    work = in_turn(exits(1, after_s=1, message="the first"), exits(1, after_s=1), runs())
    await node.apply_static(pod("web", container("main", work)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 3,
        within_s=limits.START_S + 2 * limits.NOTICE_S + limits.restart_after(10).high_s,
        what="a third start of main",
    )
    configs = [c.request.config for c in node.calls("CreateContainer", container="main")]
    files = [dict(sources(config))[LOG] for config in configs]
    expect_equal(node, len(set(files)), 3, "different files of three instances")
    mode = Path(files[2]).stat().st_mode & 0o777
    expect_equal(node, oct(mode), oct(0o666), "mode of the file")
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 2, within_s=limits.NOTICE_S
    )
    last = node.container("web", "main").get("lastState", {}).get("terminated", {})
    expect(node, "message" not in last, "no message of the second instance", last)
