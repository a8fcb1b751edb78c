"""Amounts are what a kube-apiserver stored of the same texts, or refused in the same words."""

from __future__ import annotations

import json

from record_quantities import KEPT, PODS, pod_with

from fakekubeapi import FakeApi
from kubeobjects.quantity import QuantityError, from_json

ANSWERS: dict[str, list[str] | str] = json.loads(KEPT.read_text())["answers"]


def answer(text: str) -> list[str] | str:
    """What is made of the text, in the form of what was recorded."""
    try:
        amount = from_json(text)
    except QuantityError as error:
        return error.upstream
    return [str(amount.in_thousandths()), str(amount)]


def test_amounts_are_those_of_an_api_server_SRC_036() -> None:
    differ = {text: (answer(text), kept) for text, kept in ANSWERS.items() if answer(text) != kept}
    assert len(ANSWERS) > 1000
    assert differ == {}


async def stored(api: FakeApi, text: str) -> list[str] | str:
    """What the fake stores of the text, in the form of what was recorded."""
    body = json.dumps(pod_with(text)).encode()
    answer = await api.request("POST", PODS, params={"dryRun": "All"}, body=body)
    if answer.status == 400:
        return str(answer.body["message"]).rpartition(": ")[2]
    spec = answer.body["spec"]
    limit = spec["containers"][0]["resources"]["limits"]["memory"]
    return [limit, spec["volumes"][0]["emptyDir"]["sizeLimit"]]


async def test_the_fake_api_server_stores_what_the_real_one_stores() -> None:
    api = FakeApi()
    for text, kept in ANSWERS.items():
        assert (text, await stored(api, text)) == (text, kept)
