"""Items of volumes: which keys become files, where and with which modes; to whom they belong."""

import base64
import stat
from typing import Any, Final

from kubelet_conformance.cases.volumes.common import (
    UPDATE_S,
    VOLUME,
    config_map,
    mode,
    run_with,
    secret,
    wait_files,
    with_volume,
)
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]
FIELD: Final = {"path": "dir/name", "fieldRef": {"fieldPath": "metadata.name"}}


async def with_objects(node: Node) -> None:
    """Make the Secret `keys` and the ConfigMap `settings`, the latter with bytes, too."""
    await node.api.create_secret(secret("keys", a="1", b="2", c="3"))
    manifest = config_map("settings", a="one", b="two")
    manifest["binaryData"] = {"raw": base64.b64encode(b"bytes").decode()}
    await node.api.create_object("configmaps", manifest)


def modes(node: Node, pod: str, *files: str) -> list[str]:
    """The permissions of these files."""
    return [mode(node, pod, file) for file in files]


def projected(*sources: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A projected volume."""
    return {"projected": {"sources": list(sources), **more}}


@conformance(
    id="volume-items-of-each-kind",
    rules=["NODE-205.2", "NODE-205.1"],
    needs=NEEDS,
)
async def items_mean_the_same_in_every_kind(node: Node) -> None:
    """Items of ConfigMaps choose bytes as they choose texts; those of Secrets have modes and
    directories, too; one key can become several files."""
    await with_objects(node)
    items = [{"key": "raw", "path": "x/raw", "mode": 0o400}, {"key": "a", "path": "a"}]
    files = await run_with(
        node, with_volume("map", {"configMap": {"name": "settings", "items": items}})
    )
    expect_equal(node, files, {"x/raw": "bytes", "a": "one"}, "files of the ConfigMap")
    expect_equal(node, modes(node, "map", "x/raw", "a"), ["0o400", "0o644"], "modes")
    items = [
        {"key": "a", "path": "x/a", "mode": 0o440},
        {"key": "a", "path": "again"},
        {"key": "c", "path": "c", "mode": 0o600},
    ]
    source = {"secret": {"secretName": "keys", "items": items, "defaultMode": 0o444}}
    files = await run_with(node, with_volume("secret", source))
    expect_equal(node, files, {"x/a": "1", "again": "1", "c": "3"}, "files of the Secret")
    expected = ["0o440", "0o444", "0o600"]
    expect_equal(node, modes(node, "secret", "x/a", "again", "c"), expected, "modes of the Secret")


def gone(path: str) -> list[dict[str, Any]]:
    """A file of a key that is not there."""
    return [{"key": "gone", "path": path}]


@conformance(
    id="volume-projected-items",
    rules=["NODE-205.2", "NODE-205.3", "NODE-205.4", "NODE-205.8"],
    needs=NEEDS,
)
async def items_choose_in_projected_volumes_too(node: Node) -> None:
    """Each source of a projected volume has items and modes of its own; the default mode is that of
    the volume. Sources that are optional may be missing, as may keys of them."""
    await with_objects(node)
    of_secret = {"name": "keys", "items": [{"key": "b", "path": "b", "mode": 0o400}]}
    of_map = {"name": "settings", "items": [{"key": "a", "path": "dir/a", "mode": 0o440}]}
    source = projected(
        {"secret": of_secret},
        {"configMap": of_map},
        {"downwardAPI": {"items": [FIELD, {**FIELD, "path": "own", "mode": 0o404}]}},
        {"secret": {"name": "none", "optional": True}},
        {"configMap": {"name": "none", "optional": True}},
        {"secret": {"name": "keys", "items": gone("key"), "optional": True}},
        {"configMap": {"name": "settings", "items": gone("setting"), "optional": True}},
        defaultMode=0o640,
    )
    files = await run_with(node, with_volume("web", source))
    expected_files = {"b": "2", "dir/a": "one", "dir/name": "web", "own": "web"}
    expect_equal(node, files, expected_files, "files")
    actual_modes = modes(node, "web", "b", "dir/a", "dir/name", "own")
    expect_equal(node, actual_modes, ["0o400", "0o440", "0o640", "0o404"], "modes")


@conformance(
    id="volume-items-updated", rules=["NODE-205.2", "NODE-205.4", "NODE-206.2"], needs=LONG
)
async def what_items_do_not_choose_changes_nothing(node: Node) -> None:
    """When an object changes, items still choose the same keys, with the same modes; a key that
    an optional volume lacked appears, and goes again."""
    await with_objects(node)
    items = [{"key": "a", "path": "a", "mode": 0o400}, {"key": "late", "path": "x/late"}]
    source = {"configMap": {"name": "settings", "items": items, "optional": True}}
    files = await run_with(node, with_volume("web", source))
    expect_equal(node, files, {"a": "one"}, "files")
    patch = {"data": {"a": "1", "b": "2", "late": "now"}}
    await node.api.change_object("configmaps", "settings", patch)
    await wait_files(node, "web", {"a": "1", "x/late": "now"})
    expect_equal(node, modes(node, "web", "a", "x/late"), ["0o400", "0o644"], "modes")
    await node.api.change_object("configmaps", "settings", {"data": {"late": None}})
    await wait_files(node, "web", {"a": "1"})


def of_group(name: str, source: dict[str, Any], group: int, **context: Any) -> PodPlan:
    """A pod whose volumes belong to a group."""
    return with_volume(name, source, securityContext={"fsGroup": group, **context})


def owners(node: Node, pod: str, *paths: str) -> dict[str, tuple[int, str]]:
    """Group and mode of these files and directories of the volume, links followed."""
    place = node.machine.made_volume(pod, VOLUME)
    statuses = {path: (place / path).stat() for path in paths}
    return {path: (it.st_gid, oct(stat.S_IMODE(it.st_mode))) for path, it in statuses.items()}


def a_group() -> int:
    """A group to which this process may give files, and which they do not have anyway if it can be
    avoided."""
    import os

    return 2000 if os.geteuid() == 0 else os.getgid()


@conformance(
    id="volume-group-of-each-kind",
    rules=["NODE-212.1", "NODE-212.2", "NODE-212.3"],
    needs=[*NEEDS],
)
async def the_group_gets_volumes_of_every_kind(node: Node) -> None:
    """With fsGroup files and directories of ConfigMaps, downwardAPI and projected volumes belong to
    the group, those below directories, too; with the policy OnRootMismatch all the same."""
    await with_objects(node)
    group = a_group()
    items = [{"key": "a", "path": "x/y/a", "mode": 0o400}, {"key": "b", "path": "b"}]
    of_map = {"configMap": {"name": "settings", "items": items}}
    for name, policy in (("always", "Always"), ("mismatch", "OnRootMismatch")):
        await run_with(node, of_group(name, of_map, group, fsGroupChangePolicy=policy))
        expected = {
            "x/y/a": (group, "0o440"),
            "b": (group, "0o644"),
            "x/y": (group, "0o2755"),
            "..data": (group, "0o2755"),
        }
        expect_equal(node, owners(node, name, *expected), expected, f"owners with {policy}")
    downward = {"downwardAPI": {"items": [FIELD], "defaultMode": 0o400}}
    source = projected({"secret": {"name": "keys"}}, defaultMode=0o600)
    await run_with(node, of_group("downward", downward, group))
    await run_with(node, of_group("several", source, group))
    actual_owners = owners(node, "downward", "dir/name") | owners(node, "several", "a")
    expected = {"dir/name": (group, "0o440"), "a": (group, "0o640")}
    expect_equal(node, actual_owners, expected, "owners of the other kinds")


@conformance(id="volume-group-after-update", rules=["NODE-212.1", "NODE-206.2"], needs=LONG)
async def new_content_belongs_to_the_group_too(node: Node) -> None:
    """What an update writes, and what another container finds after a restart of the kubelet,
    belongs to the group as the first content did."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    group = a_group()
    await run_with(node, of_group("web", {"configMap": {"name": "settings"}}, group))
    await node.api.change_object("configmaps", "settings", {"data": {"a": "2", "b": "3"}})
    await wait_files(node, "web", {"a": "2", "b": "3"})
    expected = {"a": (group, "0o644"), "b": (group, "0o644"), "..data": (group, "0o2755")}
    expect_equal(node, owners(node, "web", *expected), expected, "owners after the update")


@conformance(id="volume-group-and-scratch", rules=["NODE-212.1"], needs=NEEDS)
async def a_scratch_directory_belongs_to_the_group(node: Node) -> None:
    """An emptyDir belongs to the group, which may write there, and hands the group on; without
    fsGroup it is for everybody. What a container wrote is left as it is at the next start."""
    group = a_group()
    main = container("main", volumeMounts=[{"name": VOLUME, "mountPath": "/v"}])
    scratch: dict[str, Any] = {"emptyDir": {}}
    await run_with(node, with_volume("web", scratch, main, securityContext={"fsGroup": group}))
    expect_equal(node, owners(node, "web", "."), {".": (group, "0o2777")}, "with fsGroup")
    await run_with(node, with_volume("plain", scratch))
    expect_equal(node, owners(node, "plain", ".")["."][1], "0o777", "mode without fsGroup")
    node.machine.write_volume_file("web", VOLUME, "own", "x")
    path = node.machine.volume_path("web", VOLUME, "own")
    path.chmod(0o600)
    await node.api.patch_pod("web", {"metadata": {"annotations": {"note": "x"}}})
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2, within_s=10 + UPDATE_S, what="a start"
    )
    expect_equal(node, oct(path.stat().st_mode & 0o777), "0o600", "mode of the container's file")
