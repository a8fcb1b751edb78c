"""A pod that is made while another of its name, gone from the API, still ends: each is its own."""

from typing import Final

from fakecri import prints
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import Workload, ignores_term, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, LONG = Feature.API, Feature.STATUS, Feature.VIRTUAL_TIME
GRACE_S: Final = 15
"""So long the first one ends."""
NAME: Final = "web"
HUGE: Final = "1000"
"""More CPUs than any node has."""


def stubborn(line: str = "") -> Workload:
    """A container that runs to the end of its grace period, and prints a line at its start."""
    return ignores_term(prints(line)) if line else ignores_term()


def uid_of(node: Node) -> str:
    """The UID of the pod of that name, as the API has it now."""
    return str((node.api.pod(NAME) or {}).get("metadata", {}).get("uid", ""))


def uids_of_sandboxes(node: Node) -> list[str]:
    """The UIDs of the pods of that name whose sandboxes were made, in order."""
    calls = node.calls("RunPodSandbox", pod=NAME)
    return [str(call.request.config.metadata.uid) for call in calls]


async def replace_by_namesake(node: Node, old: PodPlan, new: PodPlan) -> tuple[str, str]:
    """Run `old`, take it from the API, so that it ends with its own grace period, and make `new` of
    the same name; returns both UIDs."""
    await node.api.create_pod(old)
    await node.wait_running(NAME)
    before = uid_of(node)
    node.api.vanish_pod(NAME)
    await node.run_until(
        lambda: node.count("StopContainer", pod=NAME),
        within_s=limits.WATCH_S + limits.NOTICE_S,
        what="the first one is being stopped",
    )
    await node.api.create_pod(new)
    await node.run_until(lambda: uid_of(node) not in ("", before), within_s=1, what="the second")
    return before, uid_of(node)


async def first_has_ended(node: Node) -> None:
    """Run until nothing is left of the first one at the runtime."""
    await node.run_until(
        lambda: any(call.succeeded for call in node.calls("StopPodSandbox", pod=NAME)),
        within_s=GRACE_S + limits.STOP_S,
        what="the first one has ended",
    )
    await node.run_for(limits.NOTICE_S + limits.HOUSEKEEPING_S)


async def wait_new_runs(node: Node) -> None:
    """Run until the second one runs, while the first one still ends."""
    await node.run_until(
        lambda: node.api.phase(NAME) == "Running" and node.running(NAME),
        within_s=limits.START_S,
        what="the second one runs",
    )
    stops = [call for call in node.calls("StopPodSandbox", pod=NAME) if call.succeeded]
    expect_equal(node, len(stops), 0, "sandboxes that have stopped")


@conformance(
    id="namesake-status",
    rules=["STAT-001.1", "STAT-002.1", "STAT-024", "LIFE-030", "LIFE-034.4", "LIFE-189.2"],
    needs=[API, STATUS],
    alone=True,
)
async def the_status_of_a_pod_is_its_own(node: Node) -> None:
    """The second one starts beside the first, with times, counts and containers of its own, and the
    end of the first is not told of it."""
    plan = pod(NAME, container("main", stubborn()), grace_s=GRACE_S)
    await node.api.create_pod(plan)
    await node.wait_running(NAME)
    await node.run_until(lambda: node.api.phase(NAME) == "Running", within_s=limits.START_S)
    first = (node.api.pod(NAME) or {})["status"]
    await node.run_for(2)
    node.api.vanish_pod(NAME)
    await node.api.create_pod(pod(NAME))
    await wait_new_runs(node)
    await first_has_ended(node)
    second = (node.api.pod(NAME) or {})["status"]
    expect_equal(node, second["phase"], "Running", "phase")
    expect(node, second["startTime"] > first["startTime"], "a later startTime", second)
    times = {c["type"]: c["lastTransitionTime"] for c in first["conditions"]}
    same = [c["type"] for c in second["conditions"] if c["lastTransitionTime"] <= times[c["type"]]]
    expect_equal(node, same, [], "conditions with a time of the first one")
    main, was = second["containerStatuses"][0], first["containerStatuses"][0]
    expect_equal(node, (main["restartCount"], main["lastState"]), (0, {}), "restarts, last state")
    expect(node, main["containerID"] != was["containerID"], "a container of its own", main)
    phases = [status["phase"] for status in node.statuses(NAME)]
    expect(node, not {"Failed", "Succeeded"} & set(phases), "no end", phases)


