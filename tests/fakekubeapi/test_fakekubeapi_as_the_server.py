"""Where clients of a real server would notice a difference: kubectl's questions, strict fields,
secrets, selections of watches, versions of lists; and mistakes of tests that program the server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from fakekubeapi_helpers import (
    CONFIGMAPS,
    PODS,
    configmap,
    create,
    follow,
    get,
    names,
    ok,
    patch,
    pod,
    refused,
)

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.discovery.openapi import openapi_document
from fakekubeapi.discovery.openapi_v2 import openapi_v2
from fakekubeapi.resources import GROUP_VERSIONS, RESOURCES
from kubeobjects.schema.messages import minors, schema_of
from simclock import run_virtual

pytestmark = pytest.mark.virtual_time

SECRETS = "/api/v1/namespaces/default/secrets"


def secret(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "s"}, "data": {"k": "dg=="}, **fields}


async def test_kubectl_finds_that_the_server_checks_fields_and_tries_requests() -> None:
    api = FakeApi()
    paths = (await get(api, "/openapi/v3"))["paths"]
    assert paths["api/v1"] == {"serverRelativeURL": "/openapi/v3/api/v1"}
    leases = await get(api, paths["apis/coordination.k8s.io/v1"]["serverRelativeURL"])
    ((path, operations),) = leases["paths"].items()
    assert path == "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    kind = operations["patch"]["x-kubernetes-group-version-kind"]
    assert kind == {"group": "coordination.k8s.io", "version": "v1", "kind": "Lease"}
    names = [row["name"] for row in operations["patch"]["parameters"]]
    assert names == ["dryRun", "fieldManager", "fieldValidation"]
    for nowhere in ("/openapi/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/api"):
        refused(await api.request("GET", nowhere), 404, "NotFound")


async def test_unknown_fields_are_refused_where_strictness_is_asked_for() -> None:
    api, strict = FakeApi(), {"fieldValidation": "Strict"}
    wrong = pod("a", contaners=[])
    wrong["spec"]["containers"][0]["imag"] = "busybox:1"
    answer = await api.request("POST", PODS, body=wrong, params=strict)
    assert refused(answer, 400, "BadRequest") == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].imag", unknown field "spec.contaners"'
    )
    ok(await api.request("POST", PODS, body=wrong))  # as a kubelet or an old client asks
    ok(await api.request("POST", PODS, body=pod("b"), params=strict))


@pytest.mark.parametrize(
    ("kind", "change", "shown"),
    [
        (
            "application/strategic-merge-patch+json",
            {"metadata": {"$patch": "replace", "labels": {"x": None}}, "statuss": {}},
            r"map\[metadata:map\[\$patch:replace labels:map\[x:<nil>\]\] statuss:map\[\]\]",
        ),
        ("application/merge-patch+json", {"statuss": {}}, ".*b.*uid.*statuss.*"),
        (
            "application/json-patch+json",
            [{"op": "add", "path": "/statuss", "value": {}}],
            ".*b.*uid.*statuss.*",
        ),
    ],
)
async def test_unknown_fields_of_patches_are_refused_with_the_patch(
    kind: str, change: Any, shown: str
) -> None:
    api = FakeApi()
    ok(await api.request("POST", PODS, body=pod("b")))
    asked = {"params": {"fieldValidation": "Strict"}, "content_type": kind}
    answer = await api.request("PATCH", f"{PODS}/b", body=change, **asked)
    words = rf' "" is invalid: patch: Invalid value: "{shown}": '
    words += r'strict decoding error: unknown field "statuss"'
    assert re.fullmatch(words, refused(answer, 422, "Invalid"))
    ok(await api.request("PATCH", f"{PODS}/b", body=change, content_type=kind))


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", CONFIGMAPS, "application/json"),
        ("PUT", f"{CONFIGMAPS}/c", "application/json"),
        ("PATCH", f"{CONFIGMAPS}/c", "application/merge-patch+json"),
        ("PATCH", f"{CONFIGMAPS}/c", "application/strategic-merge-patch+json"),
    ],
)
async def test_directives_are_fields_that_are_not_known_but_in_strategic_patches(
    method: str, path: str, kind: str
) -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("c"))
    answer = await api.request(
        method,
        path,
        body={**configmap("c"), "$patch": "replace"},
        content_type=kind,
        params={"fieldValidation": "Strict"},
    )
    if "strategic" in kind:
        ok(answer)
    else:
        assert answer.status in (400, 422)
        assert 'strict decoding error: unknown field "$patch"' in answer.body["message"]


async def test_what_leaves_a_selection_is_told_as_it_was() -> None:
    api = FakeApi()
    events: list[dict[str, Any]] = []
    await create(api, CONFIGMAPS, configmap("c", colour="red"))

    watch = asyncio.create_task(follow(api, CONFIGMAPS, events, labelSelector="colour=red"))
    await asyncio.sleep(1)
    changed = ok(await patch(api, f"{CONFIGMAPS}/c", {"metadata": {"labels": {"colour": "b"}}}))
    await asyncio.sleep(1)
    watch.cancel()
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]
    last = events[1]["object"]["metadata"]
    assert last["labels"] == {"colour": "red"}
    assert last["resourceVersion"] == changed["metadata"]["resourceVersion"]


async def test_secrets_keep_their_type_and_fold_on_every_write() -> None:
    api = FakeApi()
    await create(api, SECRETS, secret(type="a/b"))
    put = await api.request("PUT", f"{SECRETS}/s", body=secret(stringData={"l": "w"}))
    assert ok(put)["type"] == "a/b"
    assert put.body["data"] == {"k": "dg==", "l": "dw=="}
    other = await patch(api, f"{SECRETS}/s", {"type": "c/d"})
    assert "type: Invalid value" in refused(other, 422, "Invalid")


async def test_immutable_secrets() -> None:
    api = FakeApi()
    await create(api, SECRETS, secret(immutable=True))
    changed = await patch(api, f"{SECRETS}/s", {"stringData": {"k": "w"}})
    assert "data: Forbidden" in refused(changed, 422, "Invalid")


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (
            SECRETS,
            secret(stringData={"k": 5}),
            "number into Go struct field Secret.stringData of type string",
        ),
        (
            CONFIGMAPS,
            configmap() | {"data": {"k": True}},
            "bool into Go struct field ConfigMap.data of type string",
        ),
        (
            PODS,
            pod(nodeSelector={"k": 1}),
            "Go struct field PodSpec.spec.nodeSelector of type string",
        ),
    ],
)
async def test_values_of_maps_are_texts(path: str, body: dict[str, Any], words: str) -> None:
    answer = await FakeApi().request("POST", path, body=body)
    assert words in refused(answer, 400, "BadRequest")


async def test_a_pod_is_replaced_by_its_own_manifest() -> None:
    """What admission added is not lost, and not missed, when a client puts what it once posted."""

    api = FakeApi()
    made = await create(api, PODS, pod(priority=7))
    manifest = pod()
    manifest["spec"]["containers"][0]["image"] = "busybox:2"
    put = ok(await api.request("PUT", f"{PODS}/a", body=manifest))
    assert put["spec"]["tolerations"] == made["spec"]["tolerations"]
    assert put["spec"]["priority"] == 7
    assert put["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"resourceVersion": "x"}, 400, 'resourceVersion: Invalid value: "x": strconv.P'),
        ({"resourceVersion": "99"}, 504, "Timeout: Too large resource version: 99, current: 8"),
        (
            {"resourceVersion": "1", "resourceVersionMatch": "Exact"},
            400,
            "Exact is answered for the newest version only (8), got 1",
        ),
        ({"labelSelector": "a=b=c"}, 400, "found '=', expected: ',' or 'end of string'"),
        ({"labelSelector": "a=b c"}, 400, "found 'c', expected: ',' or 'end of string'"),
    ],
)
async def test_lists_refuse_what_they_cannot_answer(
    params: dict[str, str], code: int, words: str
) -> None:
    answer = await FakeApi().request("GET", PODS, params=params)
    assert words in refused(answer, code, "BadRequest" if code == 400 else "Timeout")


async def test_a_set_needs_no_blank_before_it() -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("c", colour="red"))
    listed = await get(api, CONFIGMAPS, labelSelector="colour in(red,blue)")
    assert len(listed["items"]) == 1


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        (
            lambda api: api.fails("DELTE", "x"),
            "method: wanted one of GET, POST, PUT, PATCH, DELETE",
        ),
        (lambda api: api.fails("get", "x"), "or None for all, got 'get'"),
        (lambda api: api.fails("GET", "("), "path_regex: wanted a regular expression, got '('"),
        (lambda api: api.fails("GET", "x", 200), "status: wanted an error, 400 to 599, got 200"),
        (lambda api: api.fails("GET", "x", "500"), "status: wanted an error, 400 to 599"),
        (lambda api: api.fails("GET", "x", times=0), "times: wanted 1 or more, got 0"),
        (lambda api: api.delays("GET", "x", -1), "delay_s: wanted seconds from 0, got -1"),
        (lambda api: api.delays("GET", "x", "1"), "delay_s: wanted seconds from 0, got '1'"),
        (lambda api: api.requests(path="("), "path_regex: wanted a regular expression"),
    ],
)
def test_a_wrong_word_is_refused_where_it_is_written(
    sentence: Callable[[Any], Any], words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        sentence(FakeApi())


async def test_so_many_requests_are_remembered() -> None:
    api = FakeApi(options=ServerOptions(request_limit=3))
    for number in range(5):
        await api.request("GET", PODS, params={"limit": str(number)})
    assert [record.params["limit"] for record in api.requests()] == ["2", "3", "4"]


async def created_after(api: FakeApi, name: str, after_s: float) -> str:
    """The creationTimestamp of an object."""
    await asyncio.sleep(after_s)
    made = await create(api, CONFIGMAPS, configmap(name))
    return str(made["metadata"]["creationTimestamp"])


def test_times_are_those_of_the_loop_that_runs() -> None:
    api = FakeApi()
    assert run_virtual(lambda: created_after(api, "a", 1)) == "2026-01-01T00:00:01Z"
    assert run_virtual(lambda: created_after(api, "b", 60)) == "2026-01-01T00:01:00Z"


async def test_each_namespace_has_its_default_account() -> None:
    api = FakeApi()
    await create(api, "/api/v1/namespaces", {"metadata": {"name": "team"}})
    listed = await get(api, "/api/v1/serviceaccounts")
    places = {item["metadata"]["namespace"] for item in listed["items"]}
    assert places == {"default", "kube-node-lease", "kube-public", "kube-system", "team"}
    assert set(names(listed)) == {"default"}
    await api.request("DELETE", "/api/v1/namespaces/team")
    account = await api.request("GET", "/api/v1/namespaces/team/serviceaccounts/default")
    assert account.status == 404


async def test_a_server_of_another_minor_has_the_fields_of_that_minor() -> None:
    body = pod("a")
    body["spec"]["schedulingGroup"] = {"podGroupName": "g"}  # since 1.35
    strict = {"fieldValidation": "Strict"}
    new = FakeApi(options=ServerOptions(kubernetes="1.36"))
    assert ok(await new.request("POST", PODS, body=body, params=strict))
    old = FakeApi(options=ServerOptions(kubernetes="1.34"))
    answer = await old.request("POST", PODS, body=body, params=strict)
    assert 'unknown field "spec.schedulingGroup"' in refused(answer, 400, "BadRequest")
    assert "schedulingGroup" not in ok(await old.request("POST", PODS, body=body))["spec"]
    version = ok(await old.request("GET", "/version"))
    assert (version["minor"], version["gitVersion"]) == ("34", "v1.34.0-fakekubeapi")


@pytest.mark.parametrize("minor", minors())
def test_schemas_of_all_kinds_lead_to_schemas(minor: str) -> None:
    """What `kubectl explain` reads; each minor has a type for each kind that is served."""
    for group, version in GROUP_VERSIONS:
        prefix = f"apis/{group}/{version}" if group else f"api/{version}"
        document = openapi_document(["v3", *prefix.split("/")], schema_of(minor))
        assert document is not None
        found = document["components"]["schemas"]
        marks = (schema.get("x-kubernetes-group-version-kind", ()) for schema in found.values())
        kinds = {kind["kind"] for those in marks for kind in those}
        here = {r.kind for r in RESOURCES if (r.group, r.version) == (group, version)}
        assert kinds == here
        for target in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(found)):
            assert target in found
    v2 = openapi_v2(schema_of(minor))
    assert "#/components" not in json.dumps(v2)
    for target in re.findall(r'"#/definitions/([^"]+)"', json.dumps(v2)):
        assert target in v2["definitions"]
    core = openapi_document(["v3", "api", "v1"], schema_of(minor)) or {}
    assert v2["paths"].keys() > core["paths"].keys()
    ports = v2["definitions"]["io.k8s.api.core.v1.Container"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"] == {"$ref": "#/definitions/io.k8s.api.core.v1.ContainerPort"}
    about = core["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert about["properties"]["kind"]["type"] == "string"
    assert about["properties"]["spec"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}
    ]
