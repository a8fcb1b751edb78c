"""How statuses are written: which requests, how often, and what they leave alone."""

import re
from itertools import pairwise
from typing import Any

from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.cases.status.conditions import (
    condition,
    set_condition,
    status,
    until,
    words,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, KnownBug, conformance

API, FAULTS, RESTART, KILL = Feature.API, Feature.FAULTS, Feature.RESTART, Feature.OUTSIDE_KILL
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
STATUS_PATH = "/pods/web/status$"


def times_in(value: Any) -> list[str]:
    """All texts in a status that begin like a time."""
    if isinstance(value, dict):
        return [time for item in value.values() for time in times_in(item)]
    if isinstance(value, list):
        return [time for item in value for time in times_in(item)]
    return [value] if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value) else []


@conformance(
    id="status-requests",
    rules=[
        "STAT-022.1",
        "STAT-022.2",
        "STAT-022.3",
        "STAT-022.4",
        "STAT-022.5",
        "STAT-006.1",
        "LIFE-189.1",
        "LIFE-189.3",
    ],
    needs=[API],
)
async def a_status_is_got_and_then_patched(node: Node) -> None:
    """Each status is written as the difference to what the API server holds now: a GET, then a
    strategic merge patch with the UID. Its times have whole seconds."""
    await node.run_for(0.4)  # so that nothing happens at whole seconds
    await node.api.run_pods(pod("web", container("main", in_turn(exits(1, after_s=3.3), runs()))))
    await node.run_until(
        lambda: node.api.container("web", "main").get("restartCount") == 1,
        within_s=3.3 + limits.NOTICE_S,
        what="a restart of main at the API",
    )
    uid = (node.api.pod("web") or {})["metadata"]["uid"]
    gets, patches = node.api.requests("GET", "/pods/web$"), node.api.requests("PATCH", STATUS_PATH)
    before = 0
    for patch in patches:
        got = [g for g in gets if before < g.seq < patch.seq]
        expect(node, got, "a GET before each PATCH", [r.seq for r in (*gets, *patches)])
        kind = "application/strategic-merge-patch+json"
        expect_equal(node, patch.content_type, kind, "content type of the patch")
        expect_equal(node, patch.body["metadata"].get("uid"), uid, "UID in the patch")
        before = patch.seq
    later = [r.body["status"] for r in patches[1:]]
    expect(node, later, "a second patch", len(patches))
    again = [key for body in later for key in ("startTime", "qosClass", "hostIP") if key in body]
    expect_equal(node, again, [], "fields that did not change, in later patches")
    odd = [time for time in times_in(status(node)) if not SECONDS.fullmatch(time)]
    expect_equal(node, odd, [], "times that are no whole seconds")


@conformance(
    id="idle-status-is-silent",
    rules=["STAT-007.1", "STAT-007.3", "SRC-062.1"],
    needs=[API],
)
async def nothing_is_written_while_nothing_changes(node: Node) -> None:
    """While a pod stays as it is no request about its status is sent, even if others write
    conditions into it, or the pod is synced."""
    await node.api.run_pods(pod("web"))
    await until(node, "Ready", "True")
    await node.run_for(limits.NOTICE_S)
    before = asked(node)
    await set_condition(node, "example.com/seen", "True")
    await node.run_for(limits.STATUS_PASS_S + limits.NOTICE_S)
    await node.api.patch_pod("web", {"metadata": {"labels": {"look": "again"}}})
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, asked(node), before, "requests about the pod so far")


@conformance(
    id="claim-status-is-silent",
    rules=["STAT-007.4"],
    needs=[API],
    bugs=[
        KnownBug(
            "136238", "What others write about resource claims is taken for a change", fixed="1.36"
        )
    ],
)
async def what_others_write_about_claims_leads_to_no_request(node: Node) -> None:
    """No request about a pod's status is sent because others write into it which resource claims
    were made for the pod."""
    await node.api.run_pods(pod("web"))
    await until(node, "Ready", "True")
    await node.run_for(limits.NOTICE_S)
    before = asked(node)
    claims = [{"name": "c", "resourceClaimName": "mine"}]
    await node.api.patch_pod("web", {"status": {"resourceClaimStatuses": claims}}, status=True)
    await node.run_for(limits.STATUS_PASS_S + limits.NOTICE_S)
    await node.api.patch_pod("web", {"metadata": {"labels": {"look": "again"}}})
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, asked(node), before, "requests about the pod so far")


