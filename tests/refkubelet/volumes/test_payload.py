"""The files of volumes: keys, items, modes, paths that no volume may have."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.core_v1 import ConfigMap, DownwardAPIVolumeFile, KeyToPath, Secret
from msgspec import convert
from pods import container, make_pod

from kubeobjects.quantity import NANO
from refkubelet.model.downward_api import NodeAndPodFacts, VariableError
from refkubelet.volumes.payload import (
    FileProjection,
    PayloadError,
    checked,
    config_map_payload,
    downward_payload,
    field_text,
    nested_mount_points,
    path_problem,
    secret_payload,
    stale_paths,
    visible_names,
)

MAP = ConfigMap(data={"a": "1", "both": "text"}, binaryData={"raw": "AP8=", "both": "AA=="})
SECRET = Secret(data={"a": "MQ=="})


def items(*keys: str, **fields: Any) -> list[KeyToPath]:
    return [KeyToPath(key=key, path=f"at/{key}", **fields) for key in keys]


def test_all_keys_or_the_items_of_a_map_NODE_205() -> None:
    files = config_map_payload(MAP, None, 0o644, optional=False)
    assert files["raw"] == FileProjection(b"\0\xff", 0o644)
    assert files["a"].data == b"1"
    chosen = config_map_payload(MAP, items("both", mode=0o400), 0o644, optional=False)
    assert chosen == {"at/both": FileProjection(b"text", 0o400)}


def test_missing_keys_NODE_205() -> None:
    with pytest.raises(PayloadError, match="configmap references non-existent config key: no"):
        config_map_payload(MAP, items("a", "no"), 0o644, optional=False)
    with pytest.raises(PayloadError, match=r"^references non-existent secret key: no"):
        secret_payload(SECRET, items("no"), 0o644, optional=False)
    assert list(secret_payload(SECRET, items("no", "a"), 0o644, optional=True)) == ["at/a"]


def test_what_cannot_be_made_NODE_205() -> None:
    with pytest.raises(PayloadError, match="no defaultMode used"):
        secret_payload(SECRET, None, None, optional=False)
    with pytest.raises(PayloadError, match="the value of key a is not base64"):
        secret_payload(Secret(data={"a": "?"}), None, 0o644, optional=False)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("a/b", None),
        ("a/..b", None),
        ("..", "must not contain '..': .."),
        ("", 'must not be empty: ""'),
        ("/a", "must be relative path: /a"),
        ("a/../b", "must not contain '..': a/../b"),
        ("..data/x", "must not start with '..': ..data/x"),
        ("a\0", "must not contain a zero byte"),
        ("x" * 256, "filenames must be less than or equal to 255 characters"),
        ("x/" * 2049, "must be less than or equal to 4096 characters"),
    ],
)
def test_paths_NODE_206(path: str, problem: str | None) -> None:
    assert path_problem(path) == problem


def test_a_payload_is_clean_or_refused_NODE_206() -> None:
    file = FileProjection(b"", 0o644)
    assert list(checked({"b//c": file, "a": file})) == ["a", "b/c"]
    with pytest.raises(PayloadError, match="invalid path: must be relative path: /a"):
        checked({"/a": file})
    assert visible_names({"b/c": file, "b/d": file, "a": file}) == ["a", "b"]
    assert stale_paths(["a", "b", "b/c", "b/x", "y"], {"b/c": file}) == ["b/x", "a", "y"]


def downward(**fields: Any) -> DownwardAPIVolumeFile:
    file: DownwardAPIVolumeFile = convert({"path": "f", **fields}, DownwardAPIVolumeFile)
    return file


def test_limits_are_those_of_the_container_or_the_node_NODE_205() -> None:
    pod = make_pod(container("main"), resources={"limits": {"cpu": "5"}})
    facts = NodeAndPodFacts(allocatable={"cpu": 3 * NANO})
    wanted = {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}
    found = downward_payload([downward(resourceFieldRef=wanted)], pod, facts, 0o644)
    assert found["f"].data == b"3000"
    other = wanted | {"containerName": "none"}
    with pytest.raises(PayloadError, match=r"^container none not found$"):
        downward_payload([downward(resourceFieldRef=other)], pod, facts, 0o644)


def test_all_wrong_fields_are_told_NODE_205() -> None:
    refs = [downward(fieldRef={"fieldPath": path}) for path in ("spec.x", "status.podIP")]
    why = r"^\[unsupported fieldPath: spec.x, unsupported fieldPath: status.podIP\]$"
    with pytest.raises(PayloadError, match=why):
        downward_payload(refs, make_pod(), NodeAndPodFacts(), 0o644)


def test_labels_are_lines_in_the_order_of_bytes_NODE_205() -> None:
    pod = make_pod(meta={"labels": {"b": "2", "B": "1"}})
    assert field_text("metadata.labels", pod) == 'B="1"\nb="2"'
    assert field_text("metadata.labels['b']", pod) == "2"
    assert field_text("metadata.labels['none']", pod) == ""


def test_mounts_inside_a_volume_NODE_205() -> None:
    paths = {"v": "/v", "w": "/v/a/b", "x": "/v/a/b/c", "y": "/v/a-b", "z": "/vv"}
    mounts = [{"name": name, "mountPath": path} for name, path in paths.items()]
    pod = make_pod(container(volumeMounts=mounts))
    assert nested_mount_points("v", pod) == ["a-b", "a/b"]
    assert nested_mount_points("z", pod) == []


def test_values_win_over_binary_ones_among_items_NODE_205() -> None:
    everything = config_map_payload(MAP, None, 0o600, optional=True)
    assert everything["both"] == FileProjection(b"\0", 0o600)
    assert config_map_payload(MAP, items("a"), 0o600, optional=True) == {
        "at/a": FileProjection(b"1", 0o600)
    }
    assert list(config_map_payload(MAP, items("no", "a"), 0o600, optional=True)) == ["at/a"]
    empty = Secret(data={"a": ""})
    assert secret_payload(empty, None, 0o600, optional=False) == {"a": FileProjection(b"", 0o600)}
    odd = ConfigMap(binaryData={"raw": "?"})
    with pytest.raises(PayloadError, match=r"^the value of key raw is not base64: "):
        config_map_payload(odd, None, 0o644, optional=False)


FIELDS = {
    "metadata.name": "web",
    "metadata.namespace": "ns",
    "metadata.uid": "u1",
    "metadata.labels": 'a="1"',
    "metadata.annotations": 'k="v\\n"',
    "metadata.labels['a']": "1",
    "metadata.annotations['k']": "v\n",
    "metadata.annotations['none']": "",
}


@pytest.mark.parametrize(("path", "wanted"), FIELDS.items())
def test_fields_of_the_metadata_NODE_205(path: str, wanted: str) -> None:
    meta = {"labels": {"a": "1"}, "annotations": {"k": "v\n"}}
    pod = make_pod(name="web", namespace="ns", uid="u1", meta=meta)
    assert field_text(path, pod) == wanted
    file = downward(fieldRef={"fieldPath": path}, path="d//f", mode=0o400)
    found = downward_payload([file], pod, NodeAndPodFacts(), 0o644)
    assert found == {"d/f": FileProjection(wanted.encode(), 0o400)}


def test_fields_that_have_no_keys_NODE_205() -> None:
    with pytest.raises(VariableError) as caught:
        field_text("metadata.name['a']", make_pod())
    assert str(caught.value) == 'fieldPath "metadata.name" does not support subscript'
    nameless = make_pod(meta={"name": None, "namespace": None})
    assert field_text("metadata.name", nameless) == field_text("metadata.namespace", nameless) == ""


def test_modes_and_odd_bytes_of_downward_files_NODE_205() -> None:
    pod = make_pod(meta={"labels": {"a": "\udcff"}})
    file = downward(fieldRef={"fieldPath": "metadata.labels['a']"})
    found = downward_payload([file, downward(path="none")], pod, NodeAndPodFacts(), 0o640)
    assert found == {"f": FileProjection(b"\xff", 0o640), "none": FileProjection(b"", 0o640)}
    with pytest.raises(PayloadError, match=r"^no defaultMode used, not even the default"):
        downward_payload([], pod, NodeAndPodFacts(), None)
    unnamed = downward(resourceFieldRef={"resource": "limits.cpu"})
    with pytest.raises(PayloadError, match=r"^container  not found$"):
        downward_payload([unnamed], pod, NodeAndPodFacts(), 0o644)


def test_limits_of_an_init_container_are_the_nodes_too_NODE_205() -> None:
    pod = make_pod(container("main"), init=[container("i")])
    facts = NodeAndPodFacts(allocatable={"cpu": 3 * NANO})
    file = downward(resourceFieldRef={"containerName": "i", "resource": "limits.cpu"})
    assert downward_payload([file], pod, facts, 0o644)["f"].data == b"3"


def test_the_longest_paths_NODE_206() -> None:
    longest = "x/" * 2047 + "xx"
    assert (len(longest), path_problem(longest)) == (4096, None)
    assert path_problem("x" * 255) is None
    assert path_problem("ä" * 128) == "filenames must be less than or equal to 255 characters"


def test_only_the_top_of_a_volume_has_links_NODE_206() -> None:
    file = FileProjection(b"", 0o644)
    assert visible_names({"b/c/d": file, "a/x/y/z": file}) == ["a", "b"]


def test_mounts_of_all_containers_inside_a_volume_NODE_205() -> None:
    first = container("a", volumeMounts=[mount("v", "/v"), mount("w", "/v/one")])
    second = container("b", volumeMounts=[mount("v", "/t"), mount("w", "/t/two"), mount("v", "/u")])
    assert nested_mount_points("v", make_pod(first, second)) == ["one", "two"]
    outside = make_pod(container(volumeMounts=[mount("v", "../v")]))
    with pytest.raises(PayloadError, match=r"^invalid container mount point \.\./v$"):
        nested_mount_points("v", outside)


def mount(name: str, path: str) -> dict[str, str]:
    return {"name": name, "mountPath": path}
