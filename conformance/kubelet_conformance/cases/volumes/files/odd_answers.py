"""ConfigMaps and tokens whose server, or whose Node, says something odd."""

from kubelet_conformance.cases.volumes.common import (
    VOLUME,
    config_map,
    run_with,
    wait_failed,
    with_volume,
)
from kubelet_conformance.cases.volumes.files.fetched import (
    BY_CACHE,
    LONG,
    MAPS,
    SETTINGS,
    TTL,
    asked,
    sync_now,
)
from kubelet_conformance.cases.volumes.files.tokens import REQUESTS, token, with_account
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance

AGAIN_S = 122.0
"""The longest pause between two tries of a volume (NODE-202.2)."""


@conformance(id="objects-cached-refused", rules=["NODE-207.5"], needs=LONG, node_config=BY_CACHE)
async def what_was_never_read_is_asked_for_until_it_comes(node: Node) -> None:
    """With the strategy Cache an object whose first read the server refuses keeps its pod waiting,
    and the event has the server's words; it is asked for at each try, and the pod starts when the
    server gives it."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    with node.api.fails("GET", MAPS, status=500):
        await node.api.create_pod(with_volume("web", SETTINGS))
        await wait_failed(node, "web")
        before = asked(node)
        await node.run_for(10)
        expect(node, asked(node) > before, "it is asked for again", asked(node) - before)
        expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    await node.run_until(
        lambda: node.running("web"), within_s=32 + limits.START_S, what="the pod runs"
    )
    expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": "1"}, "files")


@conformance(
    id="objects-cached-odd-ttl", rules=["NODE-207.5"], needs=LONG, node_config=BY_CACHE, alone=True
)
async def what_is_no_number_leaves_the_usual_time(node: Node) -> None:
    """An annotation of the Node that is no whole number of seconds counts as none: an object is
    fresh for a minute. With a negative one it is fetched at each read."""
    await node.run_until(node.api.node_object, within_s=limits.START_S, what="the Node")
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    for ttl, fetches in (("0s", False), ("-1", True), ("1.0", False), ("+0", True), ("", False)):
        await node.api.patch_node({"metadata": {"annotations": {TTL: ttl}}})
        await node.run_for(limits.WATCH_S)
        before = asked(node)
        await sync_now(node, "web")
        expect_equal(node, asked(node) > before, fetches, f"a sync fetches with {ttl!r}")


@conformance(id="volume-token-forgotten", rules=["NODE-207.4"], needs=LONG)
async def an_expired_token_is_forgotten(node: Node) -> None:
    """A minute after a token has expired nothing of it is known any more: the event tells of a
    token that cannot be had, not of one that expired."""
    await with_account(node)
    plan = with_volume("web", token(expirationSeconds=600), serviceAccountName="robot")
    first = (await run_with(node, plan))["token"]
    began = 'MountVolume.SetUp failed for volume "v" : failed to fetch token: '

    def is_forgotten() -> bool:
        messages = [event["message"] for event in node.events("FailedMount", pod="web")]
        return any(message.startswith(began) for message in messages)

    with node.api.fails("POST", REQUESTS, status=500):
        await node.run_for(600)
        await node.run_until(
            is_forgotten, within_s=65 + 2 * AGAIN_S, what=f"an event that begins with {began}"
        )
        files = node.machine.volume_files("web", VOLUME)
        expect_equal(node, files, {"token": first}, "files")
        expect(node, node.running("web"), "the pod runs", node.container("web", "main"))
    await node.run_until(
        lambda: node.machine.volume_files("web", VOLUME)["token"] != first,
        within_s=AGAIN_S + limits.NOTICE_S,
        what="another token",
    )