def asked(node: Node) -> int:
    """The kubelet's requests about the pod web and its status."""
    return len(node.api.requests("GET", "/pods/web$")) + len(written(node))


def written(node: Node) -> list[Any]:
    """The kubelet's patches of the status of web: those that carry its UID."""
    requests = node.api.requests("PATCH", STATUS_PATH)
    return [r for r in requests if "uid" in (r.body.get("metadata") or {})]


@conformance(id="amounts-are-no-texts", rules=["STAT-021.4"], needs=[API], since="1.34", alone=True)
async def an_amount_that_is_written_otherwise_is_no_difference(node: Node) -> None:
    """An amount in the status that the API server writes in another way than the kubelet sends it
    (100M for 100000000) is left alone; one that is another amount is corrected within 10 s."""
    asking = {"cpu": "1", "memory": "100M"}
    main = container("main", resources={"requests": asking, "limits": asking})
    await node.api.run_pods(pod("web", main))
    await until(node, "Ready", "True")
    await node.run_for(limits.NOTICE_S)
    (row,) = status(node)["containerStatuses"]
    sent_row = written(node)[-1].body["status"]["containerStatuses"][0]
    texts = [row_of["resources"]["limits"]["memory"] for row_of in (row, sent_row)]
    expect_equal(
        node, texts, ["100M", "100000000"], "the limit as it is stored, and as it was sent"
    )
    before = len(written(node))
    await node.run_for(limits.STATUS_PASS_S + limits.NOTICE_S)
    expect_equal(node, len(written(node)), before, "patches of the status so far")
    wrong = row | {"resources": row["resources"] | {"limits": {"cpu": "2", "memory": "100M"}}}
    await node.api.patch_pod("web", {"status": {"containerStatuses": [wrong]}}, status=True)
    await node.run_until(
        lambda: len(written(node)) > before,
        within_s=limits.STATUS_PASS_S + limits.NOTICE_S,
        what="the wrong amount is corrected",
    )


@conformance(id="delete-retried", rules=["STAT-030.5", "STAT-021.2"], needs=[API])
async def a_delete_that_failed_is_tried_again(node: Node) -> None:
    """A stopped pod that the API server did not let the kubelet delete is deleted within 10 s after
    it does."""
    await node.api.run_pods(pod("web"))
    await node.api.delete_pod("web", grace_s=2)
    with node.api.fails("DELETE", "/pods/web$"):
        await node.run_until(
            lambda: node.api.phase("web") in ("Succeeded", "Failed"),
            within_s=limits.NOTICE_S + limits.STOP_S,
            what="a terminal phase",
        )
        await node.run_for(limits.NOTICE_S)
        expect(node, node.api.pod("web"), "the pod is still there")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=limits.STATUS_PASS_S + limits.NOTICE_S,
        what="the pod is deleted",
    )


@conformance(id="delete-waits-for-phase", rules=["STAT-030.3", "LIFE-200.2"], needs=[API])
async def a_pod_is_not_deleted_before_the_api_has_its_phase(node: Node) -> None:
    """While the API server does not take the terminal phase of a stopped pod, the kubelet does not
    delete the pod; it does within 10 s after that."""
    await node.api.run_pods(pod("web"))
    with node.api.fails("PATCH", STATUS_PATH):
        await node.api.delete_pod("web", grace_s=2)
        await node.run_until(
            lambda: node.count("StopPodSandbox", pod="web"), within_s=limits.STOP_S, what="a stop"
        )
        await node.run_for(limits.STATUS_PASS_S + limits.NOTICE_S)
        expect_equal(node, node.api.phase("web"), "Running", "phase of the pod, still at the API")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=2 * limits.STATUS_PASS_S,
        what="the pod is deleted",
    )


