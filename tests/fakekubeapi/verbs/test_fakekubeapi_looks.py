"""How often a kube-apiserver looks at what an update sends, and so tells what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from fakekubeapi_helpers import CONFIGMAPS, PODS, pod

from fakekubeapi import FakeApi

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BAD = {"metadata": {"labels": {"a": "-bad-"}, "finalizers": ["x"]}}
MERGE = "application/merge-patch+json"


async def causes(api: FakeApi, path: str, body: Any) -> list[str]:
    """The fields of the causes of a refused merge patch, without `metadata.`."""
    answer = await api.request("PATCH", path, body=body, content_type=MERGE)
    assert answer.status == 422
    return [c["field"].removeprefix("metadata.") for c in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("path", "labels", "finalizers"),
    [
        (f"{CONFIGMAPS}/web", 4, 2),
        (f"{PODS}/web", 4, 2),
        (f"{PODS}/web/status", 3, 1),
        (f"{LEASES}/web", 3, 0),
    ],
)
async def test_each_look_tells_what_is_wrong(path: str, labels: int, finalizers: int) -> None:
    api = FakeApi()
    await api.request("POST", PODS, body=pod("web"))
    for collection in (CONFIGMAPS, LEASES):
        await api.request("POST", collection, body={"metadata": {"name": "web"}})
    seen = await causes(api, path, BAD)
    assert (seen.count("labels"), seen.count("finalizers[0]")) == (labels, finalizers)
    assert len(seen) == labels + finalizers


async def test_only_the_server_says_that_an_object_is_deleted() -> None:
    api = FakeApi()
    await api.request("POST", CONFIGMAPS, body={"metadata": {"name": "web"}})
    said = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}
    assert await causes(api, f"{CONFIGMAPS}/web", said) == ["deletionTimestamp"] * 2


async def test_what_an_update_of_a_pod_may_change_is_looked_at_again() -> None:
    api = FakeApi()
    await api.request("POST", PODS, body=pod("web"))
    name = pod("web")["spec"]["containers"][0]["name"]
    body = {"spec": {"containers": [{"name": name, "image": ""}], "activeDeadlineSeconds": -1}}
    strategic = "application/strategic-merge-patch+json"
    answer = await api.request("PATCH", f"{PODS}/web", body=body, content_type=strategic)
    seen = [c["field"] for c in answer.body["details"]["causes"]]
    assert seen.count("spec.containers[0].image") == 2
    assert seen.count("spec.activeDeadlineSeconds") == 2


async def test_the_qos_class_stays() -> None:
    api = FakeApi()
    await api.request("POST", PODS, body=pod("web"))
    said = {"status": {"qosClass": "Guaranteed"}}
    assert await causes(api, f"{PODS}/web/status", said) == ["status.qosClass"]


async def test_a_namespace_that_is_not_there_is_told_first() -> None:
    api = FakeApi()
    path = "/api/v1/namespaces/none-such/configmaps"
    answer = await api.request("POST", path, body={"metadata": {}})
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
