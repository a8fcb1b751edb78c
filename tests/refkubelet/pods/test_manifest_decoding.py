"""Which texts are manifests, and what their values mean (SRC-004, SRC-005, SRC-037)."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from manifest_reading import accepted, manifest, read, refusal, volumes

from refkubelet.model.objects import to_dict
from refkubelet.pods.manifest import ManifestError


def test_unknown_fields_are_ignored_SRC_004() -> None:
    spec = to_dict(read(manifest({"noSuchField": 1})))["spec"]
    assert "noSuchField" not in spec
    assert [c["name"] for c in spec["containers"]] == ["main"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty; wanted one v1 Pod"),
        ("- a\n", "wanted one v1 Pod, found no mapping"),
        ("apiVersion: v1\nkind: PodList\n", "line 2: kind: wanted Pod, found PodList"),
        ("apiVersion: apps/v1\nkind: Pod\n", "line 1: apiVersion: wanted v1, found apps/v1"),
        ("kind: Pod\n", "line 1: apiVersion: wanted v1, found nothing"),
        ("a: [1\n", "line 2: did not find expected ',' or ']', while parsing a flow sequence"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
            "  - name: c\n    image: 5\n",
            "line 7: spec.containers[0].image: wanted a text, found an integer",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  activeDeadlineSeconds: 99999999999999999999\n"
            "  containers: []\n",
            "line 4: spec.activeDeadlineSeconds: 100000000000000000000 does not fit into 64 bits",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n",
            "line 4: spec: containers is missing",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec: 5\n",
            "line 3: spec: wanted a mapping, found an integer",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  containers: a\n",
            "line 4: spec.containers: wanted a list, found a text",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  hostPID: {a: 1}\n  containers: []\n",
            "line 4: spec.hostPID: wanted true or false, found a mapping",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  priority: 1.5\n  containers: []\n",
            "line 4: spec.priority: wanted an integer, found a number",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: c\n"
            "    livenessProbe: {tcpSocket: {port: []}}\n",
            "line 6: spec.containers[0].livenessProbe.tcpSocket.port: "
            "wanted an integer or a text, found a list",
        ),
        (
            '{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [], "hostname": true}}',
            "line 1: spec.hostname: wanted a text, found true or false",
        ),
    ],
)
def test_unreadable_manifests_say_where_SRC_004(text: str, reason: str) -> None:
    assert refusal(text) == reason


FULL: dict[str, Any] = yaml.safe_load(
    manifest(
        {
            "volumes": [
                {"name": "v", "hostPath": {"path": "/x"}},
                {"name": "w", "projected": {"sources": [{"downwardAPI": {"items": []}}]}},
            ],
            "initContainers": [{"name": "i", "image": "x:1", "restartPolicy": "Always"}],
            "containers": [
                {
                    "name": "c",
                    "image": "x:1",
                    "env": [
                        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
                    ],
                    "envFrom": [],
                    "ports": [{"containerPort": 80}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "livenessProbe": {"httpGet": {"port": 80}},
                    "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
        },
        labels={"a": "b"},
        annotations={"c": "d"},
    )
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into `value`."""
    found = [path]
    items = list(enumerate(value)) if isinstance(value, list) else []
    for key, item in value.items() if isinstance(value, dict) else items:
        found += places(item, (*path, key))
    return found


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 10**30, 1.5, "", "x", "Ünïcode", "a\x00", [], [None], {}, {"a": 1}, [[]]]
)


@given(st.lists(st.tuples(st.sampled_from(places(FULL)[1:]), ODD), min_size=1, max_size=3))
def test_any_manifest_gives_a_pod_or_a_manifest_error_SRC_005(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    value = copy.deepcopy(FULL)
    for path, odd in changes:
        with suppress(KeyError, IndexError, TypeError):
            target = value
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = copy.deepcopy(odd)
    with suppress(ManifestError):
        read(json.dumps(value))


def test_the_full_example_is_a_good_manifest() -> None:
    spec = to_dict(read(json.dumps(FULL)))["spec"]
    for kind in ("volumes", "initContainers", "containers"):
        assert [item["name"] for item in spec[kind]] == [
            item["name"] for item in FULL["spec"][kind]
        ]


JSON_POD = (
    '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"metadata": {"name": "tabs"},\n'
    '\t"spec": {"containers": [{"name": "c", "image": "localhost/busybox:1"}]}\n}\n'
)


def test_json_may_be_indented_with_tabs_SRC_004() -> None:
    assert read(JSON_POD).metadata.name == "tabs-n1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n {apiVersion: v1, kind: Pod}", "line 2: a text that begins with a brace must be JSON"),
        (JSON_POD + '{"more": 1}', "line 7: a text that begins with a brace must be JSON: Extra"),
        (JSON_POD.replace("]}\n}", "]}\n;}"), "line 6: a text that begins with a brace must be"),
    ],
)
def test_a_text_that_begins_with_a_brace_is_json_SRC_004(text: str, reason: str) -> None:
    """Seen of kubelet 1.36.2, which reads such a text as JSON only."""
    assert refusal(text).startswith(reason)


