"""Create, get, list, update, patch: what is stored, what is refused, and with which words."""

from typing import Any

import pytest
from fakekubeapi_helpers import (
    CONFIGMAPS,
    JSON_PATCH,
    LEASES,
    MERGE_PATCH,
    NODES,
    PODS,
    configmap,
    create,
    get,
    names,
    ok,
    patch,
    pod,
    refused,
)

from fakekubeapi import FakeApi
from fakekubeapi.bodies import APPLY_PATCH

pytestmark = pytest.mark.virtual_time

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


async def test_create_gives_identity_and_version() -> None:
    api = FakeApi()
    made = await create(api, CONFIGMAPS, configmap("c"))
    meta = made["metadata"]
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
    assert (meta["name"], meta["namespace"]) == ("c", "default")
    assert meta["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert len(meta["uid"]) == 36
    assert int(meta["resourceVersion"]) == api.store.revision
    assert await get(api, f"{CONFIGMAPS}/c") == made


async def test_create_ignores_what_belongs_to_the_server_MIRR_023() -> None:
    api = FakeApi()
    body = pod("st-n")
    body["metadata"] |= {
        "uid": "static",
        "generation": 9,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "annotations": {"kubernetes.io/config.mirror": "static"},
    }
    body["status"] = {"phase": "Running", "podIP": "10.0.0.1"}
    made = await create(api, PODS, body)
    assert made["metadata"]["uid"] != "static"
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_generate_name_makes_distinct_names() -> None:
    api = FakeApi()
    made = [await create(api, CONFIGMAPS, {"metadata": {"generateName": "c-"}}) for _ in range(3)]
    found = {item["metadata"]["name"] for item in made}
    assert len(found) == 3
    assert all(name.startswith("c-") and len(name) == 7 for name in found)


async def test_answers_are_copies() -> None:
    api = FakeApi()
    body = configmap("c")
    made = await create(api, CONFIGMAPS, body)
    made["data"]["k"] = body["data"]["k"] = "changed"
    assert (await get(api, f"{CONFIGMAPS}/c"))["data"] == {"k": "v"}


async def test_system_namespaces_are_there() -> None:
    listed = await get(FakeApi(), "/api/v1/namespaces")
    assert names(listed) == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert all(item["status"] == {"phase": "Active"} for item in listed["items"])


async def test_list_has_a_version_and_bare_items() -> None:
    api = FakeApi()
    for name in ("b", "a"):
        await create(api, CONFIGMAPS, configmap(name))
    listed = await get(api, CONFIGMAPS)
    assert names(listed) == ["a", "b"]
    assert listed["kind"] == "ConfigMapList"
    assert listed["metadata"]["resourceVersion"] == str(api.store.revision)
    assert "kind" not in listed["items"][0]


async def test_list_in_parts() -> None:
    api = FakeApi()
    for number in range(5):
        await create(api, CONFIGMAPS, configmap(f"c{number}"))
    seen, left, params = [], [], {"limit": "2"}
    while True:
        part = await get(api, CONFIGMAPS, **params)
        seen.append(names(part))
        left.append(part["metadata"].get("remainingItemCount"))
        if "continue" not in part["metadata"]:
            break
        params = {"limit": "2", "continue": part["metadata"]["continue"]}
    assert seen == [["c0", "c1"], ["c2", "c3"], ["c4"]]
    assert left == [3, 1, None]


@pytest.mark.parametrize(
    "selector", [{"labelSelector": "!a"}, {"fieldSelector": "metadata.name!=a"}]
)
async def test_what_is_left_of_a_selection_is_not_counted(selector: dict[str, str]) -> None:
    api = FakeApi()
    for number in range(3):
        await create(api, CONFIGMAPS, configmap(f"c{number}"))
    part = await get(api, CONFIGMAPS, limit="2", **selector)
    assert part["metadata"]["continue"]
    assert "remainingItemCount" not in part["metadata"]


async def test_namespaces_separate_and_all_namespaces_join() -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("one"))
    await create(api, "/api/v1/namespaces/kube-system/configmaps", configmap("two"))
    assert names(await get(api, CONFIGMAPS)) == ["one"]
    assert names(await get(api, "/api/v1/configmaps")) == ["one", "two"]


