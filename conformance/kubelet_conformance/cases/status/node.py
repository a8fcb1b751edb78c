"""What the Node object shows, and when it is written."""

from functools import partial
from itertools import pairwise
from typing import Any

from kubecri.v1 import api_pb2 as cri

from fakecri.deviceplugin import FakeDevicePlugin
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import IMAGE, OTHER_IMAGE, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS, RESTART = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.RESTART
IMAGES_S = 30.0  # between two lists of images
LISTED_S = IMAGES_S + 20  # a list, and an update of the Node after ten; less than two lists
THE_NODE = r"/api/v1/nodes/[^/]+$"
OF_THE_NODE = r"/api/v1/nodes/[^/]+/status$"
SLOW = {"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "8s"}


NAMED = cri.Image(
    id="sha256:6e616d6564",
    repo_tags=[f"localhost/named:{number}" for number in range(4)],
    repo_digests=[f"localhost/named{number}@sha256:{'0' * 64}" for number in range(3)],
    size=1 << 39,  # the second largest: the smallest of many are not listed (NODE-035.1)
)
BIG = cri.Image(id="sha256:626967", repo_tags=["localhost/big:1"], size=1 << 40)


@conformance(
    id="node-images",
    rules=["NODE-035.1", "NODE-035.2"],
    needs=[API, FAULTS, RESTART],
    node_config={"nodeStatusMaxImages": -1},
)
async def the_node_tells_of_its_images(node: Node) -> None:
    """The Node lists the images with their sizes, the largest first, and of each at most five
    names, digests before tags."""
    images = node.runtime.on("ListImages")
    images.changes_answer(lambda answer: answer.images.extend([NAMED, BIG]))
    await node.kubelet.restart()
    await node.run_until(
        lambda: any(i["sizeBytes"] == BIG.size for i in node.api.node_status("images") or []),
        within_s=LISTED_S,
        what="the largest image in the Node's status",
    )
    node_images = node.api.node_status("images")
    sizes = [image["sizeBytes"] for image in node_images]
    expect_equal(node, sizes, sorted(sizes, reverse=True), "sizes of the images, largest first,")
    names = [name for image in node_images for name in image["names"]]
    expect(node, {IMAGE, OTHER_IMAGE} <= set(names), f"the images {IMAGE} and {OTHER_IMAGE}", names)
    for image in node_images:
        digests = ["@" in name for name in image["names"]]
        first = sorted(digests, reverse=True)
        expect_equal(node, digests, first, f"digests before tags in {image['names']}: flags")
    expect_equal(node, sizes[0], BIG.size, "size of the first image")
    expect_equal(node, sizes[1:2], [NAMED.size], "size of the second image")
    expected_names = [*NAMED.repo_digests, *NAMED.repo_tags[:2]]
    expect_equal(node, node_images[1]["names"], expected_names, "names of the second image")


@conformance(id="node-handlers", rules=["NODE-035.5"], needs=[API, FAULTS, RESTART], since="1.36")
async def the_node_tells_of_the_handlers_of_its_runtime(node: Node) -> None:
    """The Node lists the runtime's handlers by their names."""

    def handlers(answer: Any) -> None:
        for name in ("zebra", "ant"):
            answer.runtime_handlers.add(name=name)

    def shown() -> list[str]:
        return [row["name"] for row in node.api.node_status("runtimeHandlers") or []]

    node.runtime.on("Status").changes_answer(handlers)
    await node.kubelet.restart()

    await node.run_until(lambda: "ant" in shown(), within_s=5 + 12, what="the handlers")
    expect_equal(node, shown(), sorted(shown()), "handlers, by name,")


@conformance(
    id="node-images-all", rules=["NODE-035.1", "NODE-035.3"], needs=[API, FAULTS],
    node_config={"nodeStatusMaxImages": -1},
)  # fmt: skip
async def the_node_tells_of_all_images_and_of_changes(node: Node) -> None:
    """With nodeStatusMaxImages -1 the Node lists as many images as the runtime has. An image that
    was removed is gone from the list after 30 s and an update."""

    def names() -> set[str]:
        images = node.api.node_status("images") or []
        return {name for image in images for name in image["names"]}

    def without_other(answer: Any) -> None:
        remaining = [image for image in answer.images if OTHER_IMAGE not in image.repo_tags]
        del answer.images[:]
        answer.images.extend(remaining)

    listed = await node.runtime.direct.call("ListImages", cri.ListImagesRequest())
    tags = {tag for image in listed.images for tag in image.repo_tags}
    await node.run_until(
        lambda: tags <= names(), within_s=LISTED_S, what=f"images of the runtime: {tags}"
    )
    node.runtime.on("ListImages").changes_answer(without_other)  # it is everybody's: it stays
    await node.run_until(
        lambda: OTHER_IMAGE not in names(), within_s=LISTED_S, what=f"no {OTHER_IMAGE}"
    )


@conformance(
    id="node-images-most", rules=["NODE-035.1"], needs=[API], node_config={"nodeStatusMaxImages": 1}
)
async def the_node_tells_of_as_many_images_as_it_may(node: Node) -> None:
    """With nodeStatusMaxImages 1 the Node lists the largest image only."""
    await node.run_until(
        lambda: node.api.node_status("images"), within_s=LISTED_S, what="images of the Node"
    )
    expect_equal(node, len(node.api.node_status("images")), 1, "images")


@conformance(id="node-soon-ready", rules=["NODE-013"], needs=[API, FAULTS, RESTART])
async def a_node_whose_runtime_answers_late_is_ready_at_once(node: Node) -> None:
    """When the runtime answers only after the Node was written as not ready, the Node becomes Ready
    a moment later, without waiting for the next period of its status."""
    await node.kubelet.stop()
    with node.runtime.on("Status").fails("UNKNOWN", "not yet"):
        await node.kubelet.start()
        await node.run_until(
            lambda: node.api.node_condition("Ready").get("status") == "False",
            within_s=10 + limits.START_S,
            what="Ready False",
        )
        await node.run_for(0.5)
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("status") == "True",
        within_s=2.5,
        what="Ready True",
    )


