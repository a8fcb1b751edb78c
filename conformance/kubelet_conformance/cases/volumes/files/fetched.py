"""How ConfigMaps and Secrets are kept up to date: watched, fetched when they are too old, or at
each read; what serves while the server is silent."""

from typing import Any

from kubelet_conformance.cases.volumes.common import (
    UPDATE_S,
    VOLUME,
    config_map,
    main,
    run_with,
    wait_failed,
    wait_files,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]
SETTINGS = {"configMap": {"name": "settings"}}
MAPS = r"/namespaces/default/configmaps"
BY_CACHE = {"configMapAndSecretChangeDetectionStrategy": "Cache"}
BY_GET = {"configMapAndSecretChangeDetectionStrategy": "Get"}
TTL = "node.alpha.kubernetes.io/ttl"
SYNC_S = limits.NOTICE_S


async def sync_now(node: Node, name: str) -> None:
    """Let the kubelet sync the pod, by a change of its annotations."""
    note = {"metadata": {"annotations": {"note": str(node.now_s)}}}
    await node.api.patch_pod(name, note)
    await node.run_for(SYNC_S)


def asked(node: Node) -> int:
    """How often ConfigMaps were asked for."""
    return len(node.api.requests("GET", MAPS))


@conformance(
    id="objects-cached", rules=["NODE-207.5", "NODE-201.3"], needs=LONG, node_config=BY_CACHE
)
async def an_object_is_fetched_again_after_a_minute(node: Node) -> None:
    """With the strategy Cache syncs within a minute ask for nothing and show the old content; a
    later one fetches the object, a new pod does at once."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    began_s, before = node.now_s, asked(node)
    await node.api.change_object("configmaps", "settings", {"data": {"a": "2"}})
    for _ in range(3):
        await sync_now(node, "web")
    expect_equal(node, asked(node), before, "requests within a minute")
    expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": "1"}, "files")
    files = await run_with(node, with_volume("other", SETTINGS))
    expect_equal(node, files, {"a": "2"}, "files of a new pod")
    await node.api.change_object("configmaps", "settings", {"data": {"a": "3"}})
    await node.run_for(62 - (node.now_s - began_s))
    await sync_now(node, "web")
    await node.run_for(10)
    await sync_now(node, "web")
    await wait_files(node, "web", {"a": "3"})


@conformance(
    id="objects-cached-ttl", rules=["NODE-207.5"], needs=LONG, node_config=BY_CACHE, alone=True
)
async def the_node_says_how_long_an_object_is_fresh(node: Node) -> None:
    """The Node's annotation says after how many seconds an object is fetched again: 300, then 0."""
    await node.run_until(node.api.node_object, within_s=limits.START_S, what="the Node")
    await node.api.patch_node({"metadata": {"annotations": {TTL: "300"}}})
    await node.run_for(limits.WATCH_S)
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    before = asked(node)
    await node.api.change_object("configmaps", "settings", {"data": {"a": "2"}})
    await node.run_for(UPDATE_S)
    expect_equal(node, asked(node), before, "requests while it is fresh")
    expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": "1"}, "files")
    await node.api.patch_node({"metadata": {"annotations": {TTL: "0"}}})
    await node.run_for(limits.WATCH_S)
    await sync_now(node, "web")
    expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": "2"}, "files at once")


@conformance(id="objects-got", rules=["NODE-207.5"], needs=LONG, node_config=BY_GET)
async def an_object_can_be_fetched_at_each_read(node: Node) -> None:
    """With the strategy Get each sync fetches the object, and what has changed is there at once."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    for value in ("2", "3"):
        before = asked(node)
        await node.api.change_object("configmaps", "settings", {"data": {"a": value}})
        await sync_now(node, "web")
        expect(node, asked(node) > before, "the object is asked for", asked(node) - before)
        expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": value}, "files")


@conformance(id="objects-cached-missing", rules=["NODE-207.5"], needs=LONG, node_config=BY_CACHE)
async def a_missing_object_is_asked_for_at_each_read(node: Node) -> None:
    """With the strategy Cache an object that is not there is asked for at each try, so that the pod
    starts soon after it was made."""
    await node.api.create_pod(with_volume("web", SETTINGS))
    await wait_failed(node, "web")
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await node.run_until(
        lambda: node.running("web"), within_s=20 + limits.START_S, what="the pod runs"
    )


@conformance(id="objects-cached-silent", rules=["NODE-207.5"], needs=LONG, node_config=BY_CACHE)
async def the_last_object_serves_while_the_server_fails(node: Node) -> None:
    """With the strategy Cache the object of the last answer serves while the server refuses to give
    one: no event, and a container that ends is started again; an object that was deleted does not
    serve."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    variables = [{"configMapRef": {"name": "settings"}}]
    main = container("main", in_turn(exits(1, after_s=80), runs()), envFrom=variables)
    mount = [{"name": VOLUME, "mountPath": "/v"}]
    await node.api.create_pod(
        pod(
            "web",
            main,
            container("other", volumeMounts=mount),
            volumes=[{"name": VOLUME, **SETTINGS}],
        )
    )
    await node.wait_running("web", "main", "other")
    with node.api.fails("GET", MAPS, status=500):
        await node.run_for(70)
        await node.run_until(
            lambda: node.count("StartContainer", container="main") == 2,
            within_s=10 + limits.START_S + limits.NOTICE_S,
            what="the second start of main",
        )
        await node.run_for(UPDATE_S)
    expect_equal(node, node.event_count("FailedMount", pod="web"), 0, "events FailedMount")
    expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": "1"}, "files")
    await node.api.delete_object("configmaps", "settings")
    await node.run_for(62)
    await sync_now(node, "web")
    await wait_failed(node, "web")


