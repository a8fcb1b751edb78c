"""The node's lease, by which the cluster knows that its kubelet lives."""

from itertools import pairwise
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, FAULTS, RESTART = Feature.API, Feature.FAULTS, Feature.RESTART
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
COLLECTION = f"{LEASES}$"
THE_LEASE = f"{LEASES}/[^/]+$"
THE_NODE = r"/api/v1/nodes/[^/]+$"
SOON_S = 7.0 + limits.START_S  # NODE-041: between two tries, and a start
PERIOD_S = 10.4  # NODE-040: a quarter of 40 s, and 4 %


def lease(node: Node) -> dict[str, Any]:
    """The lease of the node; {} when there is none."""
    store = node.api.fake.store
    leases = store.items("leases.coordination.k8s.io", "kube-node-lease")
    return next((dict(item) for item in leases if item["metadata"]["name"] == node.name), {})


def renewals(node: Node) -> list[float]:
    """When the kubelet wrote its lease again."""
    return [request.started_s for request in node.api.requests("PUT", THE_LEASE)]


async def until_leased(node: Node) -> dict[str, Any]:
    """Run until there is a lease, and the kubelet has been told so; returns it."""
    await node.run_until(
        lambda: lease(node) and node.api.requests("POST", COLLECTION),
        within_s=SOON_S + PERIOD_S,
        what="a lease",
    )
    return lease(node)


@conformance(
    id="lease-content", rules=["NODE-040.1", "NODE-040.3", "NODE-041.1"], needs=[API], alone=True
)
async def the_lease_names_its_holder_and_its_owner(node: Node) -> None:
    """The kubelet reads its lease, which is not there, and makes it: held by the node for 40 s,
    renewed now, with microseconds, and owned by the Node object."""
    own = await until_leased(node)
    spec = own["spec"]
    expect_equal(node, spec["holderIdentity"], node.name, "holderIdentity")
    expect_equal(node, spec["leaseDurationSeconds"], 40, "leaseDurationSeconds")
    expect_equal(node, len(spec["renewTime"]), len("2026-01-02T03:04:05.678901Z"), "renewTime")
    (owner,) = own["metadata"].get("ownerReferences", [{}])
    expected = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.api.node_uid()}
    expect_equal(node, {key: owner.get(key) for key in expected}, expected, "owner")
    first = node.api.requests("GET", THE_LEASE)[0].started_s
    post = node.api.requests("POST", COLLECTION)[-1].started_s
    expect(node, first <= post, "a read of the lease before it is made", (first, post))


@conformance(id="lease-renewed", rules=["NODE-040.1", "NODE-040.2"], needs=[API], alone=True)
async def the_lease_is_renewed_every_ten_seconds(node: Node) -> None:
    """The lease gets a new time every 10 to 10.4 s, with a write alone: it is not read again."""
    await until_leased(node)
    await node.run_until(lambda: renewals(node), within_s=PERIOD_S + 1, what="a first renewal")
    before, reads = lease(node)["spec"]["renewTime"], len(node.api.requests("GET", THE_LEASE))
    await node.run_until(
        lambda: len(renewals(node)) >= 5, within_s=4 * PERIOD_S + 2, what="five renewals"
    )
    expect_spans(node, renewals(node), [Span(10.0, 10.5)] * 4, "renewals of the lease")
    expect(node, lease(node)["spec"]["renewTime"] > before, "a later renewTime", before)
    expect_equal(node, len(node.api.requests("GET", THE_LEASE)), reads, "reads of the lease")


@conformance(
    id="lease-renewed-at-random", rules=["NODE-040.2"], needs=[API, Feature.VIRTUAL_TIME],
    node_config={"nodeLeaseDurationSeconds": 400},
)  # fmt: skip
async def the_nodes_of_a_cluster_do_not_renew_together(node: Node) -> None:
    """The time between two renewals differs: up to 4 % is added by chance."""
    await node.run_until(  # the first time comes a period later, if the Node was not there yet
        lambda: len(renewals(node)) >= 9, within_s=10 * 104 + 10, what="nine renewals"
    )
    gaps = [later - earlier for earlier, later in pairwise(renewals(node))]
    rounded = [round(gap, 2) for gap in gaps]
    expect(node, max(gaps) - min(gaps) > 0.4, "gaps that differ", rounded)
    expect(node, all(100 <= gap <= 104.5 + node.slack_s for gap in gaps), "100 to 104 s", rounded)