async def test_refusals_of_create() -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("c"))
    again = await api.request("POST", CONFIGMAPS, body=configmap("c"))
    assert refused(again, 409, "AlreadyExists") == 'configmaps "c" already exists'
    asked = configmap("c")
    asked["metadata"]["generateName"] = "g-"
    taken = await api.request("POST", CONFIGMAPS, body=asked)
    assert refused(taken, 409, "AlreadyExists") == (
        'configmaps "c" already exists, the server was not able to generate a unique name for the '
        "object"
    )
    assert taken.body["details"]["retryAfterSeconds"] == 1
    lost = await api.request("POST", "/api/v1/namespaces/nowhere/configmaps", body=configmap("c"))
    assert refused(lost, 404, "NotFound") == 'namespaces "nowhere" not found'
    wrong = await api.request("POST", CONFIGMAPS, body=configmap("d") | {"kind": "Secret"})
    assert refused(wrong, 400, "BadRequest") == (
        'Secret in version "v1" cannot be handled as a ConfigMap: '
        "converting (v1.Secret) to (core.ConfigMap): unknown conversion"
    )
    unknown = await api.request("POST", CONFIGMAPS, body=configmap("d") | {"kind": "PodSpec"})
    assert 'no kind "PodSpec" is registered' in refused(unknown, 400, "BadRequest")
    elsewhere = configmap("d")
    elsewhere["metadata"]["namespace"] = "kube-system"
    wrong = await api.request("POST", CONFIGMAPS, body=elsewhere)
    assert "does not match the namespace sent on the request" in refused(wrong, 400, "BadRequest")
    nothing = await api.request("POST", CONFIGMAPS)
    assert "must be a ConfigMap object" in refused(nothing, 400, "BadRequest")
    nameless = await api.request("POST", CONFIGMAPS, body={"metadata": {}})
    assert "metadata.name: Required value" in refused(nameless, 422, "Invalid")


async def test_not_found_names_the_group() -> None:
    answer = await FakeApi().request("GET", f"{LEASES}/n")
    assert (
        refused(answer, 404, "NotFound") == 'leases.coordination.k8s.io "n" not found'
    )  # as recorded
    assert answer.body["details"] == {
        "name": "n",
        "group": "coordination.k8s.io",
        "kind": "leases",
    }


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", "/api/v1/gizmos", 404, "NotFound"),
        ("GET", "/nothing", 404, "NotFound"),
        ("GET", f"{PODS}/a/gizmo", 404, "NotFound"),
        ("GET", "/api/v1/namespaces/default/nodes", 404, "NotFound"),
        ("PUT", PODS, 405, "MethodNotAllowed"),
        ("POST", f"{PODS}/a", 405, "MethodNotAllowed"),
        ("POST", f"{PODS}/a/status", 405, "MethodNotAllowed"),
        ("POST", "/api/v1/pods", 405, "MethodNotAllowed"),
        ("GET", f"{PODS}?", 404, "NotFound"),
    ],
)
async def test_unknown_paths_and_methods(method: str, path: str, code: int, reason: str) -> None:
    refused(await FakeApi().request(method, path), code, reason)


async def test_wrong_parameters_are_refused() -> None:
    api = FakeApi()
    for params, word in (
        ({"limit": "many"}, 'strconv.ParseInt: parsing "many": invalid syntax'),
        ({"continue": "%%%"}, "continue key is not valid"),
        ({"fieldSelector": "spec.colour=red"}, "field label not supported: spec.colour"),
        ({"labelSelector": "a=b=c,("}, "found '=', expected"),
    ):
        answer = await api.request("GET", PODS, params=params)
        assert word in refused(answer, 400, "BadRequest")
    dry = await api.request("POST", PODS, params={"dryRun": "Some"}, body=pod())
    assert 'supported values: "All"' in refused(dry, 422, "Invalid")


async def test_services_without_an_address_are_left_out_for_a_kubelet() -> None:
    api = FakeApi()
    path = "/api/v1/namespaces/default/services"
    for name, address in (("web", "10.96.0.8"), ("headless", "None")):
        body = {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}}
        assert (await api.request("POST", path, body=body)).status == 201
    params = {"fieldSelector": "spec.clusterIP!=None"}
    listed = await api.request("GET", "/api/v1/services", params=params)
    assert [item["metadata"]["name"] for item in listed.body["items"]] == ["web"]


async def test_update_needs_the_newest_version_if_it_names_one() -> None:
    api = FakeApi()
    first = await create(api, CONFIGMAPS, configmap("c"))
    second = ok(await api.request("PUT", f"{CONFIGMAPS}/c", body=first | {"data": {"k": "2"}}))
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    stale = await api.request("PUT", f"{CONFIGMAPS}/c", body=first | {"data": {"k": "3"}})
    assert "the object has been modified" in refused(stale, 409, "Conflict")
    forced = ok(await api.request("PUT", f"{CONFIGMAPS}/c", body=configmap("c")))
    assert forced["data"] == {"k": "v"}
    assert forced["metadata"]["uid"] == first["metadata"]["uid"]


