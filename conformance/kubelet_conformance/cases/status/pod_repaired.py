"""What somebody else has changed of a pod's status: the kubelet puts right what is its own."""

from typing import Any

from kubelet_conformance.cases.status.conditions import status, until
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API = Feature.API
STATUS_PATH = "/pods/web/status$"
LATE = "2038-01-01T00:00:00Z"
OTHERS = ("resourceClaimStatuses", "extendedResourceClaimStatus")
"""Fields that the kubelet does not own."""
WRONG: dict[str, Any] = {
    "phase": "Pending",
    "podIP": "192.0.2.9",
    "podIPs": [{"ip": "192.0.2.9"}],
    "hostIP": "192.0.2.8",
    "hostIPs": [{"ip": "192.0.2.8"}],
    "startTime": LATE,
    "nominatedNodeName": "elsewhere",
    "conditions": [{"type": "Ready", "status": "False", "reason": "Other"}],
}
"""Fields that each status of a pod that runs has, with other values."""
WRONG_CONTAINER: dict[str, Any] = {
    "image": "example.com/other:1",
    "imageID": "other",
    "containerID": "other://1",
    "ready": False,
    "started": False,
    "restartCount": 9,
    "state": {"waiting": {"reason": "Other"}},
    "lastState": {"terminated": {"exitCode": 9, "startedAt": LATE, "finishedAt": LATE}},
}


def own(node: Node, name: str) -> dict[str, Any]:
    """What the kubelet owns of the pod's status, conditions by their types."""
    copy = dict(status(node, name))
    conditions = {c["type"]: (c["status"], c.get("reason")) for c in copy.pop("conditions", ())}
    return {k: v for k, v in copy.items() if k not in OTHERS} | {"conditions": conditions}


async def put_right(node: Node, name: str, wrong: dict[str, Any]) -> None:
    """Write `wrong` into the pod's status; expect the status of before within ten seconds."""
    before = own(node, name)
    await node.api.patch_pod(name, {"status": wrong}, status=True)
    await node.run_until(
        lambda: own(node, name) == before,
        within_s=limits.STATUS_PASS_S + limits.EVENTS_S,
        what=f"the status as before {wrong}",
    )


async def calm_pod(node: Node) -> None:
    """Create the pod web with an init container and run until nothing of its status changes."""
    plan = pod("web", container("main"), init=[container("first", exits(0))])
    await node.api.create_pod(plan)
    await until(node, "Ready", "True")
    await node.run_for(limits.STATUS_PASS_S)


@conformance(
    id="pod-status-repaired", rules=["STAT-021.3", "STAT-026.1", "STAT-003.3"], needs=[API]
)
async def a_status_that_somebody_has_changed_is_put_right(node: Node) -> None:
    """Each field of a pod's status that is the kubelet's is as before within ten seconds after
    somebody else has changed it; nothing is done to the pod."""
    await calm_pod(node)
    began = len(node.calls("StopContainer")), len(node.calls("CreateContainer"))
    await put_right(node, "web", WRONG)
    main = status(node)["containerStatuses"][0]
    await put_right(node, "web", {"containerStatuses": [main | WRONG_CONTAINER]})
    first = status(node)["initContainerStatuses"][0]
    wrong = {"exitCode": 7, "reason": "Error", "startedAt": LATE, "finishedAt": LATE}
    ended = {"state": {"terminated": first["state"]["terminated"] | wrong}, "restartCount": 4}
    await put_right(node, "web", {"initContainerStatuses": [first | ended]})
    call_counts = len(node.calls("StopContainer")), len(node.calls("CreateContainer"))
    expect_equal(node, call_counts, began, "calls of StopContainer and CreateContainer")


@conformance(id="pod-status-removed", rules=["STAT-021.3", "STAT-026.1"], needs=[API])
async def a_status_that_somebody_has_removed_comes_back(node: Node) -> None:
    """Conditions, addresses, statuses of containers and the start of a pod that somebody else has
    removed are back within ten seconds."""
    await calm_pod(node)
    names = ("conditions", "podIP", "podIPs", "hostIP", "hostIPs", "startTime")
    await put_right(node, "web", dict.fromkeys(names))
    await put_right(node, "web", {"containerStatuses": None, "initContainerStatuses": None})


@conformance(id="mirror-status-repaired", rules=["STAT-021.3", "MIRR-027.3"], needs=[API])
async def a_mirrors_status_that_somebody_has_changed_is_put_right(node: Node) -> None:
    """The status of a mirror pod is as before within ten seconds after somebody else has changed
    it, or removed parts of it."""
    await node.apply_static(pod("web"))
    await until(node, "Ready", "True", limits.START_S + limits.STATUS_PASS_S)
    await node.run_for(limits.STATUS_PASS_S)
    await put_right(node, "web", WRONG)
    main = status(node)["containerStatuses"][0]
    await put_right(node, "web", {"containerStatuses": [main | WRONG_CONTAINER]})
    await put_right(node, "web", {"containerStatuses": None, "conditions": None})
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="pod-status-refused-once", rules=["STAT-021.5", "STAT-023.3"], needs=[API])
async def a_correction_that_was_refused_is_sent_with_the_next_change(node: Node) -> None:
    """A status that somebody has changed, and whose correction the API server refused, is put right
    when the status of some other pod is written, and does not wait for the next ten seconds."""
    await calm_pod(node)
    await node.api.patch_pod("web", {"status": {"podIP": "192.0.2.9"}}, status=True)
    before = len(node.api.requests("PATCH", STATUS_PATH))
    with node.api.fails("PATCH", STATUS_PATH):
        await node.run_until(
            lambda: len(node.api.requests("PATCH", STATUS_PATH)) > before,
            within_s=limits.STATUS_PASS_S + 1,
            what="a correction that is refused",
        )
    await node.api.create_pod(pod("other"))
    await node.run_until(
        lambda: status(node)["podIP"] != "192.0.2.9",
        within_s=limits.START_S,
        what="the pod's own address",
    )
    expect(node, status(node)["podIP"], "an address")
