"""The annotation of `kubectl apply`, where the server applies."""

import json
from typing import Any

import pytest
from fakekubeapi_helpers import CONFIGMAPS, ok

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.apply.last_applied import LAST_APPLIED, with_last_applied

APPLY = "application/apply-patch+yaml"


def obj(**annotations: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "c"}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "data": {"b": "<&>", "a": "ä"}}


@pytest.mark.parametrize(
    ("live", "manager"),
    [
        (obj(), "kubectl"),
        (obj(**{LAST_APPLIED: ""}), "kubectl"),
        (obj(**{LAST_APPLIED: "x"}), "me"),
    ],
)
def test_only_kubectl_s_and_only_where_it_is_there(live: dict[str, Any], manager: str) -> None:
    assert with_last_applied(live, obj(), manager) is live


def test_it_is_what_was_sent_without_itself() -> None:
    live = obj(**{LAST_APPLIED: "old", "other": "1"})
    found = with_last_applied(live, obj(**{LAST_APPLIED: "mine", "note": "2"}), "kubectl")
    assert found["metadata"]["annotations"]["other"] == "1"
    text = found["metadata"]["annotations"][LAST_APPLIED]
    wanted = (
        '{"data":{"a":"ä","b":"\\u003c\\u0026\\u003e"},'
        '"metadata":{"annotations":{"note":"2"},"name":"c"}}\n'
    )
    assert text == wanted
    assert live["metadata"]["annotations"][LAST_APPLIED] == "old"


async def test_an_apply_of_kubectl_brings_it_up_to_date() -> None:
    api = FakeApi(options=ServerOptions(field_managers=True))
    made = {"metadata": {"name": "c", "annotations": {LAST_APPLIED: "old"}}, "data": {"a": "1"}}
    ok(await api.request("POST", CONFIGMAPS, body=made))
    applied: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    applied["metadata"] = {"name": "c", "namespace": "default"}
    for manager, wanted in (("me", "old"), ("kubectl", applied)):
        answer = await api.request(
            "PATCH",
            f"{CONFIGMAPS}/c",
            params={"fieldManager": manager},
            body=applied,
            content_type=APPLY,
        )
        text = ok(answer)["metadata"]["annotations"][LAST_APPLIED]
        assert (text if manager == "me" else json.loads(text)) == wanted