async def test_update_refusals() -> None:
    api = FakeApi()
    made = await create(api, CONFIGMAPS, configmap("c"))
    gone = await api.request("PUT", f"{CONFIGMAPS}/x", body=configmap("x"))
    refused(gone, 404, "NotFound")
    renamed = await api.request("PUT", f"{CONFIGMAPS}/c", body=configmap("d"))
    assert "(d) does not match the name on the URL (c)" in refused(renamed, 400, "BadRequest")
    made["metadata"]["uid"] = "other"
    foreign = await api.request("PUT", f"{CONFIGMAPS}/c", body=made)
    assert "UID in precondition: other" in refused(foreign, 409, "Conflict")


async def test_an_update_that_changes_nothing_is_no_change() -> None:
    api = FakeApi()
    made = await create(api, CONFIGMAPS, configmap("c"))
    assert ok(await api.request("PUT", f"{CONFIGMAPS}/c", body=made)) == made
    assert ok(await patch(api, f"{CONFIGMAPS}/c", {"data": {"k": "v"}})) == made


async def test_immutable_config_maps() -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("c") | {"immutable": True})
    changed = await patch(api, f"{CONFIGMAPS}/c", {"data": {"k": "w"}})
    assert "data: Forbidden" in refused(changed, 422, "Invalid")


async def test_secrets_fold_string_data() -> None:
    made = await create(
        FakeApi(),
        "/api/v1/namespaces/default/secrets",
        {"metadata": {"name": "s"}, "stringData": {"k": "v"}},
    )
    assert made["data"] == {"k": "dg=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made


async def test_leases_are_made_by_put_and_changed_by_version_NODE_041() -> None:
    api = FakeApi()
    lease = {"metadata": {"name": "n"}, "spec": {"holderIdentity": "n"}}
    made = await api.request("PUT", f"{LEASES}/n", body=lease)
    assert made.status == 201
    bare = await api.request("PUT", f"{LEASES}/n", body=lease)
    assert "must be specified for an update" in refused(bare, 422, "Invalid")
    newer = made.body | {
        "spec": {"holderIdentity": "n", "renewTime": "2026-01-01T00:00:10.000000Z"}
    }
    assert (await api.request("PUT", f"{LEASES}/n", body=newer)).status == 200
    refused(await api.request("PUT", f"{LEASES}/n", body=newer), 409, "Conflict")


async def test_nodes_keep_their_first_status_and_get_the_not_ready_taint_NODE_003() -> None:
    api = FakeApi()
    body = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}}
    made = await create(api, NODES, body)
    assert made["status"]["capacity"] == made["status"]["allocatable"] == {"cpu": "2"}
    assert made["spec"]["taints"] == [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    ]
    refused(await api.request("POST", NODES, body=body), 409, "AlreadyExists")  # NODE-004


async def test_node_status_patch_touches_metadata_and_status_only_NODE_011() -> None:
    api = FakeApi()
    await create(api, NODES, {"metadata": {"name": "n"}})
    change = {
        "metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "Hostname", "address": "n"},
            ],
        },
    }
    node = ok(await patch(api, f"{NODES}/n/status", change))
    assert node["metadata"]["labels"] == {"l": "1"}
    assert "unschedulable" not in node["spec"]
    replaced = {
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"$patch": "replace"},
            ]
        }
    }
    node = ok(await patch(api, f"{NODES}/n/status", replaced))
    assert node["status"]["addresses"] == [{"type": "InternalIP", "address": "10.0.0.2"}]
    (ready,) = node["status"]["conditions"]
    assert (ready["type"], ready["status"]) == ("Ready", "True")


async def test_patch_types_on_one_object() -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("c"))
    path = f"{CONFIGMAPS}/c"
    made = ok(await patch(api, path, {"data": {"a": "1"}}, MERGE_PATCH))
    assert made["data"] == {"k": "v", "a": "1"}
    made = ok(await patch(api, path, [{"op": "remove", "path": "/data/k"}], JSON_PATCH))
    assert made["data"] == {"a": "1"}
    unknown = await patch(api, path, b"{}", "application/apply-patch+cbor")
    message = refused(unknown, 415, "UnsupportedMediaType")
    assert "application/strategic-merge-patch+json" in message