@pytest.mark.parametrize("field", ["creationTimestamp", "deletionTimestamp"])
def test_a_time_without_a_zone_is_refused(field: str) -> None:
    """It could not be compared with others: one such pod would stop all that come with it."""
    reason = refusal(manifest(**{field: "2024-01-01T00:00:00"}))
    assert f"metadata.{field}: wanted a time with its zone" in reason
    read(manifest(**{field: "2024-01-01T00:00:00Z"}))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"labels": {"a": 1}}, "line 6: metadata.labels.a: wanted a text, found an integer"),
        ({"labels": {"a": True}}, "line 6: metadata.labels.a: wanted a text, found true or false"),
        (
            {"annotations": {"a": [1]}},
            "line 6: metadata.annotations.a: wanted a text, found a list",
        ),
        (
            {"annotations": {"a": 1.5}},
            "line 6: metadata.annotations.a: wanted a text, found a number",
        ),
    ],
)
def test_labels_and_annotations_are_texts(fields: dict[str, Any], reason: str) -> None:
    """Kubelet 1.36.2 cannot unmarshal them either."""
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n" + "".join(
        f"  {name}:\n    a: {json.dumps(value['a'])}\n" for name, value in fields.items()
    )
    assert refusal(text + "spec: {containers: [{name: c, image: i}]}\n") == reason


def test_a_label_that_is_nothing_is_empty() -> None:
    assert read(manifest(labels={"a": None})).metadata.labels == {"a": ""}
    selector = read(manifest({"nodeSelector": {"a": None}})).spec.nodeSelector
    assert selector == {"a": ""}
    assert "spec.nodeSelector.a: wanted a text" in refusal(manifest({"nodeSelector": {"a": 1}}))


@pytest.mark.parametrize("written", ["30.0", "3e1", "0x1e", "036", "0o36", "3_0", "30"])
def test_whole_numbers_of_yaml_may_be_written_so(written: str) -> None:
    """All accepted by kubelet 1.36.2."""
    pod = read(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"
        f"  terminationGracePeriodSeconds: {written}\n"
        "  hostIPC: y\n  containers: [{name: c, image: i}]\n"
    )
    assert pod.spec is not None
    assert pod.spec.terminationGracePeriodSeconds == 30
    assert pod.spec.hostIPC is True


def test_fields_newer_than_kubernetes_1_36_are_unknown_SRC_004() -> None:
    main = {"name": "main", "image": "i", "volumeMounts": [{"name": "v0", "mountPath": "/v"}]}
    main["volumeMounts"][0]["bindMountOptions"] = 5
    spec = {"evictionResponders": "x", "containers": [main], **volumes({"emptyDir": {"mode": "x"}})}
    shown = accepted(spec)["spec"]
    assert "evictionResponders" not in shown
    assert "bindMountOptions" not in shown["containers"][0]["volumeMounts"][0]
    assert shown["volumes"][0]["emptyDir"] == {}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"priority": 1 << 31}, "spec.priority: 2147483648 does not fit into 32 bits"),
        (
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1 << 40}]}]},
            "containerPort: 1099511627776 does not fit into 32 bits",
        ),
    ],
)
def test_a_number_wider_than_its_field_is_refused_SRC_004(
    spec: dict[str, Any], reason: str
) -> None:
    assert reason in refusal(manifest(spec))


def test_what_may_be_missing_is_nothing_SRC_004() -> None:
    get = {"httpGet": {"port": 80, "httpHeaders": [{"name": "a"}]}}
    hooks = {"preStop": {"sleep": {}}, "postStart": get}
    main = {"name": "main", "image": "i", "lifecycle": hooks}
    shown = accepted({"containers": [main]})["spec"]["containers"][0]["lifecycle"]
    assert shown["preStop"]["sleep"] == {"seconds": 0}
    assert shown["postStart"]["httpGet"]["httpHeaders"] == [{"name": "a", "value": ""}]
