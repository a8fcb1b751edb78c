"""Deletion: grace periods, preconditions, finalizers, collections, namespaces."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from fakekubeapi_helpers import POD_A, PODS, create, get, ok, patch, pod, refused

from fakekubeapi import FakeApi
from simclock import run_virtual

pytestmark = pytest.mark.virtual_time


async def history(api: FakeApi) -> list[tuple[Any, ...]]:
    """What a watcher of pods saw: type, generation, deletionTimestamp (time of day), grace."""
    seen = []
    async for event in api.watch("/api/v1/pods", params={"resourceVersion": "4", **ONE_SECOND}):
        meta = event["object"]["metadata"]
        end = meta.get("deletionTimestamp", "T-").split("T")[1]
        seen.append(
            (event["type"], meta["generation"], end, meta.get("deletionGracePeriodSeconds"))
        )
    return seen


ONE_SECOND = {"timeoutSeconds": "1"}


async def test_a_bound_pod_is_marked_and_waits_for_its_kubelet_STAT_030() -> None:
    api = FakeApi()
    await create(api, PODS, pod(terminationGracePeriodSeconds=20))
    answer = ok(await api.request("DELETE", POD_A))
    assert answer["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:20Z"
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 20
    assert await get(api, POD_A) == answer
    again = ok(await api.request("DELETE", POD_A))
    assert again == answer
    uid = {"preconditions": {"uid": answer["metadata"]["uid"]}, "gracePeriodSeconds": 0}
    ok(await api.request("DELETE", POD_A, body=uid))
    refused(await api.request("GET", POD_A), 404, "NotFound")
    assert await history(api) == [
        ("ADDED", 1, "-", None),
        ("MODIFIED", 2, "00:00:20Z", 20),
        ("MODIFIED", 2, "00:00:00Z", 0),
        ("DELETED", 2, "00:00:00Z", 0),
    ]


async def deletes_of_s21() -> list[tuple[Any, ...]]:
    """The history of a pod that is deleted when stub2 and stub1 were in golden s21."""
    api = FakeApi()
    await create(api, PODS, pod(terminationGracePeriodSeconds=20))
    for at_s, options in (
        (19.78, {}),
        (21.0, {"gracePeriodSeconds": 25}),  # longer: nothing happens
        (22.862, {"gracePeriodSeconds": 1}),
        (40.784, {"gracePeriodSeconds": 0}),
    ):
        await asyncio.sleep(at_s - asyncio.get_running_loop().time())
        ok(await api.request("DELETE", POD_A, body=options))
    return await history(api)


def test_a_second_delete_can_only_shorten_as_recorded_in_s21() -> None:
    start = datetime(2026, 11, 21, 10, 37, 46, 623_000, tzinfo=UTC)  # t0 of the recording
    assert run_virtual(deletes_of_s21, start=start) == [
        ("ADDED", 1, "-", None),
        ("MODIFIED", 2, "10:38:26Z", 20),
        ("MODIFIED", 2, "10:38:09Z", 1),
        ("MODIFIED", 2, "10:38:27Z", 0),
        ("DELETED", 2, "10:38:27Z", 0),
    ]


AT_ONCE: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "not bound": (pod(node=None), {}, None),
    "grace 0": (pod(), {"gracePeriodSeconds": 0}, None),
    "own grace 0": (pod(terminationGracePeriodSeconds=0), {}, None),
    "succeeded": (pod(), {}, "Succeeded"),
    "failed": (pod(), {"gracePeriodSeconds": 30}, "Failed"),
}


@pytest.mark.parametrize("name", AT_ONCE)
async def test_pods_that_go_at_once(name: str) -> None:
    body, options, phase = AT_ONCE[name]

    api = FakeApi()
    await create(api, PODS, body)
    if phase:
        ok(await patch(api, f"{POD_A}/status", {"status": {"phase": phase}}))
    answer = ok(await api.request("DELETE", POD_A, body=options))
    assert answer["kind"] == "Pod"
    refused(await api.request("GET", POD_A), 404, "NotFound")
    kinds = [(kind, grace) for kind, _, _, grace in await history(api)]
    assert kinds[-2:] == [("MODIFIED", 0), ("DELETED", 0)]  # golden s26


async def test_a_negative_grace_is_one_second() -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    answer = ok(await api.request("DELETE", POD_A, params={"gracePeriodSeconds": "-5"}))
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 1


async def test_preconditions_guard_a_delete_MIRR_025() -> None:
    api = FakeApi()
    made = await create(api, PODS, pod())
    for wanted in ({"uid": "other"}, {"resourceVersion": "1"}):
        answer = await api.request("DELETE", POD_A, body={"preconditions": wanted})
        assert "does not match the" in refused(answer, 409, "Conflict")
    assert await get(api, POD_A) == made
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    ok(await api.request("DELETE", POD_A, body={"preconditions": version}))
    missing = await api.request("DELETE", f"{PODS}/x")
    assert refused(missing, 404, "NotFound") == 'pods "x" not found'  # MIRR-026


async def test_finalizers_hold_an_object_until_they_are_gone() -> None:
    api = FakeApi()
    body = pod()
    body["metadata"]["finalizers"] = ["example.com/wait"]
    await create(api, PODS, body)
    marked = ok(await api.request("DELETE", POD_A, body={"gracePeriodSeconds": 0}))
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    ok(await patch(api, POD_A, {"metadata": {"finalizers": None}}, MERGE))
    refused(await api.request("GET", POD_A), 404, "NotFound")


MERGE = "application/merge-patch+json"


async def test_a_pod_deleted_and_made_again_is_another_pod_STAT_024() -> None:
    api = FakeApi()
    first = await create(api, PODS, pod())
    await api.request("DELETE", POD_A, body={"gracePeriodSeconds": 0})
    second = await create(api, PODS, pod())
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    late = {"metadata": {"uid": first["metadata"]["uid"]}, "status": {"phase": "Failed"}}
    answer = await patch(api, f"{POD_A}/status", late)
    assert "metadata.uid: Invalid value" in refused(answer, 422, "Invalid")


async def test_delete_of_a_collection_takes_the_selected_ones() -> None:
    api = FakeApi()
    for name in ("a", "b"):
        await create(api, PODS, pod(name, node=None))
    ok(await api.request("DELETE", PODS, params={"fieldSelector": "metadata.name=a"}))
    listed = await get(api, PODS)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["b"]


async def test_eviction_deletes() -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    answer = await api.request("POST", f"{POD_A}/eviction", body={"metadata": {"name": "a"}})
    assert answer.status == 201
    assert "deletionTimestamp" in (await get(api, POD_A))["metadata"]


async def test_a_deleted_namespace_takes_its_objects_along() -> None:
    api = FakeApi()
    await create(api, "/api/v1/namespaces", {"metadata": {"name": "x"}})
    await create(api, "/api/v1/namespaces/x/pods", pod())
    answer = ok(await api.request("DELETE", "/api/v1/namespaces/x"))
    assert answer["status"] == "Success"
    assert (await get(api, "/api/v1/pods"))["items"] == []