@conformance(
    id="node-status-rewritten", rules=["NODE-010.3", "NODE-010.4"], needs=[API], node_config=SLOW
)
async def an_unchanged_status_is_written_every_report_period(node: Node) -> None:
    """A status that does not change is written again: for the first time after half to one and a
    half of the report period, then after each whole one."""
    await node.run_for(40)
    patches = node.api.requests("PATCH", OF_THE_NODE)
    times = [request.started_s for request in patches]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    rounded = [round(gap, 2) for gap in gaps]
    expect(node, len(gaps) >= 3, "four or more writes of the Node in 40 s", rounded)
    # A look is due after 1 to 1.04 s; images and conditions may have changed at the start.
    steady = gaps[-2:]
    expect(node, all(8 <= gap <= 8 + 1.04 + node.slack_s for gap in steady), "8 s apart", rounded)


@conformance(
    id="node-status-report-delay", rules=["NODE-010.2", "NODE-010.4"],
    needs=[API, Feature.DEVICE_PLUGINS, Feature.VIRTUAL_TIME], node_config=SLOW, since="1.34",
)  # fmt: skip
async def the_report_after_a_change_comes_earlier_or_later(node: Node) -> None:
    """A changed status is written with the next look. The report that follows comes after half to
    one and a half of the report period, at random: thirty changes show earlier ones and later
    ones."""

    def writes() -> list[float]:
        return [request.started_s for request in node.api.requests("PATCH", OF_THE_NODE)]

    def written_after(count: int) -> bool:
        return len(writes()) > count

    def shown(wanted: str) -> bool:
        return node.api.capacity("example.com/widget") == wanted

    plugin = FakeDevicePlugin("example.com/widget", ["w0"])
    await node.plugins.plug_in(plugin)
    await node.run_for(3)
    gaps = []
    for number in range(2, 32):
        count = len(writes())
        plugin.set_devices(*(f"w{n}" for n in range(number)))
        await node.run_until(
            partial(shown, str(number)),
            within_s=2 * 1.04 + 1,
            what=f"{number} devices",
        )
        await node.run_for(0.5)  # until that write was answered
        count = len(writes())
        await node.run_until(partial(written_after, count), within_s=1.5 * 8 + 2)
        gap = round(writes()[count] - writes()[count - 1], 2)
        if gap > 2 * 1.04 + node.slack_s:  # else something else has changed, too
            gaps.append(gap)
    expect(node, len(gaps) >= 24, "24 reports after changes", gaps)
    slack_s = 1.04 + node.slack_s
    expect(node, all(4 <= gap <= 12 + slack_s for gap in gaps), "reports after 4 to 12 s", gaps)
    expect(node, min(gaps) < 7.9, "a report before the period of 8 s is over", gaps)
    expect(node, max(gaps) > 8 + slack_s, "a report later than the period of 8 s", gaps)