def variable(node: Node, number: int) -> Any:
    """The variable `a` with which main was created the `number`-th time."""
    envs = node.calls("CreateContainer", container="main")[number].request.config.envs
    return next((bytes(each.value) for each in envs if each.key == "a"), None)


@conformance(
    id="objects-unread",
    rules=["NODE-207.2", "NODE-207.1"],
    needs=LONG,
    node_config={"syncFrequency": "12s"},
)
async def an_object_that_nobody_reads_is_not_watched(node: Node) -> None:
    """An object that only variables use is read when containers start. When nobody has read it for
    five times syncFrequency it is no longer watched; the next start reads it as it is then, and
    watches it again."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    work = in_turn(exits(1, after_s=800), runs())
    variables = [{"configMapRef": {"name": "settings"}}]
    await node.api.create_pod(pod("web", container("main", work, envFrom=variables)))
    await node.wait_running("web")
    await node.run_for(5 * 12 + 60 + SYNC_S)
    before = asked(node)
    await node.run_for(620)  # a watch ends after 10 min at the latest, and is begun again
    expect_equal(node, asked(node), before, "requests while nobody reads")
    await node.api.change_object("configmaps", "settings", {"data": {"a": "2"}})
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=120 + limits.START_S + limits.NOTICE_S,
        what="the second start of main",
    )
    expect_equal(node, (variable(node, 0), variable(node, 1)), (b"1", b"2"), "the variable")
    expect(node, asked(node) > before, "it was asked for again", asked(node) - before)


@conformance(id="objects-late", rules=["NODE-207.3", "NODE-202.1"], needs=NEEDS, alone=True)
async def a_read_waits_a_second_for_the_server(node: Node) -> None:
    """A pod whose ConfigMap the server is slow to give does not wait longer than a second: an event
    tells, and the pod starts at a later try."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    with node.api.slow("GET", MAPS, 8):
        await node.api.create_pod(with_volume("web", SETTINGS))
        began_s = node.now_s
        message = await wait_failed(node, "web")
        expect(node, node.now_s - began_s < 4, "told within 4 s", node.now_s - began_s)
        expected_message = (
            'MountVolume.SetUp failed for volume "v" : failed to sync configmap cache: '
            "timed out waiting for the condition"
        )
        expect_equal(node, message, expected_message, "message of the event")
        await node.run_until(
            lambda: node.running("web"), within_s=20 + limits.START_S, what="the pod runs"
        )


@conformance(
    id="objects-let-go",
    rules=["LIFE-073.3"],
    needs=LONG,
    node_config={"syncFrequency": "10m"},
)
async def an_object_of_an_ended_pod_is_not_watched(node: Node) -> None:
    """When the only pod with a ConfigMap has ended the ConfigMap is no longer watched, although
    less time has passed than five times syncFrequency."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    short_lived = main(workload=exits(0, after_s=2))
    await node.api.create_pod(with_volume("job", SETTINGS, short_lived, restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded" and node.count("StopPodSandbox", pod="job"),
        within_s=2 + limits.START_S + limits.STOP_S,
        what="job has ended",
    )
    await node.run_for(limits.STOP_S)
    before = asked(node)
    await node.run_for(620)  # a watch ends after 10 min at the latest, and is begun again
    expect_equal(node, asked(node), before, "requests after the end")