@conformance(
    id="statuses-in-order",
    rules=["STAT-006.2", "STAT-006.3", "STAT-004.1", "STAT-009.1", "LIFE-174.1"],
    needs=[API],
)
async def each_container_has_its_own_readiness(node: Node) -> None:
    """Statuses are sorted by name, those of init containers are in the order of the spec; a
    readiness result changes its own container, and Ready only when all are ready, with the time at
    which it became what it is."""
    init = [container(name, exits(0)) for name in ("z", "a")]
    first = container("b", probes={"readiness": ExecProbe(from_s=3)})
    last = container("a-last", probes={"readiness": ExecProbe(from_s=8)})
    await node.api.create_pod(pod("web", first, last, init=init))
    await node.run_until(
        lambda: node.api.container("web", "a-last").get("state", {}).get("running"),
        within_s=limits.START_S + limits.NOTICE_S,
        what="all containers run",
    )
    since = condition(node, "ContainersReady")["lastTransitionTime"]
    await node.run_until(
        lambda: node.api.container("web", "b")["ready"],
        within_s=3 + limits.NOTICE_S,
        what="b ready",
    )
    expect_equal(node, node.api.container("web", "a-last")["ready"], False, "ready of a-last")
    message = "containers with unready status: [a-last]"
    await node.run_until(
        lambda: words(node, "ContainersReady")[2] == message,
        within_s=limits.NOTICE_S,
        what=f"message {message}",
    )
    expect_equal(
        node, condition(node, "ContainersReady")["lastTransitionTime"], since, "lastTransitionTime"
    )
    await until(node, "Ready", "True", 8 + limits.NOTICE_S)
    for field, expected_names in (
        ("containerStatuses", ["a-last", "b"]),
        ("initContainerStatuses", ["z", "a"]),
    ):
        names = [c["name"] for c in status(node)[field]]
        expect_equal(node, names, expected_names, field)


@conformance(id="foreign-condition-newest", rules=["STAT-026.3", "STAT-009.2"], needs=[API])
async def a_condition_of_others_is_never_set_back(node: Node) -> None:
    """A condition of another client has the value that this client wrote last, also when the
    kubelet writes a status that it began with an older one."""
    probed = container("main", probes={"readiness": ExecProbe(from_s=10)})
    other = container("other", in_turn(exits(1, after_s=4), runs()))
    await node.api.create_pod(pod("web", probed, other))
    await api_running(node, "web")
    await set_condition(node, "example.com/seen", "True")
    await node.run_until(
        lambda: node.api.container("web", "other").get("restartCount") == 1,
        within_s=4 + limits.NOTICE_S,
        what="a later status",
    )
    await set_condition(node, "example.com/seen", "False")
    await until(node, "Ready", "True", 10 + limits.NOTICE_S)
    value = condition(node, "example.com/seen").get("status")
    expect_equal(node, value, "False", "foreign condition")


@conformance(
    id="two-readiness-gates", rules=["STAT-041.1", "STAT-041.2", "STAT-041.3"], needs=[API]
)
async def all_gates_and_all_containers_count(node: Node) -> None:
    """A pod is ready when its containers are and all its readiness gates are True; a gate may be
    one of the kubelet's own conditions."""
    gates = [{"conditionType": t} for t in ("Initialized", "example.com/a", "example.com/b")]
    late = container("main", probes={"readiness": ExecProbe(from_s=6)})
    await node.api.create_pod(pod("web", late, readinessGates=gates))
    await api_running(node, "web")
    await set_condition(node, "example.com/a", "True")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, words(node, "Ready")[1], "ContainersNotReady", "reason of Ready")
    await until(node, "ContainersReady", "True", 6 + limits.NOTICE_S)
    missing = 'corresponding condition of pod readiness gate "example.com/b" does not exist.'
    due = ("False", "ReadinessGatesNotReady", missing)
    await node.run_until(
        lambda: words(node, "Ready") == due, within_s=limits.NOTICE_S, what=f"Ready {due}"
    )
    await set_condition(node, "example.com/b", "True")
    await until(node, "Ready", "True", limits.NOTICE_S)


@conformance(id="sidecar-unready", rules=["STAT-040.6"], needs=[API])
async def a_sidecar_that_is_not_ready_makes_the_pod_unready(node: Node) -> None:
    """The readiness of a sidecar counts as that of a regular container; init containers that have
    not run do not count."""
    late = sidecar("side", probes={"readiness": ExecProbe(from_s=5)})
    await node.api.create_pod(pod("web", init=[late]))
    await node.run_until(
        lambda: node.api.container("web", "main").get("ready"),
        within_s=limits.START_S,
        what="main ready",
    )
    message = "containers with unready status: [side]"
    due = ("False", "ContainersNotReady", message)
    expect_equal(node, words(node, "Ready"), due, "Ready")
    await until(node, "Ready", "True", 5 + limits.NOTICE_S)


