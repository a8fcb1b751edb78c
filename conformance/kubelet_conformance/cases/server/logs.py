"""Logs of containers over HTTP."""

import asyncio
import re

from fakecri import prints
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(Z|[+-]\d\d:\d\d) ")


async def said(node: Node, *containers: Container) -> str:
    """The path of the log of `main` in a pod that has written five lines."""
    lines = tuple(float(n) for n in range(5))
    main = containers or (
        container("main", runs(*(prints("a line", at_s=at_s) for at_s in lines))),
    )
    await node.apply_static(pod("web", *main))
    await node.wait_running("web", "main")
    await node.run_for(4 + limits.NOTICE_S)
    return f"/containerLogs/default/{node.runtime.pod_name('web')}/main"


@conformance(id="logs-whole", rules=["SRV-020.3", "SRV-020.1"], needs=[STATUS])
async def a_log_is_shown_as_the_container_wrote_it(node: Node) -> None:
    """A log is plain text, without the times and names of the file, and sent in chunks."""
    answer = await node.kubelet.get(await said(node))
    expect_equal(node, (answer.status, answer.text), (200, "a line\n" * 5), "the log")
    expect(node, "content-length" not in answer.headers, "no length", answer.headers)
    kind = answer.headers.get("content-type", "text/plain")  # the kubelet does not say
    expect(node, kind.startswith("text/plain"), "text", kind)


@conformance(id="logs-tail", rules=["SRV-020.2"], needs=[STATUS])
async def the_last_lines_can_be_asked_for(node: Node) -> None:
    """tailLines, its old name tail, and `tail=all`."""
    path = await said(node)
    for query, lines in (
        *(("tailLines=2", 2), ("tailLines=0", 0), ("tailLines=99", 5), ("tail=1", 1)),
        *(("tail=all", 5), ("tail=all&tailLines=2", 5)),
    ):
        answer = await node.kubelet.get(f"{path}?{query}")
        expect_equal(node, (answer.status, answer.text), (200, "a line\n" * lines), query)
    every = (await node.kubelet.get(f"{path}?timestamps=1")).text.splitlines()
    last = (await node.kubelet.get(f"{path}?timestamps=1&tailLines=2")).text.splitlines()
    expect_equal(node, last, every[-2:], "the last two lines")


@conformance(id="logs-limit", rules=["SRV-020.2"], needs=[STATUS])
async def bytes_of_a_log_can_be_limited(node: Node) -> None:
    """limitBytes cuts the log, within a line, too."""
    path = await said(node)
    answer = await node.kubelet.get(f"{path}?limitBytes=9")
    expect_equal(node, (answer.status, answer.text), (200, "a line\na "), "limitBytes=9")


@conformance(id="logs-since", rules=["SRV-020.2", "SRV-023"], needs=[STATUS])
async def older_lines_can_be_left_out(node: Node) -> None:
    """sinceSeconds and sinceTime leave out what is older."""
    twice = runs(*(prints("a line", at_s=at_s) for at_s in (0.0, 12.0)))
    await node.apply_static(pod("web", container("main", twice)))
    await node.wait_running("web")
    await node.run_for(12 + limits.NOTICE_S)
    path = f"/containerLogs/default/{node.runtime.pod_name('web')}/main"
    for query, lines in (
        *(("sinceSeconds=8", 1), ("sinceSeconds=600", 2)),
        *(("sinceTime=2001-01-01T00:00:00Z", 2), ("sinceTime=2101-01-01T00:00:00Z", 0)),
    ):
        answer = await node.kubelet.get(f"{path}?{query}")
        expect_equal(node, answer.text, "a line\n" * lines, query)


@conformance(id="logs-timestamps", rules=["SRV-020.1", "SRV-023"], needs=[STATUS])
async def lines_can_have_their_times(node: Node) -> None:
    """timestamps puts the time before each line; `0` and `false` are false."""
    path = await said(node)
    for query in ("timestamps=true", "timestamps=1", "timestamps=yes", "timestamps"):
        lines = (await node.kubelet.get(f"{path}?{query}")).text.splitlines()
        expect(node, len(lines) == 5 and all(TIME.match(x) for x in lines), query, lines)
    for query in ("timestamps=false", "timestamps=0", "timestamps=False"):
        answer = await node.kubelet.get(f"{path}?{query}")
        expect_equal(node, answer.text, "a line\n" * 5, query)


