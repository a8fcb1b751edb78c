"""The files of volumes: keys, items, modes, paths that no volume may have."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.core_v1 import ConfigMap, DownwardAPIVolumeFile, KeyToPath, Secret
from msgspec import convert
from pods import container, make_pod

from refkubelet.model.downward_api import NodeAndPodFacts
from refkubelet.model.quantity import NANO
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
