"""How many images are pulled at a time, and how often."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from kubelet_conformance.cases.images.seen import (
    PULL_RETRY_S,
    PULLED_S,
    pulls,
    wait_event,
    wait_running,
)
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS, REGISTRY = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.REGISTRY
TAKES_S = 3.0
LOOK_S = 1.5
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


@conformance(id="pulls-serial", rules=["BACK-208.1"], needs=[STATUS, FAULTS, REGISTRY], alone=True)
async def pulls_come_one_at_a_time_by_default(node: Node) -> None:
    """By default the node pulls one image after the other."""
    calls = await pull_three(node)
    expect_equal(node, (len(calls), most_at_once(node, calls)), (3, 1), "pulls, most at a time")


@conformance(
    id="pulls-parallel",
    rules=["BACK-208.2"],
    needs=[STATUS, FAULTS, REGISTRY],
    node_config={"serializeImagePulls": False},
)
async def parallel_pulls_have_no_limit_of_their_own(node: Node) -> None:
    """With serializeImagePulls false all images are pulled at the same time."""
    calls = await pull_three(node)
    expect_equal(node, (len(calls), most_at_once(node, calls)), (3, 3), "pulls, most at a time")


@conformance(
    id="pulls-two-at-once",
    rules=["BACK-208.1", "BACK-208.2"],
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
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", text)
    return sum(float(number) * units[unit] for number, unit in parts)


@conformance(
    id="pull-waiting-told",
    rules=["BACK-208.3", "BACK-204.2"],
    needs=[API, FAULTS, REGISTRY],
    alone=True,
)
async def the_event_tells_the_waiting_apart(node: Node) -> None:
    """When two images are pulled one after the other, the second event names two durations: that of
    the pull and the look for the image's size, and that with the wait for its turn."""
    registry = await node.runtime.registry()
    slow_pull, slow_look = node.runtime.on("PullImage"), node.runtime.on("ImageStatus")
    with slow_pull.delays(TAKES_S), slow_look.delays(LOOK_S):
        for name in PODS[:2]:
            await registry.add(f"{name}:1")
            image = f"{registry.open_host}/{name}:1"
            await node.api.create_pod(pod(name, container("main", image=image)))
        await node.run_until(
            lambda: all(node.events("Pulled", pod=name) for name in PODS[:2]),
            within_s=2 * (TAKES_S + 2 * LOOK_S) + PULLED_S,
            what="both events Pulled",
        )
    texts = [node.events("Pulled", pod=name)[0]["message"] for name in PODS[:2]]
    times = [re.search(r" in (\S+) \((\S+) including waiting\)", text) for text in texts]
    durations_s = sorted((seconds(match[2]), seconds(match[1])) for match in times if match)
    expect(node, len(durations_s) == 2, "two durations in each event", texts)
    (first_s, _), (second_s, alone_s) = durations_s
    low_s = TAKES_S + LOOK_S - 0.01
    expect(node, first_s >= low_s and alone_s >= low_s, "a pull and a look for each", texts)
    expect(node, second_s - alone_s > TAKES_S - 1, "the second with the time it waited", texts)