@conformance(id="logs-bad-query", rules=["SRV-021.1"], needs=[STATUS], since="1.32")
async def odd_queries_are_told_before_the_pod_is_looked_for(node: Node) -> None:
    """Queries that cannot be read are 400, those that make no sense 422, whatever the pod."""
    path = "/containerLogs/default/nobody/main"
    for query, status, words in (
        ("tailLines=x", 400, "Unable to decode query."),
        ("limitBytes=1.5", 400, "Unable to decode query."),
        ("sinceTime=yesterday", 400, "Unable to decode query."),
        ("tailLines=-1", 422, "Invalid request."),
        ("limitBytes=0", 422, "Invalid request."),
        ("sinceSeconds=0", 422, "Invalid request."),
        ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "Invalid request."),
        ("stream=Both", 422, "Invalid request."),
        ("stream=Stdout&tailLines=1", 422, "Invalid request."),
    ):
        answer = await node.kubelet.get(f"{path}?{query}")
        expected_answer = (status, f'{{"message": "{words}"}}')
        expect_equal(node, (answer.status, answer.text), expected_answer, query)


@conformance(id="logs-unknown", rules=["SRV-021.2"], needs=[STATUS], alone=True)
async def unknown_pods_and_containers_are_told(node: Node) -> None:
    """A pod or container that is not there is 404, with its name."""
    path, name = await said(node), node.runtime.pod_name("web")
    answer = await node.kubelet.get("/containerLogs/default/nobody/main")
    expect_equal(
        node, (answer.status, answer.text), (404, 'pod "nobody" does not exist'), "unknown pod"
    )
    answer = await node.kubelet.get(path.replace("/default/", "/elsewhere/"))
    expect_equal(node, answer.status, 404, "status in another namespace")
    answer = await node.kubelet.get(path.replace("/main", "/other"))
    expected_answer = (404, f'container "other" not found in pod "{name}"')
    expect_equal(node, (answer.status, answer.text), expected_answer, "unknown container")


@conformance(
    id="logs-one-stream-refused",
    rules=["SRV-021.3"],
    needs=[STATUS],
    node_config={"featureGates": {"PodLogsQuerySplitStreams": False}},
    since="1.32",
)
async def one_stream_needs_its_gate(node: Node) -> None:
    """Without PodLogsQuerySplitStreams one stream alone is refused, all are not."""
    path = await said(node)
    answer = await node.kubelet.get(f"{path}?stream=Stdout")
    refusal = (
        'unable to return the given log stream: "Stdout". '
        "Please enable PodLogsQuerySplitStreams feature gate in kubelet"
    )
    expect_equal(node, (answer.status, answer.text), (400, refusal), "stream=Stdout")
    answer = await node.kubelet.get(f"{path}?stream=All")
    expect_equal(node, answer.status, 200, "status with stream=All")


@conformance(
    id="logs-one-stream",
    rules=["SRV-020.2"],
    needs=[STATUS],
    node_config={"featureGates": {"PodLogsQuerySplitStreams": True}},
    since="1.32",
)
async def one_stream_can_be_asked_for(node: Node) -> None:
    """With PodLogsQuerySplitStreams the lines of one stream can be asked for."""
    errors = container("main", runs(prints("a line", stream="stderr")))
    path = await said(node, errors)
    for stream, lines in (("Stdout", 0), ("Stderr", 1), ("All", 1)):
        answer = await node.kubelet.get(f"{path}?stream={stream}")
        expect_equal(node, answer.text, "a line\n" * lines, f"stream={stream}")


