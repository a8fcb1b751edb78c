"""The patch functions: tables of examples, and the laws of RFC 7386 and of merging by key."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekubeapi.bodies import copy_json
from fakekubeapi.errors import StatusError
from fakekubeapi.patches.patch import json_patch, merge_patch
from fakekubeapi.patches.strategic import strategic_merge
from kubeobjects.schema.messages import Message, message


def typed(kind: str) -> Message:
    return message(f"core.v1.{kind}")


# RFC 7386, appendix A: original, patch, result.
RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "result"), RFC_7386)
def test_merge_patch_examples_of_the_rfc(document: Any, patch: Any, result: Any) -> None:
    assert merge_patch(document, patch) == result


SCALARS = st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2)
KEYS = st.sampled_from(["a", "b", "c"])
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
PATCHES = st.recursive(
    SCALARS | st.none(),
    lambda inner: st.lists(SCALARS, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=3)


@given(OBJECTS, st.dictionaries(KEYS, PATCHES, max_size=3))
def test_merge_patch_applied_twice_is_applied_once(document: Any, patch: Any) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(OBJECTS, st.dictionaries(KEYS, PATCHES, max_size=3))
def test_merge_patch_changes_neither_argument(document: Any, patch: Any) -> None:
    before = copy_json([document, patch])
    merge_patch(document, patch)
    assert [document, patch] == before


@given(OBJECTS, OBJECTS)
def test_some_merge_patch_leads_from_any_object_to_any_other(old: Any, new: Any) -> None:
    assert merge_patch(old, difference(old, new)) == new


def difference(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return copy_json(new)
    removed = {key: None for key in old if key not in new}
    return removed | {key: difference(old.get(key), value) for key, value in new.items()}


JSON_PATCHES = [
    ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": [1, 2]}, [{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    ({"a": 1}, [{"op": "replace", "path": "/a", "value": [3]}], {"a": [3]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
    ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
    ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    ({"a/b": 1, "c~d": 2}, [{"op": "remove", "path": "/a~1b"}], {"c~d": 2}),
    ({"a/b": 1, "c~d": 2}, [{"op": "remove", "path": "/c~0d"}], {"a/b": 1}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
    ({"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
    ({"a": 1}, [{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
]


@pytest.mark.parametrize(("document", "patch", "result"), JSON_PATCHES)
def test_json_patch(document: Any, patch: Any, result: Any) -> None:
    before = copy_json(document)
    assert json_patch(document, patch) == result
    assert document == before


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ([{"op": "remove", "path": "/x"}], 422, "no member 'x'"),
        ([{"op": "replace", "path": "/x/y", "value": 1}], 422, "no member 'x'"),
        ([{"op": "test", "path": "/x", "value": 1}], 422, "test failed"),
        ([{"op": "remove", "path": "/l/7"}], 422, "index 7 is beyond the list of 2"),
        ([{"op": "remove", "path": "/l/01"}], 422, "no list index"),
        ([{"op": "add", "path": "/s/x", "value": 1}], 422, "neither object nor list"),
        ([{"op": "test", "path": "/s", "value": "no"}], 422, "test failed"),
        ([{"op": "test", "path": "/t", "value": 1}], 422, "test failed"),
        ([{"op": "move", "from": "/o", "path": "/o/x"}], 422, "cannot move into itself"),
        ([{"op": "remove", "path": ""}], 422, "whole document"),
        ([{"op": "remove", "path": "x"}], 422, "not a JSON pointer"),
        ([{"op": "shout", "path": "/s"}], 422, "op must be one of"),
        ([{"op": "add", "path": "/x"}], 422, "has no 'value'"),
        ({"op": "add"}, 400, "a list of operations"),
    ],
)
def test_json_patches_that_do_not_apply(patch: Any, code: int, words: str) -> None:
    document = {"s": "text", "l": [1, 2], "t": True, "o": {}}
    said = "the server rejected our request" if code == 422 else words
    with pytest.raises(StatusError, match=said) as caught:
        json_patch(document, patch)
    assert caught.value.code == code


def pod_with(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


STRATEGIC: dict[str, tuple[str, Any, Any, Any]] = {
    "containers by name, env by name": (
        "Pod",
        pod_with(containers=[{"name": "a", "env": [{"name": "x", "value": "1"}]}, {"name": "b"}]),
        pod_with(containers=[{"name": "a", "env": [{"name": "y", "value": "2"}]}]),
        pod_with(
            containers=[
                {"name": "a", "env": [{"name": "y", "value": "2"}, {"name": "x", "value": "1"}]},
                {"name": "b"},
            ]
        ),
    ),
    "ports by containerPort, mounts by mountPath": (
        "Pod",
        pod_with(
            containers=[
                {
                    "name": "a",
                    "ports": [{"containerPort": 80}],
                    "volumeMounts": [{"mountPath": "/x", "name": "v"}],
                }
            ]
        ),
        pod_with(
            containers=[
                {
                    "name": "a",
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                    "volumeMounts": [{"mountPath": "/x", "readOnly": True}],
                }
            ]
        ),
        pod_with(
            containers=[
                {
                    "name": "a",
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                    "volumeMounts": [{"mountPath": "/x", "name": "v", "readOnly": True}],
                }
            ]
        ),
    ),
    "an element is deleted": (
        "Pod",
        pod_with(volumes=[{"name": "a"}, {"name": "b"}]),
        pod_with(volumes=[{"name": "a", "$patch": "delete"}]),
        pod_with(volumes=[{"name": "b"}]),
    ),
    "a list is replaced": (
        "Pod",
        pod_with(containers=[{"name": "a"}, {"name": "b"}]),
        pod_with(containers=[{"name": "c"}, {"$patch": "replace"}]),
        pod_with(containers=[{"name": "c"}]),
    ),
    "an element is replaced": (
        "Pod",
        pod_with(containers=[{"name": "a", "image": "x", "tty": True}]),
        pod_with(containers=[{"name": "a", "image": "y", "$patch": "replace"}]),
        pod_with(containers=[{"name": "a", "image": "y"}]),
    ),
    "tolerations are one value": (
        "Pod",
        pod_with(tolerations=[{"key": "a"}, {"key": "b"}]),
        pod_with(tolerations=[{"key": "c"}]),
        pod_with(tolerations=[{"key": "c"}]),
    ),
    "a map is replaced": (
        "Pod",
        pod_with(securityContext={"runAsUser": 1, "fsGroup": 2}),
        pod_with(securityContext={"$patch": "replace", "runAsUser": 3}),
        pod_with(securityContext={"runAsUser": 3}),
    ),
    "a map is emptied": (
        "Pod",
        pod_with(securityContext={"runAsUser": 1}),
        pod_with(securityContext={"$patch": "delete"}),
        pod_with(securityContext={}),
    ),
    "retained keys": (
        "Pod",
        pod_with(volumes=[{"name": "v", "emptyDir": {}}]),
        pod_with(
            volumes=[{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]
        ),
        pod_with(volumes=[{"name": "v", "hostPath": {"path": "/x"}}]),
    ),
    "pod IPs by ip": (
        "Pod",
        {"status": {"podIPs": [{"ip": "10.0.0.1"}]}},
        {"status": {"podIPs": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1", "$patch": "delete"}]}},
        {"status": {"podIPs": [{"ip": "10.0.0.2"}]}},
    ),
    "container statuses are one value": (
        "Pod",
        {"status": {"containerStatuses": [{"name": "a"}, {"name": "b"}]}},
        {"status": {"containerStatuses": [{"name": "a", "ready": True}]}},
        {"status": {"containerStatuses": [{"name": "a", "ready": True}]}},
    ),
    "null removes, also inside an element": (
        "Pod",
        {"status": {"message": "m", "conditions": [{"type": "A", "reason": "R"}]}},
        {"status": {"message": None, "conditions": [{"type": "A", "reason": None}]}},
        {"status": {"conditions": [{"type": "A"}]}},
    ),
    "the order that was asked for": (
        "Node",
        {"status": {"conditions": [{"type": "A"}, {"type": "X"}, {"type": "B"}]}},
        {
            "status": {
                "$setElementOrder/conditions": [{"type": "C"}, {"type": "B"}, {"type": "A"}],
                "conditions": [{"type": "C"}],
            }
        },
        {"status": {"conditions": [{"type": "C"}, {"type": "X"}, {"type": "B"}, {"type": "A"}]}},
    ),
    "finalizers are a set": (
        "ConfigMap",
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "c"]}},
    ),
    "a finalizer is deleted": (
        "ConfigMap",
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "owners by uid": (
        "Pod",
        {"metadata": {"ownerReferences": [{"uid": "1", "name": "n"}]}},
        {"metadata": {"ownerReferences": [{"uid": "1", "controller": True}]}},
        {"metadata": {"ownerReferences": [{"uid": "1", "name": "n", "controller": True}]}},
    ),
}


@pytest.mark.parametrize("name", STRATEGIC)
def test_strategic_merge(name: str) -> None:
    kind, document, patch, result = STRATEGIC[name]
    before = copy_json(document)
    assert strategic_merge(document, patch, typed(kind)) == result
    assert document == before


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        (
            pod_with(containers=[{"image": "x", "args": ["a", "b"]}]),
            500,
            r"^map: map\[args:\[a b\] image:x\] does not contain declared merge key: name$",
        ),
        (pod_with(containers=["x"]), 400, "spec.containers: wanted objects"),
        (pod_with(securityContext={"$patch": "explode"}), 400, "unknown \\$patch directive"),
        (pod_with(volumes=[{"name": "v", "$retainKeys": "x"}]), 400, "\\$retainKeys is a list"),
    ],
)
def test_strategic_patches_that_do_not_apply(patch: Any, code: int, words: str) -> None:
    document = pod_with(containers=[{"name": "a"}])
    with pytest.raises(StatusError, match=words) as caught:
        strategic_merge(document, patch, typed("Pod"))
    assert caught.value.code == code


def test_a_list_that_was_not_there_needs_no_keys() -> None:
    volumes = [{"emptyDir": {}}, {"name": "a", "$patch": "delete"}, {"name": "b"}, {"name": "b"}]
    merged = strategic_merge({"spec": {}}, pod_with(volumes=volumes), typed("Pod"))
    assert merged["spec"]["volumes"] == [{"emptyDir": {}}, {"name": "b"}, {"name": "b"}]


CONDITION = st.fixed_dictionaries(
    {"type": st.sampled_from("ABCD"), "status": st.sampled_from(["True", "False"])}
)
CONDITIONS = st.lists(CONDITION, max_size=4, unique_by=lambda c: c["type"])


def conditions(listed: list[Any]) -> dict[str, Any]:
    return {"status": {"conditions": listed}}


@given(CONDITIONS, CONDITIONS)
def test_conditions_are_a_map_by_type_STAT_026(old: list[Any], patch: list[Any]) -> None:
    """The result holds the patch's conditions and the untouched old ones, one of each type."""
    merged = strategic_merge(conditions(old), conditions(patch), typed("Pod"))["status"][
        "conditions"
    ]
    as_map = {c["type"]: c for c in merged}
    assert len(as_map) == len(merged)
    assert as_map == {c["type"]: c for c in old} | {c["type"]: c for c in patch}
    named = [c["type"] for c in patch]
    others = [c["type"] for c in old if c["type"] not in named]
    assert [c["type"] for c in merged if c["type"] in named] == named
    assert [c["type"] for c in merged if c["type"] not in named] == others


@given(CONDITIONS, CONDITIONS)
def test_a_strategic_patch_applied_twice_is_applied_once(old: list[Any], new: list[Any]) -> None:
    once = strategic_merge(conditions(old), conditions(new), typed("Pod"))
    assert strategic_merge(once, conditions(new), typed("Pod")) == once


@given(OBJECTS, st.dictionaries(KEYS, PATCHES, max_size=3))
def test_without_keyed_lists_it_is_a_merge_patch(document: Any, patch: Any) -> None:
    assert strategic_merge(document, patch, typed("ConfigMap")) == merge_patch(document, patch)