@conformance(
    id="namesake-requests", rules=["SRC-067", "SRV-020.1"], needs=[API, STATUS], alone=True
)
async def who_asks_by_name_gets_the_newest(node: Node) -> None:
    """A request for a log by the pod's name is about the second one as soon as it is there, and
    when the first one has ended; its sandbox has a log directory of its own."""
    old = pod(NAME, container("main", stubborn("old")), grace_s=GRACE_S)
    new = pod(NAME, container("main", stubborn("new")), grace_s=GRACE_S)
    uids = await replace_by_namesake(node, old, new)
    await wait_new_runs(node)
    await node.run_for(limits.NOTICE_S)
    path = f"/containerLogs/default/{node.runtime.pod_name(NAME)}/main"
    expect_equal(node, (await node.kubelet.get(path)).text, "new\n", "the log beside the first")
    await first_has_ended(node)
    expect_equal(node, (await node.kubelet.get(path)).text, "new\n", "the log after its end")
    expect_equal(node, uids_of_sandboxes(node), list(uids), "UIDs of the sandboxes")
    calls = node.calls("RunPodSandbox", pod=NAME)
    places = [str(call.request.config.log_directory) for call in calls]
    own = [place.endswith(f"_{uid}") for place, uid in zip(places, uids, strict=True)]
    expect(node, all(own), "a log directory for each", places)


@conformance(
    id="namesake-probes",
    rules=["PROBE-002", "PROBE-091.1", "PROBE-094"],
    needs=[API, STATUS, LONG],
    alone=True,
)
async def the_probes_of_a_pod_are_its_own(node: Node) -> None:
    """The second one is probed from its start though the first one still is: it becomes ready by
    its own probe; and when the first one has ended, a liveness that fails restarts it."""
    probe = ExecProbe(period_s=1)
    old = container("main", stubborn(), probes={"readiness": probe, "liveness": probe})
    later = ExecProbe(from_s=4, period_s=1)
    ends = ExecProbe(until_s=GRACE_S + 15, period_s=1, failure_threshold=1)
    new = container("main", runs(), probes={"readiness": later, "liveness": ends})
    await replace_by_namesake(node, pod(NAME, old, grace_s=GRACE_S), pod(NAME, new))
    await wait_new_runs(node)
    expect_equal(node, node.container(NAME, "main")["ready"], False, "ready at its start")
    await node.run_until(
        lambda: node.container(NAME, "main").get("ready"),
        within_s=4 + limits.NOTICE_S,
        what="the second one is ready",
    )
    await first_has_ended(node)
    expect_equal(node, node.container(NAME, "main")["restartCount"], 0, "restarts")
    await node.run_until(
        lambda: node.container(NAME, "main").get("restartCount") == 1,
        within_s=15 + limits.NOTICE_S + limits.STOP_S,
        what="the second one is restarted",
    )


@conformance(id="namesake-of-refused", rules=["LIFE-225.1"], needs=[API, STATUS], alone=True)
async def a_pod_is_not_refused_for_its_namesake(node: Node) -> None:
    """A pod of the name of one that was refused, and deleted by force, is looked at anew, and
    runs."""
    wants = {"requests": {"cpu": HUGE}}
    await node.api.create_pod(pod(NAME, container("main", resources=wants)))
    await node.run_until(
        lambda: node.api.phase(NAME) == "Failed",
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="the first one is refused",
    )
    await node.api.delete_pod(NAME, grace_s=0)
    await node.api.create_pod(pod(NAME, container("main", resources={"requests": {"cpu": "10m"}})))
    await node.run_until(
        lambda: node.api.phase(NAME) == "Running",
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="the second one runs",
    )
    status = (node.api.pod(NAME) or {})["status"]
    expect_equal(node, (status.get("reason"), status.get("message")), (None, None), "reason")


@conformance(id="namesake-pull", rules=["BACK-206.1"], needs=[API, STATUS, Feature.REGISTRY, LONG])
async def a_pod_does_not_wait_for_the_pulls_of_its_namesake(node: Node) -> None:
    """While an image is in back-off for the first one, the second one pulls it at once."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/nothing:1"

    def pulls() -> int:
        return sum(call.request.image.image == image for call in node.calls("PullImage"))

    await node.api.create_pod(pod(NAME, container("main", image=image)))
    await node.run_until(lambda: pulls() == 3, within_s=90, what="three pulls")
    await node.run_for(limits.NOTICE_S)  # it has failed, and is tried again 40 s later
    before = pulls()
    await node.api.delete_pod(NAME, grace_s=0)
    await node.api.create_pod(pod(NAME, container("main", image=image)))
    await node.run_until(
        lambda: pulls() > before, within_s=limits.START_S, what="the second one pulls"
    )