@conformance(
    id="lease-duration", rules=["NODE-040.1", "NODE-040.2"], needs=[API],
    node_config={"nodeLeaseDurationSeconds": 20},
)  # fmt: skip
async def the_duration_of_the_lease_sets_its_renewals(node: Node) -> None:
    """A lease of 20 s says so, and is renewed every 5 to 5.2 s."""
    own = await until_leased(node)
    expect_equal(node, own["spec"]["leaseDurationSeconds"], 20, "leaseDurationSeconds")
    await node.run_until(
        lambda: len(renewals(node)) >= 4, within_s=4 * 5.2 + 2, what="four renewals"
    )
    expect_spans(node, renewals(node), [Span(5.0, 5.3)] * 3, "renewals of the lease")


@conformance(
    id="lease-adopted", rules=["NODE-040.1", "NODE-041.1"], needs=[API, RESTART], since="1.34"
)
async def a_restarted_kubelet_goes_on_with_its_lease(node: Node) -> None:
    """A kubelet that is started again makes no second lease: it renews the one that is there, and
    corrects its duration."""
    own = await until_leased(node)
    posts = len(node.api.requests("POST", COLLECTION))
    await node.kubelet.restart(nodeLeaseDurationSeconds=60)
    await node.run_until(
        lambda: lease(node)["spec"]["leaseDurationSeconds"] == 60,
        within_s=SOON_S,
        what="the new duration",
    )
    expect_equal(node, len(node.api.requests("POST", COLLECTION)), posts, "leases made")
    expect_equal(node, lease(node)["metadata"]["uid"], own["metadata"]["uid"], "UID of the lease")


@conformance(id="lease-write-fails", rules=["NODE-041.2"], needs=[API], alone=True)
async def a_renewal_that_fails_is_tried_five_times_and_then_read(node: Node) -> None:
    """While the server refuses the write, the kubelet tries five times, reads the lease, tries five
    times more, and then waits for the next period."""
    await until_leased(node)
    await node.run_until(lambda: renewals(node), within_s=PERIOD_S + 1, what="a first renewal")
    before, reads = len(renewals(node)), len(node.api.requests("GET", THE_LEASE))
    with node.api.fails("PUT", THE_LEASE):
        await node.run_until(
            lambda: len(renewals(node)) > before, within_s=PERIOD_S + 1, what="a renewal"
        )
        await node.run_for(3)
        expect_equal(node, len(renewals(node)) - before, 10, "writes of the lease")
        read = len(node.api.requests("GET", THE_LEASE)) - reads
        expect_equal(node, read, 1, "reads of the lease")
    stale = lease(node)["spec"]["renewTime"]
    await node.run_until(
        lambda: lease(node)["spec"]["renewTime"] > stale,
        within_s=PERIOD_S + 1,
        what="a renewal with the next period",
    )


@conformance(id="lease-conflict", rules=["NODE-041.2"], needs=[API], alone=True)
async def a_lease_that_somebody_else_changed_is_read_and_renewed(node: Node) -> None:
    """When another client has changed the lease, the renewal is refused; the kubelet reads the
    lease and renews it at once, with what the other has written."""
    await until_leased(node)
    await node.run_until(lambda: renewals(node), within_s=PERIOD_S + 1, what="a first renewal")
    await node.run_for(1)
    patch = {"metadata": {"labels": {"team": "a"}}}
    merge = "application/merge-patch+json"
    await node.api.send("PATCH", f"{LEASES}/{node.name}", patch, merge)
    before, writes = lease(node)["spec"]["renewTime"], len(renewals(node))
    await node.run_until(
        lambda: lease(node)["spec"]["renewTime"] > before,
        within_s=PERIOD_S + 1,
        what="a renewal in spite of the conflict",
    )
    await node.run_for(0.5)  # until that write was answered
    expect_equal(node, len(renewals(node)) - writes, 2, "writes: one refused, one taken")
    expect_equal(node, lease(node)["metadata"].get("labels"), {"team": "a"}, "labels")


@conformance(id="lease-deleted", rules=["NODE-041.1", "NODE-040.3"], needs=[API], alone=True)
async def a_lease_that_was_deleted_is_made_again(node: Node) -> None:
    """When the lease is gone, the next renewal makes a new one, with the Node as its owner."""
    deleted_lease = await until_leased(node)
    await node.api.send("DELETE", f"{LEASES}/{node.name}", {})
    await node.run_until(
        lambda: (
            lease(node).get("metadata", {}).get("uid", deleted_lease["metadata"]["uid"])
            != deleted_lease["metadata"]["uid"]
        ),
        within_s=PERIOD_S + 2,
        what="another lease",
    )
    owners = lease(node)["metadata"].get("ownerReferences", [])
    expect_equal(node, [owner["uid"] for owner in owners], [node.api.node_uid()], "owners")