@conformance(
    id="pull-rate",
    rules=["BACK-208.4"],
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
        two = (container("main", image=image), container("twin", image=image))
        await node.api.create_pod(pod(name, *two))

    def refused() -> list[str]:
        texts = {n: f'Failed to pull image "{images[n]}": pull QPS exceeded' for n in PODS}
        messages = {n: [e["message"] for e in node.events("Failed", pod=n)] for n in PODS}
        return [name for name in PODS if texts[name] in messages[name]]

    within_s = 2 * PULL_RETRY_S
    await node.run_until(refused, within_s=within_s, what="an event Failed: pull QPS exceeded")
    name = refused()[0]
    late = images[name]
    expect_equal(node, pulls(node, late), [], "pulls of the refused image")
    await wait_event(node, name, "BackOff", f'Back-off pulling image "{late}"')
    first_s = min(node.times_s("PullImage"))  # the refused one was within a second of it
    await node.run_until(
        lambda: all(node.running(name) for name in PODS),
        within_s=40 + 4 * PULL_RETRY_S,
        what="the containers run after a later try",
    )
    gap_s = node.time_s(pulls(node, late)[0]) - first_s
    expect(node, gap_s >= 10, "the pull at least 10 s after the refused one", gap_s)


async def many_images(node: Node, count: int) -> dict[str, str]:
    """So many images in the case's registry, by the name of the container that is to have them."""
    registry = await node.runtime.registry()
    names = [f"c{number}" for number in range(count)]
    for name in names:
        await registry.add(f"{name}:1")
    return {name: f"{registry.open_host}/{name}:1" for name in names}


def at_once(node: Node, within_s: float = 3.0) -> int:
    """How many pulls came within so many seconds of the first."""
    times = node.times_s("PullImage")
    return sum(time_s < times[0] + within_s for time_s in times)


@conformance(
    id="pull-rate-gaps",
    rules=["BACK-208.4"],
    needs=[API, STATUS, REGISTRY],
    node_config={"registryPullQPS": 1, "registryBurst": 1, "serializeImagePulls": False},
)
async def pulls_are_as_far_apart_as_the_rate_says(node: Node) -> None:
    """With a rate of one pull per second and a burst of one, of pods that come every 0.4 s only
    some may pull: between two pulls there is a second."""
    for name, image in (await many_images(node, 5)).items():
        await node.api.create_pod(pod(name, container("main", image=image)))
        await node.run_for(0.4)
    await node.run_until(
        lambda: node.count("PullImage") >= 2, within_s=PULLED_S, what="two pulls of five"
    )
    times = node.times_s("PullImage")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    expect(node, min(gaps) >= 0.9, "a second between two pulls", gaps)


@conformance(
    id="pull-burst",
    rules=["BACK-208.4"],
    needs=[API, STATUS, FAULTS, REGISTRY],
    node_config={"registryPullQPS": 1, "registryBurst": 3, "serializeImagePulls": False},
)
async def as_many_pulls_as_the_burst_come_at_once(node: Node) -> None:
    """With registryBurst 3 and one pull a second, three pods pull at once and a fourth and fifth
    are refused."""
    images = await many_images(node, 5)
    with node.runtime.on("PullImage").fails("UNKNOWN", "no"):
        for name, image in images.items():
            await node.api.create_pod(pod(name, container("main", image=image)))
        refused = "pull QPS exceeded"
        await node.run_until(
            lambda: any(e["message"].endswith(refused) for e in node.events("Failed")),
            within_s=PULLED_S,
            what=f"an event that ends with {refused}",
        )
    pull_count = at_once(node, 0.9)
    expect(node, pull_count in (3, 4), "three pulls at once, or four if one comes late", pull_count)


@conformance(
    id="pull-rate-off",
    rules=["BACK-208.4"],
    needs=[STATUS, REGISTRY],
    node_config={"registryPullQPS": 0, "registryBurst": 1},
)
async def a_rate_of_zero_is_no_limit(node: Node) -> None:
    """With registryPullQPS 0 every pull is made at once, whatever the burst is."""
    images = await many_images(node, 3)
    await node.apply_static(pod("web", *(container(n, image=i) for n, i in images.items())))
    await wait_running(node, "web", "c2")
    expect(node, at_once(node, 9.0) == 3, "three pulls without a failure between", at_once(node))


@conformance(
    id="pull-rate-by-turn",
    rules=["BACK-208.4"],
    needs=[API, STATUS, FAULTS, REGISTRY],
    node_config={"registryPullQPS": 1, "registryBurst": 1},
)
async def the_rate_counts_when_the_turn_comes(node: Node) -> None:
    """A pull that waits for another one is counted when its turn comes: if that was long, it is
    made, although both were asked for within the same second."""
    images = await many_images(node, 2)
    with node.runtime.on("PullImage").delays(TAKES_S):
        for name, image in images.items():
            await node.api.create_pod(pod(name, container("main", image=image)))
        for name in images:
            await node.run_until(
                partial(node.running, name),
                within_s=2 * TAKES_S + PULLED_S,
                what=f"{name} runs",
            )
    refused = [e["message"] for e in node.events("Failed")]
    expect_equal(node, refused, [], "events Failed")