@conformance(id="logs-previous", rules=["SRV-022.1"], needs=[STATUS])
async def the_log_of_the_instance_before_can_be_asked_for(node: Node) -> None:
    """previous shows the last instance that ended, and without one says so."""
    turns = in_turn(exits(1, prints("first"), after_s=3.0), runs(prints("second")))
    await node.apply_static(pod("web", container("main", turns)))
    await node.wait_running("web")
    name = node.runtime.pod_name("web")
    path = f"/containerLogs/default/{name}/main"
    answer = await node.kubelet.get(f"{path}?previous=true")
    refusal = f'previous terminated container "main" in pod "{name}" not found'
    expect_equal(node, (answer.status, answer.text), (400, refusal), "previous of the first")
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 1,
        within_s=2 * limits.START_S + 10,
    )
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    answer = await node.kubelet.get(f"{path}?previous=true")
    expect_equal(node, (answer.status, answer.text), (200, "first\n"), "previous")
    answer = await node.kubelet.get(path)
    expect_equal(node, (answer.status, answer.text), (200, "second\n"), "the current one")


@conformance(id="logs-waiting", rules=["SRV-022.2", "SRV-021.4"], needs=[STATUS])
async def a_container_that_waits_for_its_image_has_no_log(node: Node) -> None:
    """The log of a container without its image is 400, with the reason."""
    missing = container("main", image="localhost/no-such-image:1", imagePullPolicy="Never")
    await node.apply_static(pod("web", missing))
    await node.run_until(
        lambda: "waiting" in node.container("web", "main").get("state", {}),
        within_s=limits.START_S,
    )
    await node.run_for(limits.NOTICE_S)
    name = node.runtime.pod_name("web")
    answer = await node.kubelet.get(f"/containerLogs/default/{name}/main")
    words = f'container "main" in pod "{name}" is waiting to start: ErrImageNeverPull'
    expect_equal(node, (answer.status, answer.text), (400, words), "the log")


@conformance(id="logs-init", rules=["SRV-022.3"], needs=[STATUS])
async def init_containers_have_logs_too(node: Node) -> None:
    """The log of an init container that has ended is shown."""
    first = container("first", exits(0, prints("prepared"), after_s=1.0))
    await node.apply_static(pod("web", init=[first]))
    await node.wait_running("web")
    name = node.runtime.pod_name("web")
    answer = await node.kubelet.get(f"/containerLogs/default/{name}/first")
    expect_equal(node, (answer.status, answer.text), (200, "prepared\n"), "the log")


@conformance(id="logs-follow", rules=["SRV-023"], level=Level.SHOULD, needs=[STATUS])
async def following_shows_new_lines_until_the_container_ends(node: Node) -> None:
    """A log that is followed shows lines as they come, and ends with the container."""
    work = exits(0, *(prints("a line", at_s=at_s) for at_s in (0.0, 6.0)), after_s=12.0)
    await node.apply_static(pod("web", container("main", work), restartPolicy="Never"))
    await node.wait_running("web")
    path = f"/containerLogs/default/{node.runtime.pod_name('web')}/main?follow=true"
    soon = await node.kubelet.get(path, for_s=limits.NOTICE_S)
    expect_equal(node, soon.text, "a line\n", "the first line")
    following = asyncio.ensure_future(node.kubelet.get(path))
    try:
        await node.run_until(following.done, within_s=12 + limits.STOP_S + limits.NOTICE_S)
        answer = following.result()
    finally:
        following.cancel()
    expect_equal(node, (answer.status, answer.text), (200, "a line\n" * 2), "both lines")


@conformance(id="logs-ended", rules=["SRV-022.1"], needs=[STATUS])
async def a_container_that_has_ended_still_has_its_log(node: Node) -> None:
    """The log of a container that has ended is shown, followed or not."""
    short_lived = container("main", exits(0, after_s=1.0))
    await node.apply_static(pod("web", short_lived, restartPolicy="Never"))
    await node.run_until(lambda: node.phase("web") == "Succeeded", within_s=limits.START_S + 5)
    path = f"/containerLogs/default/{node.runtime.pod_name('web')}/main"
    for query in ("", "?follow=true"):
        answer = await node.kubelet.get(f"{path}{query}")
        expect_equal(node, (answer.status, answer.text), (200, ""), f"the log {query}")
