"""Services: what a type may not have, and what it loses when it changes."""

from typing import Any

import pytest
from fakekubeapi_helpers import MERGE_PATCH, create, ok, patch, refused

from fakekubeapi import FakeApi

pytestmark = pytest.mark.virtual_time
SERVICES = "/api/v1/namespaces/default/services"
NAME_ONLY = {"type": "ExternalName", "externalName": "example.com"}


def service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], **spec}}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({**NAME_ONLY, "clusterIP": "10.96.1.1"}, ["spec.clusterIPs"]),
        ({**NAME_ONLY, "clusterIP": "no address"}, ["spec.clusterIPs"]),
        ({**NAME_ONLY, "ipFamilyPolicy": "SingleStack"}, ["spec.ipFamilyPolicy"]),
        (
            {"type": "ExternalName", "ipFamilies": ["IPv4"]},
            ["spec.ipFamilies", "spec.externalName"],
        ),
        ({"type": "LoadBalancer", "clusterIP": "None"}, ["spec.clusterIPs[0]"]),
        ({"type": "NodePort", "clusterIP": "None"}, ["spec.clusterIPs[0]"]),
        ({"ports": [], "clusterIP": "8.8.8.8"}, ["spec.clusterIPs"]),
        ({"ports": [], "ipFamilies": ["IPv6"]}, ["spec.ipFamilies[0]"]),
        ({"ports": [], "sessionAffinity": "x"}, ["spec.ports", "spec.sessionAffinity"]),
    ],
)
async def test_what_a_type_may_not_have(spec: dict[str, Any], fields: list[str]) -> None:
    answer = await FakeApi().request("POST", SERVICES, body=service(**spec))
    refused(answer, 422, "Invalid")
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == fields


@pytest.mark.parametrize("spec", [NAME_ONLY, {"clusterIP": "None"}])
async def test_what_it_may_have(spec: dict[str, Any]) -> None:
    made = await create(FakeApi(), SERVICES, service(**spec))
    assert made["spec"].get("clusterIP") == spec.get("clusterIP")


async def test_a_service_that_becomes_a_name_loses_its_addresses() -> None:
    api = FakeApi()
    made = await create(api, SERVICES, service())
    assert made["spec"]["clusterIP"].startswith("10.96.")
    changed = ok(await patch(api, f"{SERVICES}/web", {"spec": NAME_ONLY}, MERGE_PATCH))
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        assert field not in changed["spec"]


async def test_an_update_to_what_is_no_address_is_told_alone() -> None:
    api = FakeApi()
    await create(api, SERVICES, service())
    wrong = {"spec": {"clusterIP": "nowhere", "sessionAffinity": "Wrong"}}
    answer = await patch(api, f"{SERVICES}/web", wrong, MERGE_PATCH)
    refused(answer, 422, "Invalid")
    causes = answer.body["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["spec.clusterIPs[0]"]
    assert "must be a valid IP address" in causes[0]["message"]
