"""Events while the API server is away, refuses them, or has lost them."""

from datetime import datetime

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import MISSING_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

API, VIRTUAL = Feature.API, Feature.VIRTUAL_TIME
RETRY_S = 10.0


@conformance(
    id="events-outlast-outage",
    rules=["BACK-012.7"],
    level=Level.SHOULD,
    needs=[API, VIRTUAL],
    alone=True,
)
async def what_happens_without_a_server_is_told_later(node: Node) -> None:
    """Events of a time without the API server are sent when it is back, each once, in their order,
    with the time at which they happened."""
    await node.run_until(node.api.node_uid, within_s=limits.START_S, what="a Node object")
    await node.run_for(limits.NOTICE_S)
    before_s = node.unix_s
    with node.api.down():
        await node.apply_static(pod("web", container("main", in_turn(exits(1, after_s=2), runs()))))
        await node.run_until(
            lambda: node.count("StartContainer", container="main") == 2,
            within_s=2 + limits.START_S + limits.SYNC_ERROR_S,
            what="the second start of main",
        )
        await node.run_for(65)
        after_s = node.unix_s - 60
        expect_equal(node, node.events("Started"), [], "events without a server")
    await node.run_until(
        lambda: node.event_count("Started", pod="web") == 2,
        within_s=RETRY_S + limits.NOTICE_S,
        what="both events Started",
    )
    counts = {r: node.event_count(r, pod="web") for r in ("Pulled", "Created", "Started")}
    expect_equal(node, counts, {"Pulled": 2, "Created": 2, "Started": 2}, "events")
    # The first of them was tried in vain while the server was away, the others waited for it.
    for event in node.events(pod="web"):
        for field in ("firstTimestamp", "lastTimestamp"):
            at_s = datetime.fromisoformat(event[field]).timestamp()
            expect(node, before_s - 1 <= at_s <= after_s, f"{field} in the outage", event)


@conformance(
    id="events-given-up", rules=["BACK-012.8"], level=Level.SHOULD, needs=[API, VIRTUAL], alone=True
)
async def an_event_that_is_refused_is_not_sent_again(node: Node) -> None:
    """An event that the server refuses, or fails to store, is given up; later ones are sent."""
    await node.run_until(node.api.node_uid, within_s=limits.START_S, what="a Node object")
    await node.run_for(limits.NOTICE_S)
    for status, name in ((403, "one"), (500, "two")):
        with node.api.fails("POST", "/events$", status=status):
            await node.api.create_pod(pod(name))
            await node.wait_running(name)
            await node.run_for(limits.NOTICE_S)
        await node.run_for(2 * RETRY_S)
        expect_equal(node, node.events("Started", pod=name), [], f"events after {status}")
    await node.api.create_pod(pod("three"))
    await node.run_until(
        lambda: node.events("Started", pod="three"), within_s=limits.START_S, what="a later event"
    )


@conformance(
    id="events-lost-by-the-server", rules=["BACK-012.6"], level=Level.SHOULD, needs=[API, VIRTUAL]
)
async def an_event_that_the_server_has_lost_is_posted_again(node: Node) -> None:
    """A repeated event whose object is gone is posted again, with the count and the first time that
    it has."""
    missing = container("main", image=MISSING_IMAGE, imagePullPolicy="Never")
    await node.api.create_pod(pod("web", missing))
    await node.run_until(
        lambda: node.event_count("ErrImageNeverPull", pod="web") >= 2,
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what="ErrImageNeverPull twice",
    )
    (event,) = node.events("ErrImageNeverPull", pod="web")
    await node.api.delete_object("events", event["metadata"]["name"])
    await node.run_until(
        lambda: node.events("ErrImageNeverPull", pod="web"),
        within_s=2 * limits.SYNC_ERROR_S,
        what="the event is there again",
    )
    (again,) = node.events("ErrImageNeverPull", pod="web")
    expect(node, again["count"] > event["count"], "a higher count", (event["count"], again))
    expect_equal(node, again["firstTimestamp"], event["firstTimestamp"], "firstTimestamp")