@conformance(id="lease-read-fails", rules=["NODE-041.3"], needs=[API, RESTART])
async def a_lease_that_cannot_be_read_is_tried_ever_slower(node: Node) -> None:
    """While the lease cannot be read, it is tried after 200 ms, then after twice as long each time,
    up to 7 s, until it can."""
    await until_leased(node)
    await node.kubelet.stop()
    before = len(node.api.requests("GET", THE_LEASE))
    with node.api.fails("GET", THE_LEASE):
        await node.kubelet.start()
        await node.run_until(
            lambda: len(node.api.requests("GET", THE_LEASE)) >= before + 9,
            within_s=40 + limits.START_S,
            what="nine tries",
        )
    tries = [request.started_s for request in node.api.requests("GET", THE_LEASE)[before:]]
    delays = [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0, 7.0]
    expect_spans(node, tries, [Span(delay, delay + 0.1) for delay in delays], "tries to read")
    stale = lease(node)["spec"]["renewTime"]
    await node.run_until(
        lambda: lease(node)["spec"]["renewTime"] > stale, within_s=SOON_S, what="a renewal"
    )


@conformance(
    id="lease-without-node", rules=["NODE-041.4"], needs=[API, RESTART],
    node_config={"registerNode": False, "nodeLeaseDurationSeconds": 20},
)  # fmt: skip
async def there_is_no_lease_without_a_node(node: Node) -> None:
    """While there is no Node, the kubelet makes no lease, since the lease would have no owner; it
    does within a period once somebody has made the Node."""
    await node.run_for(2 * 5.2 + limits.START_S)
    expect_equal(node, lease(node), {}, "lease")
    expect_equal(node, len(node.api.requests("POST", COLLECTION)), 0, "leases made")
    await node.api.create_node({})
    await node.run_until(lambda: lease(node), within_s=5.2 + 1, what="a lease")
    owners = lease(node)["metadata"].get("ownerReferences", [])
    expect_equal(node, [owner["uid"] for owner in owners], [node.api.node_uid()], "owners")


@conformance(
    id="lease-write-hangs", rules=["NODE-012"], level=Level.SHOULD, needs=[API],
    node_config={"nodeLeaseDurationSeconds": 4},
)  # fmt: skip
async def a_renewal_without_an_answer_is_given_up_before_the_lease_ends(node: Node) -> None:
    """A write of the lease that gets no answer is given up after the duration of the lease, where
    that is less than the period of the status, and tried again."""
    await until_leased(node)
    await node.run_until(lambda: renewals(node), within_s=3, what="a first renewal")
    before = len(renewals(node))
    with node.api.fake.hangs("PUT", THE_LEASE, times=1):
        await node.run_until(
            lambda: len(renewals(node)) >= before + 2, within_s=1.1 + 4 + 1, what="another try"
        )


@conformance(id="lease-runtime-away", rules=["NODE-051.4"], needs=[API, FAULTS], alone=True)
async def the_lease_is_renewed_while_the_runtime_is_away(node: Node) -> None:
    """A node whose runtime does not answer is not ready, and its lease is renewed all the same."""
    await until_leased(node)
    with node.runtime.on("Status").fails("UNAVAILABLE", "away"):
        await node.run_until(
            lambda: node.api.node_condition("Ready").get("status") == "False",
            within_s=60,
            what="Ready False",
        )
        before = len(renewals(node))
        await node.run_for(2 * PERIOD_S + 1)
        expect(node, len(renewals(node)) >= before + 2, "two renewals", renewals(node)[before:])


@conformance(id="lease-server-away", rules=["NODE-041.3"], needs=[API], alone=True)
async def the_lease_is_renewed_soon_after_the_server_is_back(node: Node) -> None:
    """After a minute without the API server the lease is renewed within 7 s of its return."""
    await until_leased(node)
    with node.api.down():
        await node.run_for(60)
    stale = lease(node)["spec"]["renewTime"]
    await node.run_until(
        lambda: lease(node)["spec"]["renewTime"] > stale, within_s=7 + 1, what="a renewal"
    )
