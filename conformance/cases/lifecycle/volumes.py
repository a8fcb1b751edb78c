"""What becomes of a pod's own volumes."""

from conformance.harness import limits
from conformance.harness.expect import expect_equal
from conformance.harness.manifests import PodPlan, container, pod
from conformance.harness.node import Node
from conformance.harness.workload import Workload, exits, in_turn, runs
from conformance.registry import Feature, conformance


def with_volume(name: str, work: Workload, *, restart: str) -> PodPlan:
    """A pod with an emptyDir named scratch."""
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    main = container("main", work, volumeMounts=mounts)
    return pod(name, main, restartPolicy=restart, volumes=[{"name": "scratch", "emptyDir": {}}])


@conformance(id="volume-removed-at-end", rules=["LIFE-073"], needs=[Feature.API, Feature.STATUS])
async def a_finished_pod_keeps_no_empty_dir(node: Node) -> None:
    """What a pod wrote into an emptyDir is removed when it has ended; the pod stays at the API."""
    await node.create_pod(with_volume("job", exits(0, after_s=5), restart="Never"))
    await node.wait_running("job")
    node.write_volume_file("job", "scratch", "file", "x")
    await node.run_until(
        lambda: node.api_phase("job") == "Succeeded", within_s=5 + limits.START_S, what="Succeeded"
    )
    await node.run_until(
        lambda: not node.has_volume_file("job", "scratch", "file"),
        within_s=limits.STOP_S,
        what="the file is removed",
    )


@conformance(id="volume-kept-by-restarts", rules=["LIFE-073"], needs=[Feature.STATUS])
async def an_empty_dir_outlives_its_containers(node: Node) -> None:
    """What a container wrote into an emptyDir is there when it runs again."""
    work = in_turn(exits(1, after_s=3), runs())
    await node.apply_static(with_volume("web", work, restart="Always"))
    await node.wait_running("web")
    node.write_volume_file("web", "scratch", "file", "x")
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 1 and node.running("web"),
        within_s=3 + limits.START_S + limits.NOTICE_S,
        what="the second run",
    )
    expect_equal(node, node.has_volume_file("web", "scratch", "file"), True, "the file is there")
