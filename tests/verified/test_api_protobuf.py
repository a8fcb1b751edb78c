"""Protobuf, as kube-apiserver speaks it, of the fake API server, and on a real one, too, where
REFKUBELET_APISERVER names its URL: what is written in one format is read in the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from api_sides import URL, ApiSide, api_side
from protobuf_objects import decode_events, same

from fakekubeapi.bodies import JSON, PROTOBUF, encode
from fakekubeapi.protobuf.envelope import (
    MAGIC,
    decode_object,
    encode_event,
    encode_object,
)
from fakekubeapi.protobuf.wire import text

TIME = "2026-01-02T03:04:05Z"
MICRO_TIME = "2026-01-02T03:04:05.000006Z"
POD_SPEC: dict[str, Any] = {
    "schedulerName": "nobody",
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 0,
    "automountServiceAccountToken": False,
    "securityContext": {"runAsUser": 0, "supplementalGroups": [1, 2], "sysctls": []},
    "nodeSelector": {"b": "1", "a": "2"},
    "tolerations": [
        {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    ],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["x"]}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    },
    "initContainers": [{"name": "i", "image": "busybox:1", "restartPolicy": "Always"}],
    "containers": [
        {
            "name": "a",
            "image": "busybox:1",
            "args": ["-c", "täst"],
            "ports": [{"name": "http", "containerPort": 80}],
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
            "env": [
                {"name": "A", "value": ""},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            ],
            "envFrom": [{"secretRef": {"name": "s", "optional": True}}],
            "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 7},
            "readinessProbe": {"tcpSocket": {"port": 80}},
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
            "volumeMounts": [{"name": "e", "mountPath": "/e", "readOnly": True}],
        }
    ],
    "volumes": [
        {"name": "e", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {
            "name": "c",
            "configMap": {"name": "c", "items": [{"key": "k", "path": "p", "mode": 256}]},
        },
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "h", "hostPath": {"path": "/x", "type": ""}},
    ],
}
OBJECTS: dict[str, dict[str, Any]] = {
    "api/v1/configmaps": {
        "kind": "ConfigMap",
        "data": {"b": "", "a": "2"},
        "binaryData": {"c": "/wA="},
        "immutable": False,
    },
    "api/v1/secrets": {"kind": "Secret", "data": {"x": "eQ==", "empty": ""}, "type": "a/b"},
    "api/v1/pods": {"kind": "Pod", "spec": POD_SPEC},
    "api/v1/serviceaccounts": {"kind": "ServiceAccount", "secrets": [{"name": "s"}]},
    "api/v1/persistentvolumeclaims": {
        "kind": "PersistentVolumeClaim",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
    "api/v1/events": {
        "kind": "Event",
        "involvedObject": {"kind": "Pod", "fieldPath": "spec.containers{a}"},
        "reason": "Tested",
        "message": "a test",
        "type": "Normal",
        "count": 2,
        "firstTimestamp": TIME,
        "eventTime": MICRO_TIME,
        "action": "Testing",
        "reportingComponent": "test.io/test",
        "reportingInstance": "one",
    },
    "apis/coordination.k8s.io/v1/leases": {
        "kind": "Lease",
        "spec": {"holderIdentity": "x", "leaseDurationSeconds": 40, "renewTime": MICRO_TIME},
    },
    "apis/resource.k8s.io/v1/resourceclaims": {
        "kind": "ResourceClaim",
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 1}}],
                "config": [
                    {"opaque": {"driver": "d.io", "parameters": {"kind": "X", "n": [1, None]}}}
                ],
            }
        },
    },
}
CLUSTER_OBJECTS: dict[str, dict[str, Any]] = {
    "api/v1/nodes": {
        "kind": "Node",
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {"capacity": {"cpu": "2", "memory": "1Gi"}},
    },
    "api/v1/persistentvolumes": {
        "kind": "PersistentVolume",
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    },
    "apis/node.k8s.io/v1/runtimeclasses": {
        "kind": "RuntimeClass",
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "10m"}},
    },
    "apis/scheduling.k8s.io/v1/priorityclasses": {
        "kind": "PriorityClass",
        "value": -5,
        "preemptionPolicy": "Never",
    },
    "apis/storage.k8s.io/v1/csinodes": {
        "kind": "CSINode",
        "spec": {
            "drivers": [
                {
                    "name": "d",
                    "nodeID": "n",
                    "topologyKeys": ["k"],
                    "allocatable": {"count": 0},
                }
            ]
        },
    },
    "apis/storage.k8s.io/v1/csidrivers": {
        "kind": "CSIDriver",
        "spec": {
            "attachRequired": False,
            "volumeLifecycleModes": ["Ephemeral"],
            "tokenRequests": [{"audience": "", "expirationSeconds": 600}],
            "serviceAccountTokenInSecrets": False,
            "nodeAllocatableUpdatePeriodSeconds": 10,
        },
    },
    "apis/storage.k8s.io/v1/volumeattachments": {
        "kind": "VolumeAttachment",
        "spec": {
            "attacher": "d",
            "nodeName": "n",
            "source": {
                "inlineVolumeSpec": {
                    "accessModes": ["ReadWriteOnce"],
                    "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"a": ""}},
                }
            },
        },
    },
}
VOLATILE = ("name", "uid", "resourceVersion", "creationTimestamp", "managedFields")


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[ApiSide]:
    if request.param == "real" and not URL:
        pytest.skip("REFKUBELET_APISERVER names no server")
    async with api_side(request.param) as side:
        yield side


async def both(api: ApiSide, path: str) -> tuple[dict[str, Any], bytes]:
    """What is at a path, as JSON and as protobuf."""
    status, kind, data = await api.raw("GET", path, accept=PROTOBUF)
    assert (status, kind) == (200, PROTOBUF)
    return await api.done("GET", path), data


async def written(api: ApiSide, path: str, obj: dict[str, Any], kind: str) -> dict[str, Any]:
    """The JSON of an object that is written in that format."""
    body = encode_object(obj) if kind == PROTOBUF else encode(obj)
    status, _, data = await api.raw("POST", path, body, kind=kind)
    assert status == 201, data
    return await api.done("GET", f"{path}/{obj['metadata']['name']}")


def place(api: ApiSide, path: str) -> str:
    """The path of a collection in the namespace of the test."""
    group, _, plural = path.rpartition("/")
    return f"/{group}/namespaces/{api.namespace}/{plural}"


def complete(path: str, name: str, obj: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "labels": {"b": "1", "a": "2"}, "annotations": {"a": ""}}
    group_version = path.rpartition("/")[0].partition("/")[2]
    whole = {"apiVersion": group_version, **obj, "metadata": metadata}
    if obj["kind"] == "Event":
        whole["involvedObject"] = {**obj["involvedObject"], "namespace": namespace}
    return whole


def lasting(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without what it owes to its name and to the second in which it was written."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in VOLATILE}
    stays = {**obj, "metadata": metadata}
    if "lastPhaseTransitionTime" in obj.get("status", {}):  # of a PersistentVolume
        stays["status"] = {**obj["status"], "lastPhaseTransitionTime": "some time"}
    return stays


@pytest.mark.parametrize("path", OBJECTS)
async def test_a_format_does_not_matter(api: ApiSide, path: str) -> None:
    await check_both_ways(api, path, place(api, path), OBJECTS[path])


@pytest.mark.parametrize("path", CLUSTER_OBJECTS)
async def test_a_format_does_not_matter_without_a_namespace(api: ApiSide, path: str) -> None:
    try:
        await check_both_ways(api, path, f"/{path}", CLUSTER_OBJECTS[path])
    finally:
        for name in ("j", "p"):
            await api.ask("DELETE", f"/{path}/{api.namespace}-{name}")


async def check_both_ways(api: ApiSide, path: str, collection: str, obj: dict[str, Any]) -> None:
    """What is sent as JSON is read as protobuf, byte for byte as Go writes it; what is sent as
    protobuf is stored as if it had been JSON."""
    names = [f"{api.namespace}-{name}" for name in "jp"]
    sent = [complete(path, name, obj, api.namespace) for name in names]
    as_json = await written(api, collection, sent[0], JSON)
    found, data = await both(api, f"{collection}/{names[0]}")
    assert found == as_json
    assert same(decode_object(data), found)
    assert encode_object(found) == data
    as_protobuf = await written(api, collection, sent[1], PROTOBUF)
    assert same(lasting(as_protobuf), lasting(as_json))
    replaced = {**as_protobuf, "metadata": {**as_protobuf["metadata"], "labels": {"c": "3"}}}
    status, _, data = await api.raw(
        "PUT", f"{collection}/{names[1]}", encode_object(replaced), kind=PROTOBUF, accept=PROTOBUF
    )
    assert status == 200, data
    changed = decode_object(data)
    assert changed["metadata"]["labels"] == {"c": "3"}
    assert same({**changed, "metadata": {}}, {**as_protobuf, "metadata": {}})


async def test_lists_and_watches(api: ApiSide) -> None:
    await written(api, api.pods, complete("api/v1/pods", "p", OBJECTS["api/v1/pods"]), JSON)
    found, data = await both(api, api.pods)
    assert (found["kind"], len(found["items"])) == ("PodList", 1)
    listed = decode_object(data)
    assert same(listed["items"], found["items"])
    params = {"watch": "true", "timeoutSeconds": "1", "resourceVersion": "0"}
    told = [event for event in await api.events(api.pods, **params) if event["type"] != "BOOKMARK"]
    status, kind, stream = await api.raw("GET", api.pods, accept=PROTOBUF, params=params)
    assert (status, kind) == (200, f"{PROTOBUF};stream=watch")
    events, rest = decode_events(stream)
    assert rest == b""
    assert [event["type"] for event in events] == [event["type"] for event in told] == ["ADDED"]
    assert same(events, told)
    assert encode_event(told[0]) == stream


async def test_an_eviction_and_a_deletion(api: ApiSide) -> None:
    pods = [complete("api/v1/pods", name, OBJECTS["api/v1/pods"]) for name in "ab"]
    for pod in pods:
        await written(api, api.pods, pod, PROTOBUF)
    eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    for method, path, body in (
        ("POST", f"{api.pods}/a/eviction", eviction),
        ("DELETE", f"{api.pods}/b", options),
    ):
        status, _, data = await api.raw(
            method, path, encode_object(body), kind=PROTOBUF, accept=PROTOBUF
        )
        assert status < 300
        assert decode_object(data)["kind"] in ("Status", "Pod")
    assert (await api.done("GET", api.pods))["items"] == []


async def test_metadata_alone(api: ApiSide) -> None:
    await api.done("POST", api.configmaps, {"metadata": {"name": "c"}, "data": {"a": "b"}})
    accept = f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    status, _, data = await api.raw("GET", f"{api.configmaps}/c", accept=accept)
    assert status == 200
    found = decode_object(data)
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert found["metadata"]["name"] == "c"
    assert "data" not in found


KNOWN = f"{JSON}, application/yaml, {PROTOBUF}"
STREAMS = f"{JSON};stream=watch, {PROTOBUF};stream=watch"
TABLE = "as=Table;v=v1;g=meta.k8s.io"
ONLY = f"only the following media types are accepted: {KNOWN}"
ONLY_STREAMS = f"only the following media types are accepted: {STREAMS}"
NONE = f"406: Not Acceptable\n\nAvailable representations: {KNOWN}, {STREAMS}"


@pytest.mark.parametrize(
    ("accept", "params", "answered"),
    [
        (f"{PROTOBUF},{JSON}", {}, PROTOBUF),
        (f"{JSON};q=0.5,{PROTOBUF};q=0.9", {}, PROTOBUF),
        (f"{JSON},{PROTOBUF}", {}, JSON),
        (f"{JSON};q=0", {}, JSON),
        ("*/*", {}, JSON),
        ("application/yaml", {}, "application/yaml"),
        ("*/*;q=1,application/yaml;q=0.5", {}, "application/yaml"),
        ("application/yaml;q=0.5,*/*;q=1", {}, JSON),
        (f"{PROTOBUF};{TABLE},{JSON};{TABLE}", {}, JSON),
        (f"{PROTOBUF};stream=watch", {}, PROTOBUF),
        (f"{PROTOBUF};{TABLE}", {}, ONLY),
        (f"{JSON};stream=x", {}, ONLY),
        (f"{JSON};as=Table", {}, ONLY),
        ("text/plain", {}, NONE),
        ("application/*", {}, NONE),
        (f"application/yaml,{JSON}", {"watch": "1"}, ONLY_STREAMS),
    ],
)
async def test_the_header_accept(
    api: ApiSide, accept: str, params: dict[str, str], answered: str
) -> None:
    status, kind, data = await api.raw("GET", api.configmaps, accept=accept, params=params)
    if status == 200:
        assert kind == answered
        return
    assert status == 406
    told = decode_object(data) if kind == PROTOBUF else yaml.safe_load(data)
    assert (told["reason"], told["message"]) == ("NotAcceptable", answered)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + text(1, text(1, api_version) + text(2, kind)) + text(2, raw)


UNREADABLE = "the object provided is unrecognized (must be of type ConfigMap): "
NO_MAGIC = (
    "provided data does not appear to be a protobuf message, expected prefix "
    "[107 56 115 0] (616263)"
)
UNKNOWN_TYPE = "the body of the request was in an unknown format - accepted media types include: "
UNHANDLED = 'in version "v1" cannot be handled as a ConfigMap: '
NO_NAME = "metadata.name: Required value: name or generateName is required"


@pytest.mark.parametrize(
    ("kind", "body", "code", "words"),
    [
        ("application/cbor", b"x", 415, UNKNOWN_TYPE + KNOWN),
        (PROTOBUF, b"abc", 400, UNREADABLE + NO_MAGIC),
        (PROTOBUF, MAGIC, 400, f"{UNREADABLE}empty body (6b387300)"),
        (PROTOBUF, MAGIC + b"\x0a\x05abc", 400, f"{UNREADABLE}unexpected EOF (6b3873000a05616263)"),
        (
            PROTOBUF,
            envelope("v1", "Nope", b""),
            400,
            f'Nope {UNHANDLED}no kind "Nope" is registered for version "v1"',
        ),
        (
            PROTOBUF,
            envelope("v1", "ConfigMap", b"\x0a\x7f"),
            400,
            f"ConfigMap {UNHANDLED}unexpected EOF",
        ),
        (PROTOBUF, MAGIC + text(2, b"\x0a\0"), 422, f'ConfigMap "" is invalid: {NO_NAME}'),
    ],
    ids=["cbor", "no magic", "empty", "cut", "unknown", "cut inside", "no kind"],
)
async def test_bodies_that_are_refused(
    api: ApiSide, kind: str, body: bytes, code: int, words: str
) -> None:
    status, _, data = await api.raw("POST", api.configmaps, body, kind=kind, accept=PROTOBUF)
    told = decode_object(data)
    assert (status, told["code"]) == (code, code)
    assert told["message"].startswith(words)


async def test_unknown_fields_are_left_out_even_where_json_would_be_refused(api: ApiSide) -> None:
    raw = text(1, text(1, "u")) + text(999, "new")
    body = envelope("v1", "ConfigMap", raw)
    params = {"fieldValidation": "Strict"}
    status, _, data = await api.raw("POST", api.configmaps, body, kind=PROTOBUF, params=params)
    assert status == 201, data


async def test_reviews_and_tokens(api: ApiSide) -> None:
    accounts = f"/api/v1/namespaces/{api.namespace}/serviceaccounts"
    await api.done("POST", accounts, {"metadata": {"name": "s"}})
    kind = "authentication.k8s.io/v1"
    request = {"kind": "TokenRequest", "apiVersion": kind, "spec": {"expirationSeconds": 3600}}
    status, _, data = await api.raw(
        "POST", f"{accounts}/s/token", encode_object(request), kind=PROTOBUF, accept=PROTOBUF
    )
    assert status == 201
    made = decode_object(data)
    assert (made["spec"]["expirationSeconds"], made["status"]["token"].count(".")) == (3600, 2)
    review = {"kind": "TokenReview", "apiVersion": kind, "spec": {"token": made["status"]["token"]}}
    status, _, data = await api.raw(
        "POST", f"/apis/{kind}/tokenreviews", encode_object(review), kind=PROTOBUF, accept=PROTOBUF
    )
    assert status == 201
    told = decode_object(data)["status"]
    assert told["authenticated"] is True
    assert told["user"]["username"] == f"system:serviceaccount:{api.namespace}:s"
