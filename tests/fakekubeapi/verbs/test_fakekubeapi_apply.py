"""Server-side apply in virtual time, and without `managedFields` on everything."""

from __future__ import annotations

import asyncio

import pytest
from fakekubeapi_helpers import CONFIGMAPS, configmap, create, get, ok

from fakekubeapi import FakeApi, Response, ServerOptions

pytestmark = pytest.mark.virtual_time
APPLY = "application/apply-patch+yaml"
BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}


async def apply(api: FakeApi, **params: str) -> Response:
    asked = {"fieldManager": "one", **params}
    path = f"{CONFIGMAPS}/c"
    return await api.request("PATCH", path, params=asked, body=BODY, content_type=APPLY)


async def test_to_say_the_same_later_changes_nothing_not_even_the_time() -> None:
    api = FakeApi()
    made = ok(await apply(api))
    await asyncio.sleep(60)
    assert ok(await apply(api)) == made
    assert await get(api, f"{CONFIGMAPS}/c") == made


async def test_objects_have_no_managers_until_they_are_applied() -> None:
    api = FakeApi()
    made = await create(api, CONFIGMAPS, configmap("c"))
    assert "managedFields" not in made["metadata"]
    found = ok(await apply(api))
    managers = [entry["manager"] for entry in found["metadata"]["managedFields"]]
    assert managers == ["one", "before-first-apply"]
    agent = "changer/1"
    body = {"data": {"k": "w"}}
    kind = "application/merge-patch+json"
    found = ok(
        await api.request(
            "PATCH", f"{CONFIGMAPS}/c", body=body, content_type=kind, user_agent=agent
        )
    )
    owners = {e["manager"]: e["fieldsV1"] for e in found["metadata"]["managedFields"]}
    assert owners["changer"] == {"f:data": {"f:k": {}}}
    assert "one" not in owners


async def test_an_api_without_a_user_agent_writes_as_unknown() -> None:
    api = FakeApi(options=ServerOptions(field_managers=True))
    made = await create(api, CONFIGMAPS, configmap("c"))
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["unknown"]
