"""Tables as kubectl prints them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from fakekubeapi_helpers import PODS, pod

from fakekubeapi import FakeApi
from fakekubeapi.http import serve
from fakekubeapi.requests.accept import wanted
from fakekubeapi.resources import RESOURCES, find_resource
from fakekubeapi.resources.printers import to_table
from simclock import format_rfc3339

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MADE = datetime(2026, 1, 1, tzinfo=UTC)


def cells(plural: str, item: dict[str, Any], age_s: int = 90) -> list[Any]:
    resource = find_resource("", "v1", plural)
    assert resource is not None
    item.setdefault("metadata", {}).setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    item["metadata"].setdefault("name", "x")
    table = to_table(resource, item, MADE + timedelta(seconds=age_s))
    assert len(table["columnDefinitions"]) == len(table["rows"][0]["cells"])
    return list(table["rows"][0]["cells"])


@pytest.mark.parametrize(
    ("age_s", "shown"),
    [(5, "5s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172800, "2d")],
)
def test_ages(age_s: int, shown: str) -> None:
    assert cells("configmaps", {"data": {"k": "v"}}, age_s) == ["x", 1, shown]


def status_of(container: dict[str, Any]) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"name": "m", **container}]}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (status_of({"ready": True, "state": {"running": {}}}), ["1/1", "Running", "0"]),
        (
            status_of({"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}),
            ["0/1", "CrashLoopBackOff", "3"],
        ),
        (status_of({"state": {"terminated": {"reason": "Error"}}}), ["0/1", "Error", "0"]),
        ({"phase": "Failed", "reason": "Evicted"}, ["0/1", "Evicted", "0"]),
    ],
)
def test_pod_rows(status: dict[str, Any], shown: list[str]) -> None:
    assert cells("pods", pod() | {"status": status})[1:4] == shown


def test_a_deleted_pod_is_terminating() -> None:
    body = pod()
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z"
    assert cells("pods", body)[2] == "Terminating"


def test_node_and_event_rows() -> None:
    node = {
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.0"},
        },
        "spec": {"unschedulable": True},
    }
    assert cells("nodes", node)[1] == "Ready,SchedulingDisabled"
    event = {
        "involvedObject": {"kind": "Pod", "name": "a"},
        "type": "Normal",
        "reason": "Pulled",
        "message": "m",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "kubelet", "host": "n"},
    }
    shown = ["90s", "Normal", "Pulled", "pod/a", "", "kubelet, n", "m", "90s", 1, "x"]
    assert cells("events", event) == shown


@pytest.mark.parametrize(
    ("kind", "item", "shown"),
    [
        ("runtimeclasses.node", {"handler": "runc"}, ["x", "runc", "90s"]),
        ("priorityclasses.scheduling", {"value": 7}, ["x", 7, False, "90s", ""]),
        ("clustertrustbundles.certificates", {"spec": {}}, ["x", "<none>"]),
        ("resourceclaims.resource", {"spec": {}}, ["x", "pending", "90s"]),
        (
            "resourceclaims.resource",
            {"status": {"allocation": {"nodes": 1}, "reservedFor": [{"name": "p"}]}},
            ["x", "allocated,reserved", "90s"],
        ),
        (
            "certificatesigningrequests.certificates",
            {
                "spec": {"signerName": "s", "username": "u", "expirationSeconds": 7200},
                "status": {"conditions": [{"type": "Approved"}], "certificate": "YQ=="},
            },
            ["x", "90s", "s", "u", "2h", "Approved,Issued"],
        ),
    ],
)
def test_rows_of_small_kinds(kind: str, item: dict[str, Any], shown: list[Any]) -> None:
    (resource,) = (r for r in RESOURCES if r.qualified == f"{kind}.k8s.io")
    item["metadata"] = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert to_table(resource, item, MADE + timedelta(seconds=90))["rows"][0]["cells"] == shown


@pytest.mark.parametrize(
    ("accept", "tables"),
    [
        (TABLE, True),
        ("application/json", False),
        ("", False),
        ("application/json,application/json;as=Table;v=v1;g=meta.k8s.io", False),
        (f"application/json;as=Table;v=v9;g=meta.k8s.io,{TABLE}", True),
        ("application/vnd.kubernetes.protobuf, */*", False),
    ],
)
def test_who_wants_a_table(accept: str, tables: bool) -> None:
    assert (wanted(accept).form == "Table") is tables


async def test_kubectl_gets_tables_in_lists_objects_and_watches() -> None:
    headers = {"Accept": TABLE}
    async with await serve(FakeApi()) as server:
        async with aiohttp.ClientSession(server.url, headers=headers) as http:
            async with http.post(PODS, json=pod()) as answer:
                assert (await answer.json())["kind"] == "Table"
            for path in (PODS, f"{PODS}/a"):
                async with http.get(path) as answer:
                    found = await answer.json()
                    assert (found["kind"], len(found["rows"])) == ("Table", 1)
            async with http.post(PODS, json=pod("b")) as answer:
                assert answer.status == 201
            asked = {"watch": "true", "includeObject": "Object"}
            async with http.get(PODS, params=asked) as stream:
                first, second = [json.loads(await stream.content.readline()) for _ in range(2)]
                assert first["object"]["kind"] == second["object"]["kind"] == "Table"
                assert first["object"]["columnDefinitions"][0]["name"] == "Name"
                assert second["object"]["columnDefinitions"] is None
                assert second["object"]["rows"][0]["object"]["kind"] == "Pod"
            async with http.get(f"{PODS}/none") as answer:
                assert (await answer.json())["reason"] == "NotFound"
            async with http.get("/api/v1") as answer:
                assert (await answer.json())["kind"] == "APIResourceList"


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
def test_rows_have_what_was_asked_for_of_their_objects(include: str) -> None:
    resource = find_resource("", "v1", "events")
    assert resource is not None
    event = {"metadata": {"name": "e", "creationTimestamp": format_rfc3339(0)}, "reason": "Pulled"}
    listed = {"kind": "EventList", "metadata": {"resourceVersion": "7"}, "items": [event]}
    (row,) = to_table(resource, listed, MADE, include)["rows"]
    wanted = {
        "None": None,
        "Metadata": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        | {"metadata": event["metadata"]},
        "Object": {"kind": "Event", "apiVersion": "v1", **event},
    }
    assert row.get("object") == wanted[include]
