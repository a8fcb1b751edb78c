"""Persistent volumes: what a real API server 1.36 answers to the same requests."""

from typing import Any

import pytest
from fakekubeapi_helpers import MERGE_PATCH, create, ok, patch, refused

from fakekubeapi import FakeApi

pytestmark = pytest.mark.virtual_time
VOLUMES = "/api/v1/persistentvolumes"
SPEC: dict[str, Any] = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/x"},
}


def volume(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {**SPEC, **spec}}


async def test_what_the_server_adds() -> None:
    api = FakeApi()
    made = await create(api, VOLUMES, volume())
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    assert made["spec"] == {
        **SPEC,
        "hostPath": {"path": "/x", "type": ""},
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    }
    changed_at = made["metadata"]["creationTimestamp"]
    assert made["status"] == {"phase": "Pending", "lastPhaseTransitionTime": changed_at}
    deleted = ok(await api.request("DELETE", f"{VOLUMES}/a"))
    assert deleted["metadata"]["deletionTimestamp"]


async def test_a_new_phase_has_a_time() -> None:
    api = FakeApi()
    await create(api, VOLUMES, volume())
    body = {"status": {"phase": "Bound", "lastPhaseTransitionTime": "2020-01-01T00:00:00Z"}}
    bound = ok(
        await api.request("PATCH", f"{VOLUMES}/a/status", body=body, content_type=MERGE_PATCH)
    )
    assert bound["status"] == body["status"]
    body = {"status": {"phase": "Released"}}
    free = ok(
        await api.request("PATCH", f"{VOLUMES}/a/status", body=body, content_type=MERGE_PATCH)
    )
    assert free["status"]["lastPhaseTransitionTime"] > "2020-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"hostPath": None, "local": {"path": "/x"}},
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
        ),
        ({"hostPath": None}, ["spec: Required value: must specify a volume type"]),
        (
            {"capacity": None},
            [
                "spec.capacity: Required value",
                'spec.capacity: Unsupported value: null: supported values: "storage"',
            ],
        ),
        (
            {"accessModes": [], "hostPath": {"path": ""}},
            ["spec.accessModes: Required value", "spec.hostPath.path: Required value"],
        ),
    ],
)
async def test_what_is_refused(spec: dict[str, Any], wanted: list[str]) -> None:
    answer = await FakeApi().request("POST", VOLUMES, body=volume(**spec))
    refused(answer, 422, "Invalid")
    for text in wanted:
        assert text in answer.body["message"]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"hostPath": {"path": "/y"}},
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable "
            "after creation",
        ),
        ({"volumeMode": "Block"}, 'volumeMode: Invalid value: "Block": field is immutable'),
    ],
)
async def test_what_does_not_change(spec: dict[str, Any], wanted: str) -> None:
    api = FakeApi()
    await create(api, VOLUMES, volume())
    answer = await patch(api, f"{VOLUMES}/a", {"spec": spec}, MERGE_PATCH)
    refused(answer, 422, "Invalid")
    assert wanted in answer.body["message"]
    ok(await patch(api, f"{VOLUMES}/a", {"spec": {"capacity": {"storage": "2Gi"}}}))
