"""downwardAPI and projected volumes: what a pod is told of itself, and several sources in one."""

from typing import Any

from kubelet_conformance.cases.volumes.common import (
    VOLUME,
    config_map,
    main,
    mode,
    run_with,
    secret,
    wait_failed,
    wait_files,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.quantity import NANO, parse_nano

NEEDS = [Feature.API, Feature.STATUS]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]


def field(path: str, of: str, **more: Any) -> dict[str, Any]:
    """A file of a field of the pod."""
    return {"path": path, "fieldRef": {"fieldPath": of}, **more}


def resource(path: str, of: str, divisor: str = "0") -> dict[str, Any]:
    """A file of a resource of main."""
    selector = {"containerName": "main", "resource": of, "divisor": divisor}
    return {"path": path, "resourceFieldRef": selector}


def downward(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"downwardAPI": {"items": list(items), **more}}


def projected(*sources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"projected": {"sources": list(sources), **more}}


@conformance(id="volume-downward", rules=["NODE-205.7"], needs=NEEDS, alone=True)
async def a_pod_can_read_about_itself(node: Node) -> None:
    """Fields of the metadata become files; labels and annotations lines, sorted and with escapes; a
    single annotation is its plain value."""
    items = [
        field("name", "metadata.name"),
        field("dir/space", "metadata.namespace"),
        field("labels", "metadata.labels"),
        field("annotations", "metadata.annotations"),
        field("one", "metadata.annotations['note']", mode=0o400),
    ]
    metadata = {
        "labels": {"b": "2", "a": "1"},
        "annotations": {"note": 'two\nlines "quoted"', "a.b/c": "\u00fc\t"},
    }
    files = await run_with(node, with_volume("web", downward(*items), metadata=metadata))
    lines = files.get("annotations", "").split("\n")
    own = [line for line in lines if not line.startswith("kubernetes.io/config.")]
    files["annotations"] = "\n".join(own)  # a kubelet adds when and where it saw the pod
    expected_files = {
        "name": "web",
        "dir/space": "default",
        "labels": 'a="1"\nb="2"',
        "annotations": 'a.b/c="\u00fc\\t"\nnote="two\\nlines \\"quoted\\""',
        "one": 'two\nlines "quoted"',
    }
    expect_equal(node, files, expected_files, "files")
    expect_equal(node, mode(node, "web", "one"), "0o400", "mode of one file")


@conformance(id="volume-downward-updated", rules=["NODE-201.3", "NODE-205.7"], needs=LONG)
async def changed_labels_reach_the_container(node: Node) -> None:
    """When labels of a running pod change, the file changes."""
    source = downward(field("labels", "metadata.labels"))
    await run_with(node, with_volume("web", source, metadata={"labels": {"a": "1"}}))
    await node.api.patch_pod("web", {"metadata": {"labels": {"b": "2"}}})
    await wait_files(node, "web", {"labels": 'a="1"\nb="2"'})
    expect_equal(node, node.count("CreateContainer", container="main"), 1, "creations of main")


@conformance(id="volume-downward-resources", rules=["NODE-205.7"], needs=NEEDS, alone=True)
async def resources_are_divided_and_rounded_up(node: Node) -> None:
    """Requests and limits of a container become files, divided and rounded up; an unset limit is
    what the node can give."""
    items = [
        resource("cpu", "limits.cpu"),
        resource("milli", "limits.cpu", "1m"),
        resource("memory", "requests.memory", "1Mi"),
        resource("unset", "limits.memory"),
    ]
    amounts = {"limits": {"cpu": "1100m"}, "requests": {"memory": "20971521"}}
    plan = with_volume("web", downward(*items), main(resources=amounts))
    files = await run_with(node, plan)
    await node.run_until(lambda: node.api.allocatable("memory"), within_s=limits.START_S)
    memory = parse_nano(node.api.allocatable("memory")) // NANO
    expected_files = {"cpu": "2", "milli": "1100", "memory": "21", "unset": str(memory)}
    expect_equal(node, files, expected_files, "files")


@conformance(id="volume-projected", rules=["NODE-205.8", "NODE-205.2"], needs=NEEDS)
async def several_sources_share_one_volume(node: Node) -> None:
    """A projected volume has the files of all its sources; of two with one path the later wins."""
    await node.api.create_object("configmaps", config_map("settings", a="1", b="2"))
    await node.api.create_secret(secret("keys", token="t"))
    sources: list[dict[str, Any]] = [
        {"configMap": {"name": "settings"}},
        {"secret": {"name": "keys", "items": [{"key": "token", "path": "b"}]}},
        {"downwardAPI": {"items": [field("dir/name", "metadata.name")]}},
        {"configMap": {"name": "none", "optional": True}},
    ]
    plan = with_volume("web", projected(*sources, defaultMode=0o440))
    files = await run_with(node, plan)
    expect_equal(node, files, {"a": "1", "b": "t", "dir/name": "web"}, "files")
    expect_equal(node, mode(node, "web", "dir/name"), "0o440", "mode of a file")
    place = node.machine.made_volume("web", VOLUME)
    expect_equal(node, place.parent.name, "kubernetes.io~projected", "directory of the plugin")


@conformance(id="volume-projected-errors", rules=["NODE-205.8", "NODE-205.3"], needs=NEEDS)
async def all_that_a_projected_volume_lacks_is_told(node: Node) -> None:
    """If two sources fail, the event names both."""
    sources = [{"configMap": {"name": "one"}}, {"secret": {"name": "two"}}]
    await node.api.create_pod(with_volume("web", projected(*sources)))
    message = await wait_failed(node, "web")
    why = '[configmap "one" not found, secret "two" not found]'
    expected_message = f'MountVolume.SetUp failed for volume "v" : {why}'
    expect_equal(node, message, expected_message, "message of the event")
    expect(node, node.count("RunPodSandbox") == 0, "no sandbox")


@conformance(id="volume-projected-updated", rules=["NODE-206.2", "NODE-205.8"], needs=LONG)
async def sources_change_one_by_one(node: Node) -> None:
    """When one source of a projected volume changes, the files of the others stay."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await node.api.create_secret(secret("keys", token="t"))
    sources = [{"configMap": {"name": "settings"}}, {"secret": {"name": "keys"}}]
    await run_with(node, with_volume("web", projected(*sources)))
    await node.api.change_object("configmaps", "settings", {"data": {"a": None, "z": "2"}})
    await wait_files(node, "web", {"z": "2", "token": "t"})
