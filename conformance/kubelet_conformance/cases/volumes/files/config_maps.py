"""Volumes of ConfigMaps and Secrets: their files, modes, and what is missing."""

import base64

from kubelet_conformance.cases.volumes.common import (
    VOLUME,
    config_map,
    main,
    mode,
    run_with,
    secret,
    wait_failed,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
SETTINGS = {"configMap": {"name": "settings"}}
RETRY_S = 20.0
"""NODE-202: after 0.5, 1.5, 3.5, 7.5 and 15.5 s, and until the pod runs."""


@conformance(id="volume-config-map", rules=["NODE-205.1", "NODE-205.2"], needs=NEEDS)
async def each_key_of_a_config_map_is_a_file(node: Node) -> None:
    """The volume of a ConfigMap has a file for each key, with mode 0644, texts and bytes."""
    manifest = config_map("settings", mode="fast", level="3\n")
    manifest["binaryData"] = {"raw": base64.b64encode(b"bytes").decode()}
    await node.api.create_object("configmaps", manifest)
    files = await run_with(node, with_volume("web", SETTINGS))
    expect_equal(node, files, {"mode": "fast", "level": "3\n", "raw": "bytes"}, "files")
    expect_equal(node, mode(node, "web", "mode"), "0o644", "mode of a file")
    place = node.machine.made_volume("web", VOLUME)
    expect_equal(node, place.parent.name, "kubernetes.io~configmap", "directory of the plugin")


@conformance(id="volume-secret", rules=["NODE-205.1", "NODE-205.2"], needs=NEEDS)
async def each_key_of_a_secret_is_a_file(node: Node) -> None:
    """The volume of a Secret has a file for each key, decoded, with the mode of the volume."""
    await node.api.create_secret(secret("keys", token="t-1", other="x"))
    source = {"secret": {"secretName": "keys", "defaultMode": 0o400}}
    files = await run_with(node, with_volume("web", source))
    expect_equal(node, files, {"token": "t-1", "other": "x"}, "files")
    expect_equal(node, mode(node, "web", "token"), "0o400", "mode of a file")
    place = node.machine.made_volume("web", VOLUME)
    expect_equal(node, place.parent.name, "kubernetes.io~secret", "directory of the plugin")


@conformance(id="volume-read-only", rules=["NODE-205.2"], needs=NEEDS)
async def containers_cannot_write_where_the_kubelet_does(node: Node) -> None:
    """The mount of such a volume is read-only, although the container did not ask for that."""
    await node.api.create_object("configmaps", config_map("settings", mode="fast"))
    await run_with(node, with_volume("web", SETTINGS))
    mounts = node.calls("CreateContainer", container="main")[0].request.config.mounts
    mount = next(m for m in mounts if m.container_path == "/v")
    place = str(node.machine.made_volume("web", VOLUME))
    expect_equal(node, (mount.host_path, mount.readonly), (place, True), "path, read-only")


@conformance(id="volume-items", rules=["NODE-205.2"], needs=NEEDS)
async def items_choose_keys_paths_and_modes(node: Node) -> None:
    """Items say which keys become files, at which paths, and with which modes."""
    await node.api.create_object("configmaps", config_map("settings", a="1", b="2", c="3"))
    items = [{"key": "a", "path": "dir/below/a"}, {"key": "b", "path": "b", "mode": 0o440}]
    source = {"configMap": {"name": "settings", "items": items, "defaultMode": 0o600}}
    files = await run_with(node, with_volume("web", source))
    expect_equal(node, files, {"dir/below/a": "1", "b": "2"}, "files")
    modes = (mode(node, "web", "dir/below/a"), mode(node, "web", "b"))
    expect_equal(node, modes, ("0o600", "0o440"), "modes of the files")


@conformance(id="volume-of-missing-map", rules=["NODE-205.3", "NODE-202.1"], needs=NEEDS)
async def a_pod_waits_for_its_config_map(node: Node) -> None:
    """A pod whose ConfigMap does not exist gets no sandbox, an event names the ConfigMap, and it
    starts soon after the ConfigMap was made."""
    await node.api.create_pod(with_volume("web", SETTINGS))
    message = await wait_failed(node, "web")
    expected_message = 'MountVolume.SetUp failed for volume "v" : configmap "settings" not found'
    expect_equal(node, message, expected_message, "message of the event")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    await node.api.create_object("configmaps", config_map("settings", mode="fast"))
    await node.run_until(
        lambda: node.running("web"), within_s=RETRY_S + limits.START_S, what="the pod runs"
    )


@conformance(id="volume-of-missing-secret", rules=["NODE-205.3", "NODE-202.1"], needs=NEEDS)
async def a_pod_waits_for_its_secret(node: Node) -> None:
    """The same for a Secret."""
    await node.api.create_pod(with_volume("web", {"secret": {"secretName": "keys"}}))
    message = await wait_failed(node, "web")
    expected_message = 'MountVolume.SetUp failed for volume "v" : secret "keys" not found'
    expect_equal(node, message, expected_message, "message of the event")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    await node.api.create_secret(secret("keys", token="t"))
    await node.run_until(
        lambda: node.running("web"), within_s=RETRY_S + limits.START_S, what="the pod runs"
    )


@conformance(id="volume-optional", rules=["NODE-205.3"], needs=NEEDS)
async def a_missing_object_may_be_optional(node: Node) -> None:
    """Volumes of an optional ConfigMap and an optional Secret that do not exist are empty."""
    for name, source in (
        ("one", {"configMap": {"name": "none", "optional": True}}),
        ("two", {"secret": {"secretName": "none", "optional": True}}),
    ):
        files = await run_with(node, with_volume(name, source))
        expect_equal(node, files, {}, f"files of {name}")


@conformance(id="volume-missing-key", rules=["NODE-205.4"], needs=NEEDS)
async def a_missing_key_keeps_the_pod_waiting(node: Node) -> None:
    """An item with a key that the object does not have fails the volume, in the words of its
    kind; if the volume is optional, the file is left out."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await node.api.create_secret(secret("keys", a="1"))
    items = [{"key": "a", "path": "a"}, {"key": "gone", "path": "b"}]
    of_map = {"configMap": {"name": "settings", "items": items}}
    of_secret = {"secret": {"secretName": "keys", "items": items}}
    failed = 'MountVolume.SetUp failed for volume "v" : '
    for name, source, why in (
        ("one", of_map, "configmap references non-existent config key: gone"),
        ("two", of_secret, "references non-existent secret key: gone"),
    ):
        await node.api.create_pod(with_volume(name, source))
        expect_equal(node, await wait_failed(node, name), failed + why, f"event of {name}")
    optional = {"configMap": {**of_map["configMap"], "optional": True}}
    files = await run_with(node, with_volume("three", optional))
    expect_equal(node, files, {"a": "1"}, "files of the optional volume")
    expect(node, not node.running("one"), "one does not run", node.container("one", "main"))


@conformance(id="volume-nested", rules=["NODE-205.6"], needs=NEEDS)
async def another_volume_can_be_mounted_inside(node: Node) -> None:
    """Where a container mounts another volume below a read-only one, the directory for it is
    made."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    plan = with_volume("web", SETTINGS, main())
    mounts = plan.manifest["spec"]["containers"][0]["volumeMounts"]
    mounts += [{"name": "scratch", "mountPath": path} for path in ("/v/in/side", "/v/in/side/in")]
    plan.manifest["spec"]["volumes"].append({"name": "scratch", "emptyDir": {}})
    await run_with(node, plan)
    place = node.machine.made_volume("web", VOLUME)
    directories = sorted(str(p.relative_to(place)) for p in place.glob("in/**/*"))
    expect_equal(node, directories, ["in/side"], "directories that were made")


@conformance(id="volume-of-group", rules=["NODE-212.1", "NODE-212.2"], needs=NEEDS)
async def the_group_of_the_pod_may_read(node: Node) -> None:
    """With fsGroup the files of a Secret belong to that group, which may read them; directories
    hand the group on."""
    import os

    group = os.getgid() or (2000 if os.geteuid() == 0 else 0)
    await node.api.create_secret(secret("keys", token="t"))
    source = {"secret": {"secretName": "keys", "defaultMode": 0o400}}
    await run_with(node, with_volume("web", source, securityContext={"fsGroup": group}))
    place = node.machine.made_volume("web", VOLUME)
    file, directory = (place / "token").stat(), (place / "..data").stat()
    expect_equal(node, (file.st_gid, oct(file.st_mode & 0o777)), (group, "0o440"), "file")
    group_and_mode = (directory.st_gid, oct(directory.st_mode & 0o7777))
    expect_equal(node, group_and_mode, (group, "0o2755"), "directory of the data")
