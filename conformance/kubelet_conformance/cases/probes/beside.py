"""Probes of containers while their pod is in the middle of a sync: neighbours end, starts are slow.

What a kubelet knows of a container that is not running yet is no verdict about it: a probe fails by
its runs alone."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import OTHER_IMAGE, ExecProbe, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, FAULTS = Feature.API, Feature.FAULTS
SLOW_S = 8.0  # what the start of a container takes in these cases
DIES_S = 3.0  # after so long its neighbour ends, in the middle of that
MANY = 100  # failures in a row: more than a case has time for


def shown_unstarted(node: Node, name: str) -> list[str]:
    """The IDs under which a container was shown to wait that never ended under them: it was
    created, and had not been started."""
    return [
        entry["containerID"]
        for status in node.statuses("web")
        for kind in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(kind) or []
        if entry["name"] == name
        and entry.get("containerID")
        and "waiting" in entry["state"]
        and (entry.get("lastState", {}).get("terminated") or {}).get("containerID")
        != entry["containerID"]
    ]


async def lives(node: Node, name: str) -> None:
    """Expect that container to have been started once, and never stopped, for a while after its
    neighbour has been started again."""
    await node.run_until(
        lambda: node.count("StartContainer", container="dies") == 2,
        within_s=limits.START_S + SLOW_S + 2 * limits.NOTICE_S,
        what="a second start of dies",
    )
    await node.run_until(lambda: node.running("web", name), within_s=limits.NOTICE_S)
    await node.run_for(3 * limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer", container=name), 0, f"stops of {name}")
    expect_equal(node, node.count("StartContainer", container=name), 1, f"starts of {name}")
    texts = [e["message"] for e in node.events("Killing", pod="web") if name in e["message"]]
    expect_equal(node, texts, [], f"events Killing about {name}")
    expect_equal(node, shown_unstarted(node, name), [], f"{name} shown as created")


@conformance(
    id="startup-beside-a-death",
    rules=["PROBE-014.5", "STAT-012.1"],
    needs=[API, FAULTS],
)
async def a_container_that_starts_slowly_has_not_failed_its_startup_probe(node: Node) -> None:
    """While the start of a container takes its time another one of the pod ends: the startup probe,
    which has not run yet, is not taken for failed."""
    slow = container("slow", probes={"startup": ExecProbe(from_s=2, failure_threshold=MANY)})
    dies = container("dies", in_turn(exits(1, after_s=DIES_S), runs()))
    with node.runtime.on("StartContainer", container="slow").delays(SLOW_S):
        await node.api.create_pod(pod("web", dies, slow))
        await lives(node, "slow")


@conformance(
    id="liveness-beside-a-death",
    rules=["PROBE-014.5", "STAT-012.1"],
    needs=[API, FAULTS],
)
async def a_container_that_starts_slowly_has_not_failed_its_liveness_probe(node: Node) -> None:
    """While the start of a container takes its time another one of the pod ends: the liveness
    probe, which has not run yet, is not taken for failed."""
    probe = ExecProbe(failure_threshold=MANY, period_s=2)
    slow = container("slow", probes={"liveness": probe})
    dies = container("dies", in_turn(exits(1, after_s=DIES_S), runs()))
    with node.runtime.on("StartContainer", container="slow").delays(SLOW_S):
        await node.api.create_pod(pod("web", dies, slow))
        await lives(node, "slow")


@conformance(
    id="sidecar-beside-a-death",
    rules=["PROBE-014.5", "STAT-012.1"],
    needs=[API, FAULTS],
)
async def a_sidecar_that_starts_slowly_has_not_failed_its_startup_probe(node: Node) -> None:
    """The same for a sidecar: another sidecar ends while its start takes its time."""
    slow = sidecar("slow", probes={"startup": ExecProbe(from_s=2, failure_threshold=MANY)})
    dies = sidecar("dies", in_turn(exits(1, after_s=DIES_S), runs()))
    with node.runtime.on("StartContainer", container="slow").delays(SLOW_S):
        await node.api.create_pod(pod("web", container("main"), init=[dies, slow]))
        await lives(node, "slow")


@conformance(
    id="generation-beside-a-death",
    rules=["STAT-012.4", "STAT-005.1"],
    needs=[API, FAULTS],
    since="1.34",
)
async def a_spec_is_observed_by_the_sync_that_takes_it(node: Node) -> None:
    """A pod is changed while the start of a container takes its time, and another container ends:
    observedGeneration stays that of the spec which is being synced."""
    dies = container("dies", in_turn(exits(1, after_s=2 * DIES_S), runs()))
    slow = container("slow", in_turn(exits(1, after_s=1), runs()))
    await node.api.create_pod(pod("web", dies, slow))
    await node.wait_running("web", "dies", "slow")
    with node.runtime.on("StartContainer", container="slow").delays(SLOW_S):
        await node.run_until(
            lambda: node.count("StartContainer", container="slow") == 2,
            within_s=limits.NOTICE_S,
            what="the slow start",
        )
        containers = (node.api.pod("web") or {})["spec"]["containers"]
        changed = [c | {"image": OTHER_IMAGE} if c["name"] == "dies" else c for c in containers]
        await node.api.patch_pod("web", {"spec": {"containers": changed}})
        await node.run_for(SLOW_S - 1)
        generation = ((node.pod("web") or {}).get("status") or {}).get("observedGeneration")
        expect_equal(node, generation, 1, "observedGeneration during the slow start")
    await node.run_until(
        lambda: (node.pod("web") or {})["status"].get("observedGeneration") == 2,
        within_s=SLOW_S + limits.NOTICE_S,
        what="observedGeneration 2",
    )
