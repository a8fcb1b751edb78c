"""How the content of volumes changes while containers run: whole, and only if it differs."""

import os
import re

from kubelet_conformance.cases.volumes.common import (
    UPDATE_S,
    VOLUME,
    config_map,
    main,
    run_with,
    secret,
    wait_failed,
    wait_files,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]
SETTINGS = {"configMap": {"name": "settings"}}
DATA_DIRECTORY = re.compile(r"\.\.\d{4}(_\d\d){5}\.\d+")


def data(node: Node, pod: str) -> str:
    """The name of the directory that has the files now."""
    return os.readlink(node.machine.made_volume(pod, VOLUME) / "..data")


@conformance(id="volume-layout", rules=["NODE-206.1"], needs=NEEDS)
async def files_are_behind_one_link(node: Node) -> None:
    """What containers see are links through `..data`, which leads to a directory named after the
    time: all that can be exchanged in one step."""
    await node.api.create_object("configmaps", config_map("settings", a="1", b="2"))
    items = [{"key": "a", "path": "a"}, {"key": "b", "path": "dir/b"}]
    await run_with(node, with_volume("web", {"configMap": {"name": "settings", "items": items}}))
    top = node.machine.made_volume("web", VOLUME)
    target = data(node, "web")
    expect(node, DATA_DIRECTORY.fullmatch(target), "..data leads to a directory of a time", target)
    expect_equal(node, oct((top / target).stat().st_mode & 0o777), "0o755", "its mode")
    links = {name: os.readlink(top / name) for name in ("a", "dir")}
    expect_equal(node, links, {"a": "..data/a", "dir": "..data/dir"}, "links at the top")
    expect_equal(node, sorted(os.listdir(top)), sorted(["a", "dir", "..data", target]), "all names")


@conformance(id="volume-updated", rules=["NODE-201.3", "NODE-206.2", "NODE-207.1"], needs=LONG)
async def a_running_container_sees_the_new_content(node: Node) -> None:
    """When a ConfigMap changes, its volume follows without a restart: files change, appear and go,
    also if one goes and nothing else changes, and the old directory is removed."""
    await node.api.create_object("configmaps", config_map("settings", a="1", b="2"))
    await run_with(node, with_volume("web", SETTINGS))
    old = data(node, "web")
    patch = {"data": {"a": "one", "b": None, "c": "3"}}
    await node.api.change_object("configmaps", "settings", patch)
    await wait_files(node, "web", {"a": "one", "c": "3"})
    top = node.machine.made_volume("web", VOLUME)
    new = data(node, "web")
    expect(node, new != old, "a new directory", new)
    expect_equal(node, sorted(os.listdir(top)), sorted(["a", "c", "..data", new]), "all names")
    await node.api.change_object("configmaps", "settings", {"data": {"c": None}})
    await wait_files(node, "web", {"a": "one"})
    expect_equal(node, node.count("CreateContainer", container="main"), 1, "creations of main")


@conformance(id="volume-secret-updated", rules=["NODE-201.3", "NODE-206.2"], needs=LONG)
async def a_secret_can_be_exchanged(node: Node) -> None:
    """The volume of a Secret follows, too, and nothing of the old content is left."""
    await node.api.create_secret(secret("keys", token="old"))
    await run_with(node, with_volume("web", {"secret": {"secretName": "keys"}}))
    await node.api.replace_data(secret("keys", token="new"))
    await wait_files(node, "web", {"token": "new"})
    names = os.listdir(node.machine.made_volume("web", VOLUME))
    expect_equal(node, sorted(names), sorted(["..data", data(node, "web"), "token"]), "all names")


@conformance(id="volume-not-written-again", rules=["NODE-206.3"], needs=LONG)
async def what_is_the_same_is_not_written_again(node: Node) -> None:
    """While the content stays, so does the directory with the files, however often the pod is
    synced."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    old = data(node, "web")
    for number in range(3):
        await node.api.patch_pod("web", {"metadata": {"annotations": {"number": str(number)}}})
        await node.run_for(1)
    note = {"metadata": {"annotations": {"note": "x"}}}
    await node.api.change_object("configmaps", "settings", note)
    await node.run_for(UPDATE_S)
    expect_equal(node, data(node, "web"), old, "the directory")


@conformance(id="volume-optional-later", rules=["NODE-205.3", "NODE-207.1"], needs=LONG)
async def an_optional_object_may_come_later(node: Node) -> None:
    """The volume of an optional Secret is filled when the Secret is made, and empty again when it
    is deleted."""
    source = {"secret": {"secretName": "keys", "optional": True}}
    await run_with(node, with_volume("web", source))
    await node.api.create_secret(secret("keys", token="t"))
    await wait_files(node, "web", {"token": "t"})
    await node.api.delete_secret("keys")
    await wait_files(node, "web", {})


@conformance(id="volume-keeps-old-content", rules=["NODE-207.6"], needs=LONG)
async def a_failed_update_harms_no_container(node: Node) -> None:
    """When the ConfigMap is deleted, an event tells, the files stay, and a container that ends is
    started again; the files follow once there is a new one."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    work = in_turn(exits(1, after_s=2 * UPDATE_S), runs())
    await run_with(node, with_volume("web", SETTINGS, main(workload=work)))
    await node.api.delete_object("configmaps", "settings")
    await node.run_for(UPDATE_S)
    message = await wait_failed(node, "web")
    expected_message = 'MountVolume.SetUp failed for volume "v" : configmap "settings" not found'
    expect_equal(node, message, expected_message, "message of the event")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=UPDATE_S + limits.NOTICE_S,
        what="the second start of main",
    )
    expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": "1"}, "files")
    await node.api.create_object("configmaps", config_map("settings", a="2"))
    await node.run_until(
        lambda: node.machine.volume_files("web", VOLUME) == {"a": "2"},
        within_s=122 + limits.NOTICE_S,
        what="the new content",
    )