@conformance(
    id="node-early-report-fails", rules=["NODE-011.4"],
    needs=[API, Feature.DEVICE_PLUGINS, Feature.VIRTUAL_TIME],
    node_config={"nodeStatusUpdateFrequency": "250ms", "nodeStatusReportFrequency": "2s"},
    since="1.34",
)  # fmt: skip
async def an_early_report_that_fails_waits_for_the_whole_period(node: Node) -> None:
    """A report that comes before the report period is over, and is refused, is tried once and not
    with the next look. Up to 150 changes show one that comes early enough."""

    def writes() -> list[float]:
        return [request.started_s for request in node.api.requests("PATCH", OF_THE_NODE)]

    def written_after(count: int) -> bool:
        return len(writes()) > count

    plugin = FakeDevicePlugin("example.com/widget", ["w0"])
    await node.plugins.plug_in(plugin)
    await node.run_for(3)
    for number in range(150):
        plugin.set_devices(*(f"w{n}" for n in range(2 + number % 2)))
        await node.run_for(0.5)  # until it was written
        count = len(writes())
        with node.api.fails("PATCH", OF_THE_NODE):
            await node.run_until(partial(written_after, count), within_s=1.5 * 2 + 1)
            await node.run_for(0.4)  # and the next look
            early = writes()[count] - writes()[count - 1] < 2 - 0.5
            if early:
                break
    expect(node, early, "a report after less than 1.5 s")
    expect_equal(node, len(writes()) - count, 1, "writes of the early report")


@conformance(
    id="node-status-tried-again", rules=["NODE-011.2", "NODE-011.3"], needs=[API],
    node_config={"nodeStatusUpdateFrequency": "4s", "nodeStatusReportFrequency": "8s"},
)  # fmt: skip
async def a_status_that_cannot_be_written_is_tried_again_at_once(node: Node) -> None:
    """When the API server refuses the Node's status, the kubelet tries five times in a row and then
    waits for the next period. From the second time on it reads the Node first."""

    def writes() -> list[float]:
        return [request.started_s for request in node.api.requests("PATCH", OF_THE_NODE)]

    # At first reports come early, and an early one that fails waits for the next (NODE-011).
    await node.run_for(40)
    before = len(writes())
    with node.api.fails("PATCH", OF_THE_NODE):
        await node.run_until(lambda: len(writes()) > before, within_s=14, what="a write")
        await node.run_for(2)
        refused = writes()[before:]
        expect_equal(node, len(refused), 5, "writes")
    # The lease, where there is one, reads the Node at times of its own.
    reads = [request.started_s for request in node.api.requests("GET", THE_NODE)]
    reads = [time for time in reads if refused[0] <= time <= refused[-1]]
    expect_equal(node, len(reads), 4, "reads of the Node between the refused writes")
    expect(node, refused[-1] - refused[0] <= 1 + node.slack_s, "all refusals within 1 s", refused)
    await node.run_until(lambda: len(writes()) > before + 5, within_s=6, what="the next write")


@conformance(
    id="dns-missing", rules=["LIFE-135", "NODE-220.4"], needs=[API], node_config={"clusterDNS": []}
)
async def a_node_without_cluster_dns_says_so(node: Node) -> None:
    """Without clusterDNS a ClusterFirst pod gets the node's name servers, with a warning about the
    pod and one about the node; a pod with dnsPolicy Default gets them without a warning."""
    own = pod("plain", dnsPolicy="Default")
    await node.api.create_pod(own)
    await node.api.create_pod(pod("web"))
    await node.run_until(
        lambda: node.running("web") and node.running("plain"), within_s=limits.START_S
    )
    await node.run_until(
        lambda: node.events("MissingClusterDNS", pod="web"), within_s=5, what="event"
    )
    text = (
        'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" '
        'policy. Falling back to "Default" policy.'
    )
    events = node.events("MissingClusterDNS")
    about = {e["involvedObject"]["kind"]: e["message"] for e in events}
    expect_equal(node, about.get("Node"), text, "message about the node")
    expect(node, about.get("Pod", "").endswith(f". {text}"), "message about the pod", about)
    expect_equal(node, len(node.events("MissingClusterDNS", pod="plain")), 0, "events of plain")
