"""What the fake API server does as kube-apiserver does, over HTTP; on a real one, too, where
REFKUBELET_APISERVER names its URL."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_sides import MERGE, URL, ApiSide, api_side


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[ApiSide]:
    if request.param == "real" and not URL:
        pytest.skip("REFKUBELET_APISERVER names no server")
    async with api_side(request.param) as side:
        yield side


def configmap(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(**container: Any) -> dict[str, Any]:
    """A pod that no scheduler and no kubelet touches."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "a", "image": "busybox:1", **container}],
        },
    }


def owners(obj: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """fieldsV1 by manager, operation and subresource."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", ())
    }


async def test_an_apply_creates_and_owns_what_it_says(api: ApiSide) -> None:
    path = f"{api.configmaps}/c"
    status, made = await api.apply(path, configmap(a="1"), "one")
    assert status == 201
    assert owners(made) == {("one", "Apply", ""): {"f:data": {"f:a": {}}}}
    assert made["metadata"]["managedFields"][0]["time"].endswith("Z")
    status, again = await api.apply(path, configmap(a="1"), "one")
    assert status == 200
    assert again == made


async def test_two_who_say_the_same_own_it_together(api: ApiSide) -> None:
    path = f"{api.configmaps}/c"
    await api.apply(path, configmap(a="1"), "one")
    status, found = await api.apply(path, configmap(a="1", b="2"), "two")
    assert status == 200
    assert owners(found)["one", "Apply", ""] == {"f:data": {"f:a": {}}}
    assert owners(found)["two", "Apply", ""] == {"f:data": {"f:a": {}, "f:b": {}}}
    _, found = await api.apply(path, configmap(b="2"), "two")
    assert found["data"] == {"a": "1", "b": "2"}


async def test_what_differs_is_a_conflict_unless_it_is_forced(api: ApiSide) -> None:
    path = f"{api.configmaps}/c"
    await api.apply(path, configmap(a="1"), "one")
    status, refusal = await api.apply(path, configmap(a="2"), "two")
    assert (status, refusal["reason"]) == (409, "Conflict")
    assert refusal["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert refusal["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]
    status, found = await api.apply(path, configmap(a="2"), "two", force="true")
    assert found["data"] == {"a": "2"}
    assert list(owners(found)) == [("two", "Apply", "")]


async def test_what_is_no_longer_applied_goes(api: ApiSide) -> None:
    path = f"{api.configmaps}/c"
    await api.apply(path, configmap(a="1", b="1"), "one")
    _, found = await api.apply(path, configmap(b="1"), "one")
    assert found["data"] == {"b": "1"}


async def test_others_own_what_they_change(api: ApiSide) -> None:
    path = f"{api.configmaps}/c"
    made = await api.done(
        "POST", api.configmaps, configmap(a="1", b="1"), params={"fieldManager": "maker"}
    )
    assert owners(made) == {("maker", "Update", ""): {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    change = {"data": {"a": "2"}}
    agent = {"User-Agent": "changer/v1 (x)"}
    found = await api.done("PATCH", path, change, kind=MERGE, **agent)
    assert owners(found)["changer", "Update", ""] == {"f:data": {"f:a": {}}}
    assert owners(found)["maker", "Update", ""] == {"f:data": {".": {}, "f:b": {}}}
    status, refusal = await api.apply(path, configmap(a="3", b="3"), "one")
    assert status == 409
    lines = refusal["message"].splitlines()
    assert lines[0].startswith('Apply failed with 2 conflicts: conflicts with "changer" using v1:')
    assert lines[1] == "- .data.a"
    assert lines[2].startswith('conflicts with "maker" using v1:')
    assert lines[3] == "- .data.b"


async def test_who_removes_a_field_owns_it_no_longer(api: ApiSide) -> None:
    maker = {"fieldManager": "maker"}
    await api.done("POST", api.configmaps, configmap(a="1", b="1"), params=maker)
    change = {"data": {"b": None}}
    found = await api.done("PATCH", f"{api.configmaps}/c", change, kind=MERGE, params=maker)
    assert owners(found) == {("maker", "Update", ""): {"f:data": {".": {}, "f:a": {}}}}


async def test_an_update_that_changes_nothing_is_no_change(api: ApiSide) -> None:
    made = await api.done("POST", api.configmaps, configmap(a="1"), params={"fieldManager": "m"})
    path = f"{api.configmaps}/c"
    assert await api.done("PUT", path, made, params={"fieldManager": "other"}) == made


async def test_defaults_are_owned_by_who_creates_and_not_by_who_applies(api: ApiSide) -> None:
    made = await api.done("POST", api.pods, pod(), params={"fieldManager": "maker"})
    fields = owners(made)["maker", "Update", ""]["f:spec"]
    assert fields["f:containers"]['k:{"name":"a"}'] == {
        ".": {},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:resources": {},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    }
    assert fields["f:restartPolicy"] == {}
    assert "." not in fields
    assert not {"f:tolerations", "f:priority", "f:serviceAccountName"} & fields.keys()
    status, found = await api.apply(f"{api.pods}/p", pod(image="busybox:2"), "one", force="true")
    assert status == 200
    assert owners(found)["one", "Apply", ""]["f:spec"] == {
        "f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}}},
        "f:schedulerName": {},
    }


async def test_a_status_that_is_applied_to_the_object_is_nobodys(api: ApiSide) -> None:
    applied = pod() | {"status": {"phase": "Running"}}
    status, found = await api.apply(f"{api.pods}/p", applied, "one")
    assert status == 201, found
    assert owners(found)["one", "Apply", ""].keys() == {"f:spec"}
    assert found["status"]["phase"] == "Pending"


async def test_a_status_is_applied_to_its_own_path(api: ApiSide) -> None:
    await api.apply(f"{api.pods}/p", pod(), "one")
    condition = {"type": "example.com/Seen", "status": "True"}
    seen = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "status": {"conditions": [condition]},
    }
    status, found = await api.apply(f"{api.pods}/p/status", seen, "watcher")
    assert status == 200, found
    key = 'k:{"type":"example.com/Seen"}'
    assert owners(found)["watcher", "Apply", "status"] == {
        "f:status": {"f:conditions": {key: {".": {}, "f:status": {}, "f:type": {}}}}
    }
    types = [one["type"] for one in found["status"]["conditions"]]
    assert "example.com/Seen" in types
    status, refusal = await api.apply(f"{api.pods}/nobody/status", seen | {"metadata": {}}, "w")
    assert (status, refusal["reason"]) == (404, "NotFound")


async def test_managed_fields_can_be_emptied(api: ApiSide) -> None:
    await api.apply(f"{api.configmaps}/c", configmap(a="1"), "one")
    change: dict[str, Any] = {"metadata": {"managedFields": [{}]}}
    found = await api.done("PATCH", f"{api.configmaps}/c", change, kind=MERGE)
    assert "managedFields" not in found["metadata"]
    _, found = await api.apply(f"{api.configmaps}/c", configmap(b="1"), "two")
    assert owners(found) == {
        ("two", "Apply", ""): {"f:data": {"f:b": {}}},
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:a": {}}},
    }


@pytest.mark.parametrize(
    ("body", "params", "code", "words"),
    [
        (configmap(), {}, 422, "fieldManager: Required value: is required for apply patch"),
        (configmap(), {"fieldManager": "x" * 129}, 422, "fieldManager: Too long"),
        ({"metadata": {}}, {"fieldManager": "x"}, 400, "invalid object type: /, Kind="),
        (
            configmap() | {"metadata": {"name": "c", "managedFields": [{"manager": "m"}]}},
            {"fieldManager": "x"},
            400,
            "metadata.managedFields must be nil",
        ),
        (
            configmap() | {"dota": {}},
            {"fieldManager": "x"},
            500,
            ".dota: field not declared in schema",
        ),
        (configmap("d"), {"fieldManager": "x"}, 400, "does not match the name on the URL (c)"),
    ],
)
async def test_what_cannot_be_applied(
    api: ApiSide, body: dict[str, Any], params: dict[str, str], code: int, words: str
) -> None:
    kind = "application/apply-patch+yaml"
    status, refusal = await api.ask("PATCH", f"{api.configmaps}/c", body, kind=kind, params=params)
    assert (status, refusal["kind"]) == (code, "Status")
    assert words in refusal["message"]


async def test_force_is_for_applies_only(api: ApiSide) -> None:
    await api.done("POST", api.configmaps, configmap())
    status, refusal = await api.ask(
        "PATCH", f"{api.configmaps}/c", {}, kind=MERGE, params={"force": "true"}
    )
    assert status == 422
    assert "force: Forbidden: may not be specified for non-apply patch" in refusal["message"]


async def test_a_dry_run_of_an_apply_stores_nothing(api: ApiSide) -> None:
    path = f"{api.configmaps}/c"
    status, found = await api.apply(path, configmap(a="1"), "one", dryRun="All")
    assert (status, found["data"]) == (201, {"a": "1"})
    assert (await api.ask("GET", path))[0] == 404


async def test_an_applied_version_has_to_be_the_stored_one(api: ApiSide) -> None:
    path = f"{api.configmaps}/c"
    await api.apply(path, configmap(a="1"), "one")
    stale = configmap(a="2")
    stale["metadata"]["resourceVersion"] = "1"
    status, refusal = await api.apply(path, stale, "one")
    assert (status, refusal["reason"]) == (409, "Conflict")


async def test_kubectl_takes_over_what_it_applied_from_the_client_side(api: ApiSide) -> None:
    last = json.dumps(configmap(a="1"))
    made = configmap(a="1")
    made["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    await api.done(
        "POST", api.configmaps, made, params={"fieldManager": "kubectl-client-side-apply"}
    )
    path = f"{api.configmaps}/c"
    assert (await api.apply(path, configmap(a="2"), "another"))[0] == 409
    status, found = await api.apply(path, configmap(a="2"), "kubectl")
    assert (status, found["data"]) == (200, {"a": "2"})


async def test_bodies_may_be_yaml(api: ApiSide) -> None:
    text = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: |\n    two\n    lines\n"
    )
    made = await api.done("POST", api.configmaps, text, kind="application/yaml")
    assert made["data"] == {"a": "two\nlines\n"}
    text = b"metadata: {name: c}\ndata: {b: 'yes'}\n"
    put = await api.done("PUT", f"{api.configmaps}/c", text, kind="application/yaml")
    assert put["data"] == {"b": "yes"}
    applied = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {d: x}\n"
    params = {"fieldManager": "one"}
    kind = "application/apply-patch+yaml"
    found = await api.done("PATCH", f"{api.configmaps}/c", applied, kind=kind, params=params)
    assert found["data"] == {"b": "yes", "d": "x"}


async def test_openapi_v2_is_json_for_who_takes_it(api: ApiSide) -> None:
    document = await api.done("GET", "/openapi/v2")
    assert document["swagger"] == "2.0"
    spec = document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["containers"]["x-kubernetes-list-type"] == "map"
    assert spec["containers"]["x-kubernetes-list-map-keys"] == ["name"]
    assert spec["tolerations"]["x-kubernetes-list-type"] == "atomic"
    assert spec["nodeSelector"]["x-kubernetes-map-type"] == "atomic"


async def test_a_list_of_a_version_that_is_not_there_waits_and_is_refused(api: ApiSide) -> None:
    never = {"resourceVersion": "999999999999"}
    status, refusal = await api.ask("GET", api.configmaps, params=never)
    assert (status, refusal["reason"]) == (504, "Timeout")
    words = "Timeout: Too large resource version: 999999999999, current: "
    assert refusal["message"].startswith(words)
    assert refusal["details"]["retryAfterSeconds"] == 1
    (cause,) = refusal["details"]["causes"]
    assert cause["reason"] == "ResourceVersionTooLarge"


async def test_a_streaming_list_of_such_a_version_ends_with_an_error(api: ApiSide) -> None:
    events = await api.events(
        api.configmaps,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        resourceVersion="999999999999",
        timeoutSeconds="10",
    )
    assert [event["type"] for event in events] == ["ERROR"]
    assert (events[0]["object"]["code"], events[0]["object"]["reason"]) == (504, "Timeout")


async def test_a_watch_from_such_a_version_is_silent(api: ApiSide) -> None:
    assert await api.events(api.configmaps, resourceVersion="999999999999") == []


async def test_a_streaming_list_ends_with_its_bookmark(api: ApiSide) -> None:
    made = await api.done("POST", api.pods, pod())
    events = await api.events(
        api.pods,
        resourceVersion=made["metadata"]["resourceVersion"],
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )
    assert [event["type"] for event in events][:2] == ["ADDED", "BOOKMARK"]
    mark = events[1]["object"]
    assert mark["kind"] == "Pod"
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["metadata"]["resourceVersion"]) > 0


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
async def test_rows_of_tables_hold_what_is_asked_for(api: ApiSide, include: str) -> None:
    await api.done("POST", api.pods, pod())
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = await api.done("GET", api.pods, params={"includeObject": include}, **accept)
    (row,) = table["rows"]
    kinds = {"None": None, "Metadata": "PartialObjectMetadata", "Object": "Pod"}
    assert (row.get("object") or {}).get("kind") == kinds[include]


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"name": "c"}, "/c"),
        ({"name": "other"}, "/other"),
        ({"name": "c", "namespace": "elsewhere"}, "elsewhere/c"),
        ({}, "/"),
    ],
)
async def test_an_applied_object_is_checked_against_its_type_before_its_name(
    api: ApiSide, metadata: dict[str, Any], place: str
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "unknown": 1}
    status, answer = await api.apply(f"{api.configmaps}/c", body, "one")
    assert (status, answer["message"]) == (
        500,
        f"failed to create typed patch object ({place}; /v1, Kind=ConfigMap): "
        ".unknown: field not declared in schema",
    )
    entries = {"name": "c", "managedFields": [{"manager": "one"}]}
    status, answer = await api.apply(f"{api.configmaps}/c", {**body, "metadata": entries}, "one")
    assert (status, answer["message"]) == (400, "metadata.managedFields must be nil")


async def test_a_namespace_that_is_not_deleted_is_active(api: ApiSide) -> None:
    name = f"{api.pods.split('/')[4]}-more"
    path = f"/api/v1/namespaces/{name}/status"
    await api.done("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        body = {"status": {"phase": "Terminating"}}
        status, answer = await api.ask("PATCH", path, body, kind=MERGE)
        assert (status, answer["message"]) == (
            422,
            f'Namespace "{name}" is invalid: status.Phase: Invalid value: "Terminating": '
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
        same = await api.done("PATCH", path, {"status": {"phase": None}}, kind=MERGE)
        assert same["status"]["phase"] == "Active"
    finally:
        await api.ask("DELETE", f"/api/v1/namespaces/{name}")


FIRST, SECOND = [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], [{"ip": "10.0.0.2"}]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"podIP": "10.0.0.1"}, FIRST),
        ({"podIP": "10.0.0.2"}, SECOND),
        ({"podIP": None}, FIRST),
        ({"podIPs": SECOND}, FIRST[:1]),
        ({"podIP": "10.0.0.2", "podIPs": FIRST}, SECOND),
        ({"podIP": None, "podIPs": SECOND}, SECOND),
    ],
)
async def test_the_address_of_a_pod_is_the_first_of_its_addresses(
    api: ApiSide, change: dict[str, Any], expected: list[dict[str, str]]
) -> None:
    path = f"{api.pods}/p/status"
    await api.done("POST", api.pods, pod())
    given = {"status": {"podIP": FIRST[0]["ip"], "podIPs": FIRST}}
    await api.done("PATCH", path, given, kind=MERGE)
    status = (await api.done("PATCH", path, {"status": change}, kind=MERGE))["status"]
    assert (status["podIP"], status["podIPs"]) == (expected[0]["ip"], expected)


async def test_the_range_of_a_node_is_given_once(api: ApiSide) -> None:
    name = f"node-{api.pods.split('/')[4]}"
    body = {
        "metadata": {"name": name},
        "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24", "fd00::/64"]},
    }
    made = await api.done("POST", "/api/v1/nodes", body)
    try:
        assert made["spec"]["podCIDRs"] == ["10.1.0.0/24"]
        path = f"/api/v1/nodes/{name}"
        change = {"spec": {"podCIDR": "10.3.0.0/24"}}
        status, answer = await api.ask("PATCH", path, change, kind=MERGE)
        assert (status, answer["message"].split(": ", 1)[1]) == (
            422,
            'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        )
        same = await api.done("PATCH", path, {"spec": {"podCIDR": None}}, kind=MERGE)
        assert same["spec"]["podCIDR"] == "10.1.0.0/24"
    finally:
        await api.ask("DELETE", f"/api/v1/nodes/{name}")
