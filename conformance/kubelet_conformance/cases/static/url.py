"""Static pods behind a URL."""

import json
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.manifest_url import URL
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

WEB = [Feature.MANIFEST_URL, Feature.VIRTUAL_TIME]
CONFIG: dict[str, Any] = {"staticPodURL": URL}
PERIOD_S = 20.0  # SRC-020
GONE_S = PERIOD_S + 30 + limits.STOP_S  # SRC-021: the next look, and the grace of the pod


async def until_asked(node: Node, more: int = 1) -> None:
    """Run until the kubelet has asked that many times more, and a moment longer."""
    before = len(node.web.asked)
    await node.run_until(
        lambda: len(node.web.asked) >= before + more,
        within_s=more * PERIOD_S + 1,
        what="a request for the URL",
    )
    await node.run_for(limits.NOTICE_S)


async def run_one(node: Node) -> None:
    """Serve one pod, and run until it runs."""
    node.serve_pods(pod("web"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 1,
        within_s=PERIOD_S + limits.START_S,
        what="the pod of the URL",
    )


@conformance(id="url-pod-runs", rules=["SRC-020.1", "SRC-022.1"], needs=WEB, node_config=CONFIG)
async def a_pod_behind_a_url_runs(node: Node) -> None:
    """The kubelet asks the URL every 20 s and runs the pod that it finds there; what stays the same
    changes nothing."""
    await run_one(node)
    await until_asked(node, more=4)
    times = [request.at_s for request in node.web.asked]
    expect_spans(node, times[-4:], [Span(PERIOD_S, PERIOD_S + 0.5)] * 3, "requests for the URL")
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(
    id="url-period", rules=["SRC-020.1"], needs=WEB,
    node_config={**CONFIG, "httpCheckFrequency": "5s"},
)  # fmt: skip
async def the_url_is_asked_as_often_as_configured(node: Node) -> None:
    """With httpCheckFrequency 5s the URL is asked every 5 s."""
    await node.run_for(21)
    times = [request.at_s for request in node.web.asked]
    expect_spans(node, times, [Span(5, 5.5)] * 3, "requests for the URL")


@conformance(
    id="url-headers", rules=["SRC-020.2"], needs=WEB,
    node_config={**CONFIG, "staticPodURLHeader": {"X-Token": ["a", "b"], "X-Node": ["n"]}},
)  # fmt: skip
async def all_headers_are_sent(node: Node) -> None:
    """Each value of each header of the configuration is sent."""
    await run_one(node)
    headers = sorted(pair for pair in node.web.asked[-1].headers if pair[0].startswith("X-"))
    expect_equal(node, headers, [("X-Node", "n"), ("X-Token", "a"), ("X-Token", "b")], "headers")


@conformance(id="url-slow", rules=["SRC-020.3"], needs=WEB, node_config=CONFIG)
async def an_answer_that_takes_too_long_is_given_up(node: Node) -> None:
    """An answer that takes more than 10 s changes nothing, and one of 9 s is taken."""
    await run_one(node)
    node.web.delay_s = 11
    node.serve_pods(pod("other"))
    await until_asked(node)
    await node.run_for(12)
    expect_equal(node, node.count("StartContainer", pod="other"), 0, "starts of other")
    node.web.delay_s = 9
    await node.run_until(
        lambda: node.count("StartContainer", pod="other") == 1,
        within_s=PERIOD_S + 12 + limits.START_S,
        what="the pod of the slow answer",
    )


@conformance(id="url-large", rules=["SRC-020.3"], needs=WEB, node_config=CONFIG)
async def an_answer_of_hundreds_of_kilobytes_is_read(node: Node) -> None:
    """A list with 300 KiB of annotations is read whole: its last pod runs."""
    padded = pod("first", annotations={f"note-{n}": "x" * 1000 for n in range(200)})
    node.serve_pods(padded, pod("last"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="last") == 1,
        within_s=PERIOD_S + limits.START_S,
        what="the last pod of the list",
    )


@conformance(id="url-fails", rules=["SRC-021.1"], needs=WEB, node_config=CONFIG)
async def an_answer_that_is_an_error_changes_nothing(node: Node) -> None:
    """While the URL answers 500, 404, or not at all, the pod runs on, and pods that such an answer
    holds are not run."""
    await run_one(node)
    for status in (500, 404, 0):
        node.serve_pods(pod("other"))
        node.web.status = status
        await until_asked(node)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    expect_equal(node, node.count("StartContainer", pod="other"), 0, "starts of other")


@conformance(id="url-empty", rules=["SRC-021.2"], needs=WEB, node_config=CONFIG)
async def an_empty_answer_ends_the_pods(node: Node) -> None:
    """An answer with status 200 and no body means that there are no pods."""
    await run_one(node)
    node.web.answers("")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web") >= 1, within_s=GONE_S, what="a stop"
    )


