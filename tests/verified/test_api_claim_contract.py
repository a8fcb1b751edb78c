"""Claims of persistent volumes: what the fake API server says of their changes and of their status
as kube-apiserver does; on a real one, too, where REFKUBELET_APISERVER names its URL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_sides import MERGE, URL, ApiSide, api_side

STRATEGIC = "application/strategic-merge-patch+json"
KEPT = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "2500Mi"}},
    "volumeName": "pv",
}
BOUND = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
STATES = (
    '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", '
    '"NodeResizeInfeasible", "NodeResizePending"'
)
STATUSES = "status.allocatedResourceStatuses"
ALLOCATED = "status.allocatedResources"


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[ApiSide]:
    if request.param == "real" and not URL:
        pytest.skip("REFKUBELET_APISERVER names no server")
    async with api_side(request.param) as side:
        yield side
        await side.ask("PATCH", claim(side), {"metadata": {"finalizers": None}}, kind=MERGE)


def claim(api: ApiSide, subresource: str = "") -> str:
    return f"/api/v1/namespaces/{api.namespace}/persistentvolumeclaims/c{subresource}"


async def made(api: ApiSide, **status: Any) -> None:
    """A claim, bound if it has a status."""
    body = {"metadata": {"name": "c"}, "spec": SPEC}
    await api.done("POST", claim(api).rpartition("/")[0], body)
    if status:
        await api.done("PATCH", claim(api, "/status"), {"status": status}, kind=MERGE)


async def refusal(api: ApiSide, subresource: str = "", **change: Any) -> list[tuple[str, str]]:
    """Field and message of all that is wrong with a change."""
    status, found = await api.ask("PATCH", claim(api, subresource), change, kind=MERGE)
    assert (status, found["reason"]) == (422, "Invalid"), found
    return [(cause["field"], cause["message"]) for cause in found["details"]["causes"]]


def wish(amount: str) -> dict[str, Any]:
    return {"resources": {"requests": {"storage": amount}}}


async def test_an_unbound_claim_stays_as_it_is(api: ApiSide) -> None:
    await made(api)
    ((field, message),) = await refusal(api, spec=wish("3Gi"))
    assert field == "spec"
    assert message.startswith(f"Forbidden: {KEPT} for bound claims\n@@ -6,7 +6,7 @@\n")
    assert '-   "storage": "2500Mi"\n+   "storage": "3Gi"\n' in message


async def test_a_bound_claim_wants_less_than_before_but_not_less_than_it_has(api: ApiSide) -> None:
    await made(api, **BOUND)
    changed = await api.done("PATCH", claim(api), {"spec": wish("2Gi")}, kind=MERGE)
    assert changed["spec"]["resources"]["requests"] == {"storage": "2Gi"}
    text = "Forbidden: field can not be less than status.capacity"
    for amount in ("1Gi", "1Mi"):
        wrong = [("spec.resources.requests.storage", text)]
        assert await refusal(api, spec=wish(amount)) == wrong
    limits = {"resources": {"limits": {"storage": "9Gi"}}}
    for change in ({"volumeName": "x"}, limits):
        ((field, message),) = await refusal(api, spec=change)
        assert (field, KEPT in message) == ("spec", True)


@pytest.mark.parametrize(
    ("status", "field", "message"),
    [
        (
            {"allocatedResourceStatuses": {"storage": "Huh"}},
            STATUSES,
            f'Unsupported value: "storage": supported values: {STATES}',
        ),
        (
            {"allocatedResourceStatuses": {"cpu": "NodeResizePending"}},
            STATUSES,
            'Unsupported value: "cpu": supported values: "storage"',
        ),
        (
            {"allocatedResources": {"cpu": "1"}},
            ALLOCATED,
            'Unsupported value: "cpu": supported values: "storage"',
        ),
        (
            {"allocatedResources": {"storage": "-1500m"}},
            f"{ALLOCATED}[storage]",
            "Invalid value: -2: must be a valid resource quantity",
        ),
        (
            {"capacity": {"storage": "-1"}},
            "status.capacity[storage]",
            "Invalid value: -1: must be a valid resource quantity",
        ),
    ],
)
async def test_what_a_status_may_not_say(
    api: ApiSide, status: dict[str, Any], field: str, message: str
) -> None:
    await made(api, **BOUND)
    assert await refusal(api, "/status", status=status) == [(field, message)]


async def test_resources_of_others_may_be_resized(api: ApiSide) -> None:
    await made(api, **BOUND)
    states = {"example.com/disk": "NodeResizePending"}
    change = {"status": {"allocatedResourceStatuses": states}}
    found = await api.done("PATCH", claim(api, "/status"), change, kind=MERGE)
    assert found["status"]["allocatedResourceStatuses"] == states


async def test_conditions_are_merged_by_their_type(api: ApiSide) -> None:
    conditions = [{"type": kind, "status": "True"} for kind in ("Resizing", "ModifyingVolume")]
    await made(api, **BOUND, conditions=conditions, allocatedResources={"storage": "2Gi"})
    change: dict[str, Any] = {
        "capacity": {"storage": "2Gi"},
        "conditions": [{"$patch": "delete", "type": "Resizing"}, {"type": "New", "status": "True"}],
        "allocatedResourceStatuses": {"storage": None},
    }
    path = claim(api, "/status")
    found = (await api.done("PATCH", path, {"status": change}, kind=STRATEGIC))["status"]
    assert {one["type"] for one in found["conditions"]} == {"ModifyingVolume", "New"}
    assert found["capacity"] == {"storage": "2Gi"}
    assert "allocatedResourceStatuses" not in found
    old = {"metadata": {"resourceVersion": "1"}, "status": change}
    status, refused = await api.ask("PATCH", path, old, kind=STRATEGIC)
    assert (status, refused["reason"]) == (409, "Conflict")