@conformance(
    id="status-writes-in-order", rules=["STAT-020.3", "STAT-023.4"], needs=[API], alone=True
)
async def statuses_are_written_one_after_the_other(node: Node) -> None:
    """While writes of statuses take their time no second one is under way, neither of the same pod
    nor of another: what is written last is the newest."""
    work = in_turn(exits(1, after_s=1), exits(2, after_s=2), runs())
    with node.api.slow("PATCH", "/pods/.*/status$", 1.5):
        await node.api.create_pod(pod("web", container("main", work)))
        await node.api.create_pod(pod("other", container("main", work), container("more", work)))
        await node.run_until(
            lambda: node.count("StartContainer", container="main") == 6,
            within_s=3 * limits.START_S + limits.restart_after(10).high_s,
            what="the third starts of both",
        )
        await node.run_for(limits.STATUS_PASS_S)
    await node.run_for(limits.STATUS_PASS_S)
    paths = (("GET", "/pods/(web|other)$"), ("PATCH", "/pods/(web|other)/status$"))
    written = [r for method, path in paths for r in node.api.requests(method, path)]
    written.sort(key=lambda r: r.started_s)
    overlaps = [
        (first.path, second.path)
        for first, second in pairwise(written)
        if second.started_s < first.ended_s - 0.01
    ]
    expect(node, len(written) > 10, "more than ten requests", len(written))
    expect_equal(node, overlaps, [], "requests that began before the one before them was answered")
    for name in ("web", "other"):
        restarts = node.api.container(name, "main")["restartCount"]
        expect_equal(node, restarts, 2, f"restarts of main in {name} at the API")


@conformance(id="status-of-a-404", rules=["STAT-023.1"], needs=[API, KILL])
async def a_pod_that_the_server_does_not_find_is_left_out(node: Node) -> None:
    """While the API server says that a pod is not there its new status is not written, and nothing
    is said of it; those of other pods are. When the pod is found its status follows within one
    pass."""
    await node.api.run_pods(pod("web"), pod("other"))
    await node.run_for(limits.NOTICE_S)
    began = len(written(node))
    with node.api.fails("GET", "/pods/web$", status=404):
        await node.runtime.kill_container("main", pod="web")
        await node.runtime.kill_container("main", pod="other")
        await node.run_until(
            lambda: node.api.container("other", "main").get("restartCount") == 1,
            within_s=2 * limits.NOTICE_S,
            what="a restart of main in other at the API",
        )
        await node.run_for(limits.STATUS_PASS_S)
        expect_equal(node, len(written(node)), began, "patches of the status of web so far")
        expect_equal(node, node.api.container("web", "main")["restartCount"], 0, "restarts of web")
        expect(node, node.running("web"), "web runs")
    await node.run_until(
        lambda: node.api.container("web", "main").get("restartCount") == 1,
        within_s=limits.STATUS_PASS_S + 1,
        what="a restart of main in web at the API",
    )
    warned = [e["reason"] for e in node.events(pod="web") if e["type"] != "Normal"]
    expect_equal(node, [r for r in warned if r != "BackOff"], [], "warnings about web")


@conformance(id="namesake-not-asked", rules=["STAT-024.1", "STAT-024.2"], needs=[API], alone=True)
async def the_status_of_a_pod_that_is_another_one_by_now_is_forgotten(node: Node) -> None:
    """A pod that was replaced at the API server by another one of its name, and that takes its time
    to stop, is not asked for again and again: its status was for an object that is gone. Nothing of
    it is written to the new one."""
    await node.api.run_pods(pod("web", container("main", ignores_term()), grace_s=60))
    node.api.vanish_pod("web")
    await node.api.create_pod(pod("web", container("main", runs())))
    await node.run_until(
        lambda: node.count("StopContainer", pod="web") and node.api.phase("web") == "Running",
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="the old one stops, the new one is shown to run",
    )
    await node.run_for(limits.STATUS_PASS_S)
    before, shown = len(node.api.requests("GET", "/pods/web$")), status(node)
    await node.run_for(2 * limits.STATUS_PASS_S + 1)
    asked_again = len(node.api.requests("GET", "/pods/web$")) - before
    expect_equal(node, asked_again, 0, "requests for web while nothing changes")
    expect_equal(node, status(node), shown, "the status of the new pod")
