"""How many similar events become few: counted, combined, dropped (BACK-012)."""

from typing import Any

from fakecri import Reply, replies
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import MISSING_IMAGE, Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, Level, conformance

API = Feature.API
COMBINED = "(combined from similar events): "
SPAM_BURST = 25


def imageless(count: int) -> list[Container]:
    """Containers whose images are absent and must not be pulled: each sync records for each of them
    one event with its own message and one with a common message."""
    return [
        container(f"c{i}", image=f"{MISSING_IMAGE}{i}", imagePullPolicy="Never")
        for i in range(count)
    ]


def written(node: Node, event_type: str) -> list[Any]:
    """The kubelet's requests that create or patch events of that type about the pod web."""
    events = {e["metadata"]["name"]: e for e in node.events(pod="web")}
    posts = node.api.requests("POST", "/events$")
    patches = node.api.requests("PATCH", "/events/")
    names = [r.body["metadata"]["name"] for r in posts]
    names += [r.path.split("?")[0].rsplit("/", 1)[-1] for r in patches]
    return [n for n in names if n in events and events[n]["type"] == event_type]


@conformance(id="similar-events-combined", rules=["BACK-012"], level=Level.SHOULD, needs=[API])
async def events_that_differ_in_their_message_are_combined(node: Node) -> None:
    """From the tenth different message on, events with the same object, type and reason become one
    event with a rising count."""
    await node.api.create_pod(pod("web", *imageless(12)))
    await node.run_until(
        lambda: node.event_count("ErrImageNeverPull", pod="web") >= 12,
        within_s=limits.START_S,
        what="twelve times ErrImageNeverPull",
    )
    events = node.events("ErrImageNeverPull", pod="web")
    plain = [e for e in events if not e["message"].startswith(COMBINED)]
    joined = [e for e in events if e["message"].startswith(COMBINED)]
    expect_equal(node, len(plain), 9, "events that are not combined")
    expect_equal(node, len(joined), 1, "combined events")
    expect_equal(node, joined[0]["count"], 3, "count of the combined event")
    expect(node, f'"{MISSING_IMAGE}11"' in joined[0]["message"], "the latest message", joined[0])
    expect(node, not joined[0].get("reportingComponent"), "no reporting component", joined[0])


@conformance(
    id="event-flood-dropped", rules=["BACK-012"], level=Level.SHOULD, needs=[API], since="1.32"
)
async def a_flood_of_events_about_one_object_is_dropped(node: Node) -> None:
    """After 25 events of one type about one pod the next ones are dropped; events of other types
    are still written (client-go up to 1.31 drops these as well)."""
    await node.api.create_pod(pod("web", *imageless(20), container("main")))
    await node.run_until(
        lambda: node.events("Started", pod="web"), within_s=limits.START_S, what="event Started"
    )
    await node.run_for(limits.SYNC_ERROR_S + limits.NOTICE_S)
    warnings = written(node, "Warning")
    expect_equal(node, len(warnings), SPAM_BURST, "requests for warnings about the pod")


@conformance(id="repeated-event-counts", rules=["BACK-012"], level=Level.SHOULD, needs=[API])
async def the_same_event_again_counts_up(node: Node) -> None:
    """A repeated event stays one object, whose count and last time change."""
    await node.api.create_pod(pod("web", *imageless(1)))
    await node.run_until(
        lambda: node.event_count("ErrImageNeverPull", pod="web") >= 3,
        within_s=limits.START_S + 2 * limits.SYNC_ERROR_S,
        what="ErrImageNeverPull three times",  # two may fall into one second
    )
    events = node.events("ErrImageNeverPull", pod="web")
    expect_equal(node, len(events), 1, "events ErrImageNeverPull")
    first, last = events[0]["firstTimestamp"], events[0]["lastTimestamp"]
    expect(node, last > first, "lastTimestamp after firstTimestamp", (first, last))


@conformance(
    id="similar-events-go-on", rules=["BACK-012.2"], level=Level.SHOULD,
    needs=[API, Feature.VIRTUAL_TIME],
)  # fmt: skip
async def similar_events_stay_combined_while_they_come(node: Node) -> None:
    """Events that differ in their message only are combined for as long as each comes within ten
    minutes of the last, however long ago the first was."""
    answers = tuple(Reply(1, f"look {number}") for number in range(100))
    probe = {"exec": {"command": ["look"]}, "periodSeconds": 75}
    main = container("main", runs(replies(["look"], answers=answers)), readinessProbe=probe)
    await node.api.create_pod(pod("web", main))
    await node.run_for(limits.START_S + 19 * 75)
    events = node.events("Unhealthy", pod="web")
    plain = [e["message"] for e in events if not e["message"].startswith(COMBINED)]
    expect_equal(node, len(plain), 9, "events that are not combined")
    count = sum(e["count"] for e in events if e["message"].startswith(COMBINED))
    expect(node, count >= 9, "combined events", count)
