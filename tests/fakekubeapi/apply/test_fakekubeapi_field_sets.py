"""Field sets and managedFields as they are written and read."""

from __future__ import annotations

from typing import Any

import pytest

from fakekubeapi.apply.field_sets import from_fields_v1, path_text, to_fields_v1
from fakekubeapi.apply.managers import Manager, Owned, decode, encode, manager_name
from fakekubeapi.apply.ownership import Write, after_apply
from fakekubeapi.apply.structure import shape_of
from fakekubeapi.apply.walk import BadObject, check, merged
from kubeobjects.schema.messages import message

POD = shape_of(message("core.v1.Pod"))


def test_a_tree_is_read_as_it_was_written() -> None:
    tree = {
        "f:spec": {
            "f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}}},
            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {}},
        },
        "f:metadata": {"f:finalizers": {'v:"x/y"': {}}},
    }
    fields = from_fields_v1(tree)
    assert to_fields_v1(fields) == tree
    assert sorted(map(path_text, fields)) == [
        '.metadata.finalizers[="x/y"]',
        '.spec.containers[name="a"]',
        '.spec.containers[name="a"].image',
        '.spec.ports[containerPort=80,protocol="TCP"]',
    ]


@pytest.mark.parametrize("tree", [{"x:y": {}}, {"k:nonsense": {}}, {"v:": {}}, {"f:a": 1}, ["f:a"]])
def test_what_is_no_tree_is_refused(tree: Any) -> None:
    with pytest.raises(ValueError, match="wanted"):
        from_fields_v1(tree)


def owned(time: str, *names: str) -> Owned:
    return Owned(frozenset((f"f:{name}",) for name in names), time)


def test_appliers_come_first_and_then_the_oldest() -> None:
    managers = {
        Manager("u2", "Update", "v1"): owned("2026-01-01T00:00:02Z", "a"),
        Manager("u1", "Update", "v1", "status"): owned("2026-01-01T00:00:01Z", "b"),
        Manager("ap", "Apply", "v1"): owned("2026-01-01T00:00:09Z", "c"),
        Manager("nothing", "Update", "v1"): owned("2026-01-01T00:00:00Z"),
    }
    found = encode(managers)
    assert [entry["manager"] for entry in found] == ["ap", "u1", "u2"]
    assert found[1] == {
        "manager": "u1",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:01Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:b": {}},
        "subresource": "status",
    }
    assert encode(decode(found)) == found


def test_the_oldest_of_too_many_updaters_are_one() -> None:
    managers = {
        Manager(f"m{number:02}", "Update", "v1"): owned(
            f"2026-01-01T00:00:{number:02}Z", f"a{number}"
        )
        for number in range(13)
    }
    found = encode(managers)
    assert [entry["manager"] for entry in found][:2] == ["ancient-changes", "m04"]
    assert len(found) == 10
    assert found[0]["fieldsV1"].keys() == {"f:a0", "f:a1", "f:a2", "f:a3"}


@pytest.mark.parametrize(
    ("given", "agent", "name"),
    [
        ("me", "kubectl/v1.36", "me"),
        ("", "kubelet/v1.36.0 (linux/amd64) kubernetes/abc", "kubelet"),
        ("", "", "unknown"),
        ("", "a\tb/1", "a?b"),
        ("", "x" * 200, "x" * 128),
    ],
)
def test_who_writes(given: str, agent: str, name: str) -> None:
    assert manager_name(given, agent) == name


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"foo": 1}, ".spec.foo: field not declared in schema"),
        (
            {"containers": [{"name": "a"}, {"name": "a"}]},
            '.spec.containers: duplicate entries for key [name="a"]',
        ),
        (
            {"volumes": [{"emptyDir": {}}, {"emptyDir": {}}]},
            '.spec.volumes: duplicate entries for key [name=""]',
        ),
    ],
)
def test_objects_that_nobody_can_apply(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(BadObject) as refusal:
        check({"spec": spec}, POD)
    assert words in str(refusal.value)


def test_a_key_without_a_default_must_be_there() -> None:
    account = shape_of(message("core.v1.ServiceAccount"))
    with pytest.raises(BadObject, match=r'element that omits all key fields \["name"\]'):
        check({"secrets": [{"namespace": "x"}]}, account)


def test_a_key_with_a_default_need_not_be_there() -> None:
    check({"spec": {"volumes": [{"emptyDir": {}}], "hostAliases": [{"hostnames": ["a"]}]}}, POD)
    ports = [
        {"name": "a"},
        {"name": "b", "containerPort": 1},
        {"containerPort": 1, "protocol": "UDP"},
    ]
    check({"spec": {"containers": [{"image": "x", "ports": ports}]}}, POD)


def test_what_nobody_owns_stays_with_what_others_own_beside_it() -> None:
    """fsGroup is another manager's; runAsGroup is nobody's."""
    security = ("f:spec", "f:securityContext")
    one, two = Manager("one", "Apply", "v1"), Manager("two", "Apply", "v1")
    managers = {
        one: Owned(frozenset({(*security, "f:runAsUser")}), ""),
        two: Owned(frozenset({(*security, "f:fsGroup")}), ""),
    }
    context = {"runAsUser": 1, "fsGroup": 2, "runAsGroup": 3}
    live = {"kind": "Pod", "spec": {"securityContext": context}}
    applied = {"kind": "Pod"}
    new, left = after_apply(managers, live, applied, POD, Write(one, ""), force=False)
    assert new["spec"]["securityContext"] == {"fsGroup": 2, "runAsGroup": 3}
    assert list(left) == [two]
    new, left = after_apply({one: managers[one]}, live, applied, POD, Write(one, ""), force=False)
    assert new == applied
    assert left == {}


def test_an_element_that_is_stored_twice_is_not_lost() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    live = {"spec": {"containers": [{"name": "c", "env": env}]}}
    applied = {"spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "3"}]}]}}
    found = merged(live, applied, POD)["spec"]["containers"][0]["env"]
    assert sorted(one["value"] for one in found) == ["1", "2", "3"]