async def test_a_patch_cannot_rename_or_break_the_object() -> None:
    api = FakeApi()
    made = await create(api, CONFIGMAPS, configmap("c"))
    path = f"{CONFIGMAPS}/c"
    renamed = await patch(api, path, {"metadata": {"name": "d"}})
    words = "the name of the object (d) does not match the name on the URL (c)"
    assert refused(renamed, 400, "BadRequest") == words
    broken = await patch(api, path, [{"op": "remove", "path": "/metadata"}], JSON_PATCH)
    refused(broken, 400, "BadRequest")
    stale = await patch(api, path, {"metadata": {"resourceVersion": "1"}, "data": {"k": "2"}})
    refused(stale, 409, "Conflict")
    foreign = await patch(api, path, {"metadata": {"uid": "other"}, "data": {"k": "2"}})
    assert refused(foreign, 422, "Invalid") == (  # STAT-022: the UID in a patch has to be its own
        'ConfigMap "c" is invalid: metadata.uid: Invalid value: "other": field is immutable'
    )
    assert [cause["field"] for cause in foreign.body["details"]["causes"]] == ["metadata.uid"] * 2
    assert await get(api, path) == made


async def test_dry_run_stores_nothing() -> None:
    api = FakeApi()
    dry = {"dryRun": "All"}
    assert (await api.request("POST", CONFIGMAPS, params=dry, body=configmap("c"))).ok
    refused(await api.request("GET", f"{CONFIGMAPS}/c"), 404, "NotFound")
    made = await create(api, CONFIGMAPS, configmap("c"))
    assert (await api.request("DELETE", f"{CONFIGMAPS}/c", params=dry)).ok
    assert await get(api, f"{CONFIGMAPS}/c") == made


async def test_events_belong_to_the_namespace_of_their_object() -> None:
    api = FakeApi()
    path = "/api/v1/namespaces/default/events"
    event = {"metadata": {"name": "e"}, "reason": "Pulled", "type": "Normal"}
    about_pod = event | {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"}}
    await create(api, path, about_pod)
    about_node = event | {
        "metadata": {"name": "e2"},
        "involvedObject": {"kind": "Node", "name": "n"},
    }
    await create(api, path, about_node)
    found = await get(api, path, fieldSelector="involvedObject.kind=Node")
    assert names(found) == ["e2"]
    elsewhere = event | {"involvedObject": {"kind": "Pod", "namespace": "kube-system"}}
    wrong = await api.request("POST", path, body=elsewhere)
    assert "does not match event.namespace" in refused(wrong, 422, "Invalid")


async def test_discovery_lists_what_is_stored() -> None:
    api = FakeApi()
    assert (await get(api, "/api"))["versions"] == ["v1"]
    groups = [group["name"] for group in (await get(api, "/apis"))["groups"]]
    assert "coordination.k8s.io" in groups
    assert (await get(api, "/apis/coordination.k8s.io"))["preferredVersion"]["version"] == "v1"
    rows = (await get(api, "/api/v1"))["resources"]
    found = {row["name"]: row for row in rows}
    assert found["pods"]["shortNames"] == ["po"]
    assert found["pods/status"]["verbs"] == ["get", "patch", "update"]
    assert not found["nodes"]["namespaced"]
    assert (await get(api, "/version"))["minor"] == "36"
    refused(await api.request("GET", "/openapi/v1"), 404, "NotFound")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_what_an_update_creates_keeps_the_marks_of_a_deletion(method: str) -> None:
    """Of an object that a POST creates the server takes them away."""
    api = FakeApi()
    marks = {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
    body = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "r", **marks},
        "handler": "h",
    }
    options = {"content_type": APPLY_PATCH, "params": {"fieldManager": "m"}}
    how: dict[str, Any] = options if method == "PATCH" else {}
    made = await api.request(method, f"{RUNTIME_CLASSES}/r", body=body, **how)
    assert made.status == 201
    assert marks.items() <= made.body["metadata"].items()
    posted = await create(api, RUNTIME_CLASSES, body | {"metadata": {"name": "p", **marks}})
    assert not marks.keys() & posted["metadata"].keys()


async def test_a_put_that_creates_names_a_version_but_no_uid() -> None:
    api = FakeApi()
    body = {"metadata": {"name": "r", "resourceVersion": "5"}, "handler": "h"}
    assert (await api.request("PUT", f"{RUNTIME_CLASSES}/r", body=body)).status == 201
    other = {"metadata": {"name": "s", "uid": "u"}, "handler": "h"}
    answer = await api.request("PUT", f"{RUNTIME_CLASSES}/s", body=other)
    assert refused(answer, 409, "Conflict").endswith(
        "Key: /registry/runtimeclasses/s, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        "failed: UID in precondition: u, UID in object meta: "
    )