@conformance(id="volume-immutable", rules=["NODE-207.2"], needs=LONG)
async def an_immutable_object_is_not_watched(node: Node) -> None:
    """Once an immutable ConfigMap was read, nothing is asked of the server about it any more."""
    manifest = {**config_map("settings", a="1"), "immutable": True}
    await node.api.create_object("configmaps", manifest)
    await run_with(node, with_volume("web", SETTINGS))
    path = r"/namespaces/default/configmaps"
    await node.run_for(5)
    before = len(node.api.requests("GET", path))
    await node.run_for(700)
    expect_equal(node, len(node.api.requests("GET", path)), before, "requests for ConfigMaps")


@conformance(id="volume-watched-once", rules=["NODE-207.1"], needs=LONG)
async def an_object_is_followed_once_and_not_for_ever(node: Node) -> None:
    """Two pods with the same ConfigMap cause one list of it; when both are gone, it is no longer
    followed, and a new pod reads it anew."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    path = r"/namespaces/default/configmaps"
    await run_with(node, with_volume("one", SETTINGS))
    before = len(node.api.requests("GET", path))
    await run_with(node, with_volume("two", SETTINGS))
    expect_equal(node, len(node.api.requests("GET", path)), before, "requests for the second pod")
    for name in ("one", "two"):
        await node.api.delete_pod(name, grace_s=0)
    await node.run_until(
        lambda: node.api.pod("one") is None and node.api.pod("two") is None,
        within_s=limits.STOP_S + limits.STATUS_PASS_S + limits.HOUSEKEEPING_S,
        what="both pods are gone",
    )
    await node.run_for(limits.NOTICE_S)
    await node.api.change_object("configmaps", "settings", {"data": {"a": "2"}})
    files = await run_with(node, with_volume("three", SETTINGS))
    expect_equal(node, files, {"a": "2"}, "files of the third pod")
    expect(node, len(node.api.requests("GET", path)) > before, "it was asked for again")


@conformance(id="volume-server-away", rules=["NODE-207.6", "NODE-206.3"], needs=LONG, alone=True)
async def the_content_outlives_the_server(node: Node) -> None:
    """While the API server is away, volumes keep their files and containers start again."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    work = in_turn(exits(1, after_s=20), runs())
    await run_with(node, with_volume("web", SETTINGS, main(workload=work)))
    with node.api.down():
        await node.run_until(
            lambda: node.count("StartContainer", container="main") == 2,
            within_s=20 + limits.NOTICE_S + limits.SYNC_ERROR_S,
            what="the second start of main",
        )
        await node.run_for(UPDATE_S)
        expect_equal(node, node.machine.volume_files("web", VOLUME), {"a": "1"}, "files")


@conformance(id="volume-update-tried-again", rules=["NODE-207.6"], needs=NEEDS)
async def a_failed_update_is_tried_again_soon(node: Node) -> None:
    """An update that fails because the ConfigMap is gone is tried again after 0.5, 1, 2, ...
    seconds, without waiting for the next sync of the pod."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    await node.run_for(limits.NOTICE_S)  # the start of the container causes a sync, too
    await node.api.delete_object("configmaps", "settings")
    await node.run_for(1)
    await node.api.patch_pod("web", {"metadata": {"annotations": {"note": "x"}}})
    await wait_failed(node, "web")
    await node.api.create_object("configmaps", config_map("settings", a="2"))
    await node.run_until(
        lambda: node.machine.volume_files("web", VOLUME) == {"a": "2"},
        within_s=16 + limits.NOTICE_S,
        what="the new content",
    )


@conformance(id="volume-update-backs-off", rules=["NODE-202.2", "NODE-207.6"], needs=LONG)
async def a_sync_does_not_cut_a_back_off_short(node: Node) -> None:
    """While an update that failed several times waits for its next try, syncs of the pod lead to
    none: five of them in five seconds to one at most, that which is due."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    await node.api.delete_object("configmaps", "settings")
    await node.run_for(limits.NOTICE_S)
    await node.api.patch_pod("web", {"metadata": {"annotations": {"note": "0"}}})
    await wait_failed(node, "web")
    await node.run_for(20)  # the pauses are 16 s now
    before = node.event_count("FailedMount", pod="web")
    expect(node, before >= 3, "tries in 20 s", before)
    for note in "12345":
        await node.api.patch_pod("web", {"metadata": {"annotations": {"note": note}}})
        await node.run_for(1)
    tries = node.event_count("FailedMount", pod="web") - before
    expect(node, tries <= 1, "one try at most in the 5 s", tries)
