"""When tokens are renewed, and what serves while they cannot be; which certificates are anchors."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lightkube.models.meta_v1 import LabelSelector, LabelSelectorRequirement
from loops import virtual_loop
from pods import make_pod

from refkubelet.api.client import ApiError
from refkubelet.model.objects import Pod
from refkubelet.object_manager.anchors import anchors_of, selects
from refkubelet.object_manager.tokens import Token, TokenManager
from simclock import Clock, Rng

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("life_s", "age_s", "jitter_s", "wanted"),
    [
        (1000, 800, 0, False),
        (1000, 801, 0, True),
        (1000, 791, 9, False),
        (1000, 792, 9, True),
        (10**6, 24 * 3600, 0, False),
        (10**6, 24 * 3600 + 1, 0, True),
        (None, 10**9, 0, False),
    ],
)
def test_when_a_token_is_renewed_NODE_207(
    life_s: int | None, age_s: int, jitter_s: int, wanted: bool
) -> None:
    token = Token("t", NOW + timedelta(seconds=life_s or 0), life_s)
    assert token.requires_refresh(NOW + timedelta(seconds=age_s), jitter_s) is wanted


class Server:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.requests: list[dict[str, Any]] = []
        self.fails = False

    async def create_token(
        self, namespace: str, service_account: str, request: dict[str, Any]
    ) -> dict[str, Any]:
        if self.fails:
            raise ApiError(500, "InternalError", "broken")
        self.requests.append(request)
        life_s = request["spec"]["expirationSeconds"]
        expires = self.clock.now() + timedelta(seconds=life_s)
        status = {"token": f"t{len(self.requests)}", "expirationTimestamp": expires.isoformat()}
        return {"spec": request["spec"], "status": status}


def pod(uid: str = "u") -> Pod:
    return make_pod(name="web", namespace="n", uid=uid, serviceAccountName="robot")


@pytest.mark.virtual_time
async def test_a_token_is_kept_by_pod_audience_and_life_NODE_207() -> None:
    clock = virtual_loop().clock
    server = Server(clock)
    tokens = TokenManager(server, clock, Rng(1))
    assert await tokens.get(pod(), "a", 1000) == "t1"
    assert await tokens.get(pod(), "a", 1000) == "t1"
    assert await tokens.get(pod(), "b", 1000) == "t2"
    assert await tokens.get(pod(), "a", 2000) == "t3"
    assert await tokens.get(pod("v"), "a", 1000) == "t4"
    spec = server.requests[0]["spec"]
    assert spec["audiences"] == ["a"]
    assert spec["boundObjectRef"]["uid"] == "u"
    tokens.forget("u")
    assert await tokens.get(pod(), "a", 1000) == "t5"


@pytest.mark.virtual_time
async def test_an_old_token_serves_until_it_expires_NODE_207() -> None:
    clock = virtual_loop().clock
    server = Server(clock)
    tokens = TokenManager(server, clock, Rng(1))
    server.fails = True
    with pytest.raises(ApiError, match="failed to fetch token: broken"):
        await tokens.get(pod(), "", 1000)
    server.fails = False
    assert await tokens.get(pod(), "", 1000) == "t1"
    server.fails = True
    await clock.sleep(950)
    assert await tokens.get(pod(), "", 1000) == "t1"
    await clock.sleep(60)
    with pytest.raises(ApiError, match="expired and refresh failed: broken"):
        await tokens.get(pod(), "", 1000)


def pem(*data: bytes) -> str:
    return "".join(
        f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(one).decode()}\n"
        "-----END CERTIFICATE-----\nnote\n"
        for one in data
    )


def test_anchors_are_certificates_each_once_NODE_213() -> None:
    found = anchors_of([pem(b"b", b"a"), "noise\n" + pem(b"a" * 60)], lambda blocks: None)
    assert found.decode().count("BEGIN CERTIFICATE") == 3
    assert b"note" not in found
    assert found == anchors_of([pem(b"a", b"a" * 60, b"b", b"a")], lambda blocks: None)


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        (None, False),
        (LabelSelector(), True),
        (LabelSelector(matchLabels={"a": "1"}), True),
        (LabelSelector(matchLabels={"a": "2"}), False),
        (("In", ["1", "2"]), True),
        (("In", ["2"]), False),
        (("NotIn", ["1"]), False),
        (("NotIn", ["2"]), True),
        (("Exists", None), True),
        (("DoesNotExist", None), False),
    ],
)
def test_what_a_selector_selects_NODE_213(selector: Any, wanted: bool) -> None:
    if isinstance(selector, tuple):
        one = LabelSelectorRequirement(key="a", operator=selector[0], values=selector[1])
        selector = LabelSelector(matchExpressions=[one])
    assert selects(selector, {"a": "1"}) is wanted


@pytest.mark.virtual_time
async def test_a_token_of_the_usual_life_is_asked_for_without_one_NODE_207() -> None:
    clock = virtual_loop().clock

    class Usual(Server):
        async def create_token(
            self, namespace: str, service_account: str, request: dict[str, Any]
        ) -> dict[str, Any]:
            assert "expirationSeconds" not in request["spec"]
            request["spec"]["expirationSeconds"] = 3600
            return await super().create_token(namespace, service_account, request)

    tokens = TokenManager(Usual(clock), clock, Rng(1))
    assert await tokens.get(pod(), "a", None) == "t1"
    assert await tokens.get(pod(), "a", None) == "t1"