@conformance(id="url-list", rules=["SRC-022.1"], needs=WEB, node_config=CONFIG)
async def a_list_behind_a_url_runs(node: Node) -> None:
    """All pods of a list run; one that is missing in the next list ends."""
    node.serve_pods(pod("a"), pod("b"))
    await node.run_until(
        lambda: all(node.count("StartContainer", pod=name) == 1 for name in "ab"),
        within_s=PERIOD_S + limits.START_S,
        what="both pods",
    )
    node.serve_pods(pod("a"), pod("c"))
    await node.run_until(
        lambda: node.count("StopContainer", pod="b") >= 1, within_s=GONE_S, what="a stop of b"
    )
    expect_equal(node, node.count("StopContainer", pod="a"), 0, "stops of a")


@conformance(id="url-bad-item", rules=["SRC-022.2"], needs=WEB, node_config=CONFIG)
async def one_wrong_pod_refuses_the_whole_list(node: Node) -> None:
    """Of a list with a pod that is not valid nothing is run, and the pods of before run on."""
    await run_one(node)
    good, bad = pod("good").manifest, {"metadata": {"name": "bad"}, "spec": {"containers": []}}
    body = {"apiVersion": "v1", "kind": "PodList", "items": [good, bad]}
    node.web.answers(json.dumps(body))
    await until_asked(node)
    expect_equal(node, node.count("RunPodSandbox", pod="good"), 0, "sandboxes of good")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(id="url-nonsense", rules=["SRC-022.2"], needs=WEB, node_config=CONFIG)
async def an_answer_that_is_no_pod_changes_nothing(node: Node) -> None:
    """Texts that are neither a pod nor a list of pods change nothing; a pod after them is run."""
    await run_one(node)
    for body in ("<html>", "{", "[]", '{"kind": "Service", "apiVersion": "v1"}'):
        node.web.answers(body)
        await until_asked(node)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    node.serve_pods(pod("web"), pod("next"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="next") == 1,
        within_s=PERIOD_S + limits.START_S,
        what="the next pod",
    )
    expect(node, node.count("StopContainer", pod="web") == 0, "web runs on")


@conformance(
    id="url-duplicates",
    rules=["SRC-024.1", "SRC-024.2"],
    needs=[*WEB, Feature.API],
    node_config=CONFIG,
)
async def of_two_pods_of_one_name_the_first_is_run(node: Node) -> None:
    """Of two pods of the same name in one list the first is run; the other one is left out, which
    an event says, and the rest of the list is run."""
    first, second = (pod("web", metadata={"labels": {"v": v}}) for v in ("1", "2"))
    node.serve_pods(first, second, pod("other"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="other") == 1,
        within_s=PERIOD_S + limits.START_S,
        what="the other pod",
    )
    await until_asked(node)
    labels = [c.request.config.labels.get("v") for c in node.calls("RunPodSandbox", pod="web")]
    expect_equal(node, labels, ["1"], "labels of the sandboxes of web")
    event, *more = node.events("FailedValidation")
    expect_equal(node, len(more), 0, "further events FailedValidation")
    expect_equal(node, event["type"], "Warning", "type of the event")
    uid = event["involvedObject"]["uid"]
    name = f"web-{node.name}"
    text = (
        f"Error validating pod {name}_default({uid}) from http "
        f'due to duplicate pod name "{name}", ignoring'
    )
    expect_equal(node, event["message"], text, "message of the event")
    (sandbox,) = node.calls("RunPodSandbox", pod="web")
    expect(node, sandbox.uid != uid, "the event is about the second pod", uid)


@conformance(
    id="url-tolerations", rules=["SRC-035.3"], needs=[*WEB, Feature.API], node_config=CONFIG
)
async def a_pod_of_a_url_tolerates_what_its_manifest_says(node: Node) -> None:
    """The mirror of a pod of a URL has the tolerations of the manifest and no other."""
    own = {"key": "mine", "operator": "Exists"}
    node.serve_pods(pod("web", tolerations=[own]), pod("bare"))
    await node.run_until(
        lambda: node.api.pod("web") and node.api.pod("bare"),
        within_s=PERIOD_S + limits.START_S,
        what="both mirrors",
    )
    bodies = {r.body["metadata"]["name"]: r.body for r in node.api.requests("POST", "/pods$")}
    shown = {
        name: bodies[node.runtime.pod_name(name)]["spec"].get("tolerations")
        for name in ("web", "bare")
    }
    expect_equal(node, shown, {"web": [own], "bare": None}, "tolerations of the posted mirrors")
