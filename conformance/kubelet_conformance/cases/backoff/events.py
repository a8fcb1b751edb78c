"""How events are counted, named, patched and slowed down by their sender (BACK-012)."""

from datetime import datetime

from kubelet_conformance.cases.lifecycle.answers.events import SPAM_BURST, imageless, written
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, VIRTUAL = Feature.API, Feature.VIRTUAL_TIME
ABSENT = "ErrImageNeverPull"
TWO_SYNCS_S = limits.START_S + 2 * limits.SYNC_ERROR_S


@conformance(
    id="event-of-a-changed-pod", rules=["BACK-012.1", "BACK-012.5", "BACK-012.4"],
    level=Level.SHOULD, needs=[API],
)  # fmt: skip
async def an_event_is_the_same_though_its_pod_has_changed(node: Node) -> None:
    """An event that comes again after its pod was changed is counted up all the same, by a patch of
    count, time and message; one about another container is another event. Each is named after its
    object and the nanosecond of its first time."""
    await node.api.create_pod(pod("web", *imageless(2)))
    await node.run_until(
        lambda: len(node.events(ABSENT, pod="web")) == 2, within_s=limits.START_S, what="two events"
    )
    await node.api.patch_pod("web", {"metadata": {"labels": {"changed": "yes"}}})
    await node.run_for(limits.NOTICE_S)
    before = node.event_count(ABSENT, pod="web")
    await node.run_until(
        lambda: node.event_count(ABSENT, pod="web") >= before + 4,
        within_s=TWO_SYNCS_S,
        what="four more of them",
    )
    events = node.events(ABSENT, pod="web")
    paths = sorted(event["involvedObject"]["fieldPath"] for event in events)
    expect_equal(node, paths, ["spec.containers{c0}", "spec.containers{c1}"], "events about")
    for request in node.api.requests("PATCH", "/events/"):
        expect(node, {*request.body} >= {"count", "lastTimestamp"}, "patched fields", request.body)
        expect(
            node,
            {*request.body} <= {"count", "lastTimestamp", "message", "series", "eventTime"},
            "nothing else is patched",
            request.body,
        )
    for event in node.events(pod="web"):
        name, _, digits = event["metadata"]["name"].rpartition(".")
        expect_equal(node, name, event["involvedObject"]["name"], "name before the dot")
        first_s = int(datetime.fromisoformat(event["firstTimestamp"]).timestamp())
        expect_equal(node, int(digits, 16) // 10**9, first_s, "the time in the name, in seconds")


@conformance(
    id="event-flood-refills", rules=["BACK-012.3"], level=Level.SHOULD, needs=[API, VIRTUAL]
)
async def a_flood_lets_one_event_pass_every_five_minutes(node: Node) -> None:
    """After a flood of events of one type about one object one more is sent every 300 s; it tells
    how often it happened, with those that were not sent."""
    await node.api.create_pod(pod("web", *imageless(20)))
    await node.run_for(limits.START_S + limits.SYNC_ERROR_S)
    began = len(written(node, "Warning"))
    expect_equal(node, began, SPAM_BURST, "requests for warnings about the pod at first")
    await node.run_for(285)
    expect(node, len(written(node, "Warning")) <= began + 1, "one more in 5 minutes")
    await node.run_for(400)
    more = len(written(node, "Warning")) - began
    expect(node, 2 <= more <= 3, "one request every 300 s", more)
    most = max(event.get("count", 1) for event in node.events(pod="web"))
    expect(node, most >= 20, "a count with those that were not sent", most)


@conformance(
    id="events-one-a-second", rules=["BACK-012.9"], level=Level.SHOULD, needs=[API], alone=True,
    node_config={"eventRecordQPS": 1, "eventBurst": 2},
)  # fmt: skip
async def events_are_sent_no_faster_than_configured(node: Node) -> None:
    """With eventRecordQPS 1 and eventBurst 2 no more than two events and one for each second are
    sent, and none is lost for it."""
    await node.api.create_pod(pod("web", container("a"), container("b"), container("c")))
    await node.run_until(
        lambda: len(node.events("Started", pod="web")) == 3,
        within_s=20 + limits.START_S,
        what="the events of three starts",
    )
    times = [request.started_s for request in node.api.requests("POST", "/events$")]
    for first, at_s in enumerate(times):
        count = sum(at_s <= other < at_s + 5 for other in times[first:])
        expect(node, count <= 2 + 5 + 1, "events in 5 s", count)
