"""How many images are pulled at a time, and how often."""

import re
from collections.abc import Sequence
from typing import Any

from conformance.cases.images.seen import (
    PULL_RETRY_S,
    PULLED_S,
    pulls,
)
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import container, pod
from conformance.harness.node import Node
from conformance.registry import Feature, conformance

API, STATUS, FAULTS, REGISTRY = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.REGISTRY
TAKES_S = 3.0
PODS = ("one", "two", "three")


async def pull_three(node: Node) -> list[Any]:
    """Run three pods, each with an image that takes a while to pull, and return the pulls."""
    registry = await node.runtime.registry()
    with node.runtime.on("PullImage").delays(TAKES_S):
        for name in PODS:
            await registry.add(f"{name}:1")
            image = f"{registry.open_host}/{name}:1"
            await node.apply_static(pod(name, container("main", image=image)))
        await node.run_until(
            lambda: all(node.running(name) for name in PODS),
            within_s=len(PODS) * TAKES_S + PULLED_S,
            what="the three pods run",
        )
    return list(node.calls("PullImage"))


def most_at_once(node: Node, calls: Sequence[Any]) -> int:
    """How many of the calls were under way at the same time."""
    starts = [node.time_s(call) for call in calls]
    return max(sum(node.time_s(c) <= moment < node.ended_s(c) for c in calls) for moment in starts)


@conformance(id="pulls-serial", rules=["BACK-208"], needs=[STATUS, FAULTS, REGISTRY])
async def pulls_come_one_at_a_time_by_default(node: Node) -> None:
    """By default the node pulls one image after the other."""
    calls = await pull_three(node)
    expect_equal(node, (len(calls), most_at_once(node, calls)), (3, 1), "pulls, most at a time")


@conformance(
    id="pulls-parallel",
    rules=["BACK-208"],
    needs=[STATUS, FAULTS, REGISTRY],
    node_config={"serializeImagePulls": False},
)
async def parallel_pulls_have_no_limit_of_their_own(node: Node) -> None:
    """With serializeImagePulls false all images are pulled at the same time."""
    calls = await pull_three(node)
    expect_equal(node, (len(calls), most_at_once(node, calls)), (3, 3), "pulls, most at a time")


@conformance(
    id="pulls-two-at-once",
    rules=["BACK-208"],
    needs=[STATUS, FAULTS, REGISTRY],
    node_config={"maxParallelImagePulls": 2},
)
async def the_number_of_parallel_pulls_can_be_limited(node: Node) -> None:
    """maxParallelImagePulls 2 alone makes pulls parallel, two at a time."""
    calls = await pull_three(node)
    expect_equal(node, (len(calls), most_at_once(node, calls)), (3, 2), "pulls, most at a time")


def seconds(text: str) -> float:
    """Seconds of a duration as events have it: `1m2.5s`, `850ms`."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    found = re.findall(r"([0-9.]+)(ms|h|m|s)", text)
    return sum(float(number) * units[unit] for number, unit in found)


@conformance(id="pull-waiting-told", rules=["BACK-208", "BACK-204"], needs=[API, FAULTS, REGISTRY])
async def the_event_tells_the_waiting_apart(node: Node) -> None:
    """When two images are pulled one after the other, the second event names two durations: that of
    the pull, and that with the wait for its turn."""
    registry = await node.runtime.registry()
    with node.runtime.on("PullImage").delays(TAKES_S):
        for name in PODS[:2]:
            await registry.add(f"{name}:1")
            image = f"{registry.open_host}/{name}:1"
            await node.api.create_pod(pod(name, container("main", image=image)))
        await node.run_until(
            lambda: all(node.events("Pulled", pod=name) for name in PODS[:2]),
            within_s=2 * TAKES_S + PULLED_S,
            what="both events Pulled",
        )
    texts = [node.events("Pulled", pod=name)[0]["message"] for name in PODS[:2]]
    times = [re.search(r" in (\S+) \((\S+) including waiting\)", text) for text in texts]
    told = sorted((seconds(found[2]), seconds(found[1])) for found in times if found)
    expect(node, len(told) == 2, "two durations in each event", texts)
    (first_s, _), (second_s, alone_s) = told
    low_s = TAKES_S - 0.01
    expect(node, first_s >= low_s and alone_s >= low_s, f"{TAKES_S:g} s for each pull", texts)
    expect(node, second_s - alone_s > TAKES_S - 1, "the second with the time it waited", texts)


@conformance(
    id="pull-rate",
    rules=["BACK-208"],
    needs=[API, STATUS, REGISTRY],
    node_config={"registryPullQPS": 1, "registryBurst": 1, "serializeImagePulls": False},
)
async def a_pull_above_the_rate_fails_at_once(node: Node) -> None:
    """With a rate of one pull per second, of pulls that begin within that second all but one fail
    without a call to the runtime, and are backed off like any other failure."""
    registry = await node.runtime.registry()
    images = {name: f"{registry.open_host}/{name}:1" for name in PODS}
    for name, image in images.items():
        await registry.add(f"{name}:1")
        await node.api.create_pod(pod(name, container("main", image=image)))

    def refused() -> list[str]:
        texts = {n: f'Failed to pull image "{images[n]}": pull QPS exceeded' for n in PODS}
        told = {n: [e["message"] for e in node.events("Failed", pod=n)] for n in PODS}
        return [name for name in PODS if texts[name] in told[name]]

    within_s = 2 * PULL_RETRY_S
    await node.run_until(refused, within_s=within_s, what="an event Failed: pull QPS exceeded")
    late = images[refused()[0]]
    expect_equal(node, pulls(node, late), [], "pulls of the refused image")
    first_s = min(node.times_s("PullImage"))  # the refused one was within a second of it
    await node.run_until(
        lambda: all(node.running(name) for name in PODS),
        within_s=40 + 4 * PULL_RETRY_S,
        what="the containers run after a later try",
    )
    gap_s = node.time_s(pulls(node, late)[0]) - first_s
    expect(node, gap_s >= 10, "the pull at least 10 s after the refused one", gap_s)
