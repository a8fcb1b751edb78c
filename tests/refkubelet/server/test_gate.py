"""Who may ask the main port what (SRV-011, SRV-012, SRV-013, SRV-014)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from server_world import EVERYBODY, OPEN, ReviewTable, ask, port

from kubeobjects.structs import replace
from refkubelet.api.client import ApiError
from refkubelet.config import KubeletConfiguration
from refkubelet.config.schema.kubelet_config import (
    AnonymousAuthentication,
    Authentication,
    WebhookAuthentication,
    WebhookAuthorization,
    X509Authentication,
)
from refkubelet.server.access.attributes import (
    Attributes,
    User,
    attributes_of,
    failed,
    forbidden,
    review_spec,
    subresources_of,
)
from refkubelet.server.access.authentication import NotConfigured
from refkubelet.server.access.credentials import (
    BadCredentials,
    authenticated,
    bearer_token,
    user_of_certificate,
    websocket_token,
    without_token,
)
from refkubelet.server.access.review_cache import ReviewCache
from refkubelet.server.common.exchange import ClientCertificate, Request
from simclock import VirtualLoop, run_virtual

ALICE = {"username": "alice", "groups": ["dev"], "uid": "7", "extra": {"k": ["v"]}}
WEBHOOK = KubeletConfiguration()
ALL_OF_THEM = "system:authenticated"
CREDENTIAL = "authentication.kubernetes.io/credential-id"


def table(**allowed: set[str]) -> ReviewTable:
    return ReviewTable({"t": ALICE}, allowed)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/pods", ("pods", "proxy")),
        ("/pods/", ("pods", "proxy")),
        ("/runningpods/", ("pods", "proxy")),
        ("/healthz/syncloop", ("healthz", "proxy")),
        ("/configz", ("configz", "proxy")),
        ("/stats/summary", ("stats",)),
        ("/metrics", ("metrics",)),
        ("/metrics/cadvisor", ("metrics",)),
        ("/logs/", ("log",)),
        ("/checkpoint/a/b/c", ("checkpoint",)),
        ("/statusz", ("statusz",)),
        ("/flagz", ("configz",)),
        ("/containerLogs/a/b/c", ("proxy",)),
        ("/exec/a/b/c", ("proxy",)),
        ("/metricsandmore", ("proxy",)),
        ("/", ("proxy",)),
    ],
)
def test_subresources_of_paths_SRV_012(path: str, wanted: tuple[str, ...]) -> None:
    assert subresources_of(path) == wanted
    assert subresources_of(path, fine_grained=False) == wanted[-1:]


@pytest.mark.parametrize(
    ("method", "verb"),
    [
        *(("GET", "get"), ("POST", "create"), ("PUT", "update"), ("PATCH", "patch")),
        *(("DELETE", "delete"), ("HEAD", ""), ("OPTIONS", "")),
    ],
)
def test_verbs_of_methods_SRV_012(method: str, verb: str) -> None:
    request = Request(method=method, path="/stats/summary")
    assert [a.verb for a in attributes_of(request, User("u"), "n1")] == [verb]


def test_a_review_has_all_of_the_user_SRV_014() -> None:
    user = User("alice", ("dev",), "7", (("k", ("v",)),))
    assert review_spec(Attributes(user, "get", "stats", "n1")) == {
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "nodes",
            "subresource": "stats",
            "name": "n1",
        },
        "user": "alice",
        "groups": ["dev"],
        "uid": "7",
        "extra": {"k": ["v"]},
    }


def test_a_review_says_nothing_of_what_is_not_there_SRV_014() -> None:
    resource = {"version": "v1", "resource": "nodes", "subresource": "proxy", "name": "n1"}
    assert review_spec(Attributes(User("u"), "", "proxy", "n1")) == {
        "resourceAttributes": resource,
        "user": "u",
    }


def test_the_words_of_refusals_SRV_011() -> None:
    asked = attributes_of(Request(method="PUT", path="/pods"), User("u"), "n1")
    assert forbidden(asked) == (
        "Forbidden (user=u, verb=update, resource=nodes, subresource(s)=[pods proxy])\n"
    )
    assert failed(asked[0]) == (
        "Authorization error (user=u, verb=update, resource=nodes, subresource=pods)"
    )
    assert asked[0] == Attributes(User("u"), "update", "pods", "n1", "/pods")
    one = attributes_of(Request(path="/stats"), User("u"), "n1")
    assert forbidden(one).endswith("subresource(s)=[stats])\n")
    (coarse,) = attributes_of(Request(path="/pods"), User("u"), "n1", fine_grained=False)
    assert coarse == Attributes(User("u"), "get", "proxy", "n1", "/pods")


@pytest.mark.parametrize(
    ("certificate", "wanted"),
    [
        (None, None),
        (ClientCertificate(""), None),
        (ClientCertificate("", ("o",), "ab"), None),
        (ClientCertificate("cn"), User("cn", (), "", ())),
        (
            ClientCertificate("cn", ("o", "p"), "ab"),
            User("cn", ("o", "p"), extra=((CREDENTIAL, ("X509SHA256=ab",)),)),
        ),
    ],
)
def test_the_user_of_a_certificate_SRV_013(
    certificate: ClientCertificate | None, wanted: User | None
) -> None:
    assert user_of_certificate(certificate) == wanted


def test_whoever_is_known_is_in_the_group_of_all_SRV_013() -> None:
    assert authenticated(User("u", ("g",), "7")) == User("u", ("g", ALL_OF_THEM), "7")
    assert authenticated(User("u", (ALL_OF_THEM, "g"))) == User("u", (ALL_OF_THEM, "g"))


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        *(("Bearer t", "t"), ("bearer t", "t"), ("BEARER t more", "t"), ("  Bearer t  ", "t")),
        *(("", None), ("t", None), ("Basic t", None), ("Bearer  t", None), ("Bearer", None)),
        *(("Bearer a b c", "a"), ("Bearer a b c d", "a")),
    ],
)
def test_bearer_tokens_SRV_013(header: str, wanted: str | None) -> None:
    assert bearer_token(Request(path="/", headers={"authorization": header})) == wanted


def websocket(*protocols: str) -> Request:
    headers = {
        "connection": "keep-alive, Upgrade",
        "upgrade": "websocket",
        "sec-websocket-protocol": ", ".join(protocols),
        "authorization": "Bearer x",
    }
    return Request(path="/", headers=headers)


def encoded(token: str) -> str:
    text = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    return f"base64url.bearer.authorization.k8s.io.{text}"


def test_a_token_among_the_protocols_of_a_websocket_SRV_013() -> None:
    request = websocket(encoded("tök"), "v4.channel.k8s.io")
    assert websocket_token(request) == "tök"
    kept = without_token(request)
    assert kept.websocket_protocols == ("v4.channel.k8s.io",)
    assert "authorization" not in kept.headers
    assert websocket_token(websocket("v4.channel.k8s.io")) is None
    plain = Request(path="/", headers={"sec-websocket-protocol": encoded("t")})
    assert websocket_token(plain) is None


@pytest.mark.parametrize("token", ["a", "ab", "abc", "abcd", "~~~???>>>"])
def test_tokens_of_any_length_and_letters_SRV_013(token: str) -> None:
    request = websocket("v5.channel.k8s.io", encoded(token), "v4.channel.k8s.io")
    assert websocket_token(request) == token
    kept = without_token(request)
    assert kept.headers["sec-websocket-protocol"] == "v5.channel.k8s.io,v4.channel.k8s.io"


def test_an_empty_token_is_none_SRV_013() -> None:
    assert websocket_token(websocket(encoded(""))) is None


@pytest.mark.parametrize(
    ("protocols", "words"),
    [
        ((encoded("t"),), "missing additional subprotocol"),
        (
            (encoded("t"), encoded("t"), "a"),
            "multiple base64.bearer.authorization tokens specified",
        ),
        (
            (encoded("t")[:-2] + "$", "a"),
            "invalid base64.bearer.authorization token encoding",
        ),
    ],
)
def test_odd_tokens_among_protocols_are_refused_SRV_013(
    protocols: tuple[str, ...], words: str
) -> None:
    with pytest.raises(BadCredentials) as caught:
        websocket_token(websocket(*protocols))
    assert str(caught.value) == words


async def test_nobody_gets_in_by_default_SRV_011() -> None:
    on = port(WEBHOOK, api=table())
    for path in ("/pods", "/healthz", "/healthz/ping", "/metrics", "/exec/a/b/c", "/nope", "/"):
        for method in ("GET", "POST", "HEAD", "OPTIONS"):
            assert await ask(on, path, method) == (401, "Unauthorized")


async def test_a_token_counts_with_its_users_rights_SRV_013() -> None:
    api = table(alice={"stats"})
    on = port(WEBHOOK, api=api)
    assert (await ask(on, "/stats/summary", authorization="Bearer t"))[0] == 200
    spec = api.asked[-1]["spec"]
    assert spec["groups"] == ["dev", "system:authenticated"]
    assert (spec["uid"], spec["extra"]) == ("7", {"k": ["v"]})
    assert await ask(on, "/pods", authorization="Bearer t") == (
        403,
        "Forbidden (user=alice, verb=get, resource=nodes, subresource(s)=[pods proxy])\n",
    )
    assert (await ask(on, "/pods", authorization="Bearer other"))[0] == 401


async def test_one_of_two_subresources_suffices_SRV_012() -> None:
    for right in ("pods", "proxy"):
        on = port(WEBHOOK, api=table(alice={right}))
        assert (await ask(on, "/pods", authorization="Bearer t"))[0] == 200


async def test_a_wrong_token_is_refused_even_if_anybody_may_ask_SRV_013() -> None:
    anybody = Authentication(anonymous=AnonymousAuthentication(enabled=True))
    config = replace(EVERYBODY, authentication=anybody)
    on = port(config, api=table())
    assert (await ask(on, "/pods"))[0] == 200
    assert (await ask(on, "/pods", authorization="Bearer other"))[0] == 401


async def test_no_log_has_a_token_SRV_013(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    api = table()
    on = port(WEBHOOK, api=api)
    await ask(on, "/pods", authorization="Bearer very-secret")
    api.fails = ApiError(403, "Forbidden", "the kubelet may not ask")
    await ask(on, "/pods", authorization="Bearer very-secret-too")
    assert "Unable to authenticate" in caplog.text
    assert "very-secret" not in caplog.text


async def test_without_reviews_a_token_is_nothing_SRV_013() -> None:
    assert (await ask(port(EVERYBODY), "/pods", authorization="Bearer other"))[0] == 200


async def test_the_anonymous_user_has_its_own_rights_SRV_013() -> None:
    anybody = Authentication(anonymous=AnonymousAuthentication(enabled=True))
    api = ReviewTable({}, {"system:anonymous": {"healthz"}})
    on = port(replace(WEBHOOK, authentication=anybody), api=api)
    assert (await ask(on, "/healthz"))[0] == 200
    assert api.asked[-1]["spec"]["groups"] == ["system:unauthenticated"]
    assert (await ask(on, "/pods"))[0] == 403


async def test_a_client_certificate_counts_where_its_authority_is_named_SRV_013() -> None:
    by_certificate = replace(
        WEBHOOK.authentication, x509=X509Authentication(client_ca_file="/ca.crt")
    )
    api = ReviewTable({}, {"kube": {"proxy"}})
    on = port(replace(WEBHOOK, authentication=by_certificate), api=api)
    assert (await ask(on, "/pods", owner=("kube", "masters")))[0] == 200
    spec = api.asked[-1]["spec"]
    assert spec["groups"] == ["masters", "system:authenticated"]
    assert spec["extra"] == {"authentication.kubernetes.io/credential-id": ["X509SHA256=ab"]}
    assert (await ask(on, "/pods", owner=("", "masters")))[0] == 401
    without = port(WEBHOOK, api=api)
    assert (await ask(without, "/pods", owner=("kube", "masters")))[0] == 401


async def test_an_authorizer_that_cannot_tell_is_500_SRV_011() -> None:
    config = replace(WEBHOOK, authentication=OPEN)
    api = table()
    api.fails = ApiError(403, "Forbidden", "the kubelet may not ask")
    assert await ask(port(config, api=api), "/stats/summary") == (
        500,
        "Authorization error (user=system:anonymous, verb=get, resource=nodes, subresource=stats)",
    )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (WEBHOOK, "no client provided, cannot use webhook authentication"),
        (
            replace(WEBHOOK, authentication=OPEN),
            "no client provided, cannot use webhook authorization",
        ),
    ],
)
def test_configurations_that_cannot_work_SRV_014(config: KubeletConfiguration, words: str) -> None:
    with pytest.raises(NotConfigured, match=words):
        port(config)


async def test_with_all_ways_switched_off_nobody_gets_in_SRV_014() -> None:
    nothing = Authentication(webhook=WebhookAuthentication(enabled=False))
    on = port(replace(EVERYBODY, authentication=nothing))
    assert await ask(on, "/pods", authorization="Bearer t", owner=("kube",)) == (
        401,
        "Unauthorized",
    )


def in_virtual_time(test: Any) -> None:
    run_virtual(test, seed=1)


def clock_now() -> Any:
    import asyncio

    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.clock


def test_answers_are_kept_as_long_as_configured_SRV_013_SRV_014() -> None:
    async def asking() -> None:
        clock = clock_now()
        api = table(alice={"stats"})
        ttl = WebhookAuthorization(cache_authorized_ttl_s=300, cache_unauthorized_ttl_s=30)
        config = replace(WEBHOOK, authorization=replace(WEBHOOK.authorization, webhook=ttl))
        on = port(config, api=api, clock=clock)

        async def reviews(path: str) -> list[str]:
            before = len(api.asked)
            await ask(on, path, authorization="Bearer t")
            return api.kinds()[before:]

        both = ["TokenReview", "SubjectAccessReview"]
        assert await reviews("/stats/summary") == both
        assert await reviews("/stats/summary") == []
        assert await reviews("/logs/") == ["SubjectAccessReview"]
        await clock.sleep(29)
        assert await reviews("/logs/") == []
        await clock.sleep(2)
        assert await reviews("/logs/") == ["SubjectAccessReview"]
        await clock.sleep(90)
        assert await reviews("/stats/summary") == ["TokenReview"]
        await clock.sleep(100)
        assert await reviews("/stats/summary") == []
        await clock.sleep(100)
        assert await reviews("/stats/summary") == both

    in_virtual_time(asking)


@pytest.mark.parametrize(
    ("status", "tries"), [(429, 5), (500, 5), (504, 5), (503, 1), (403, 1), (0, 1)]
)
def test_a_server_that_fails_is_asked_again_SRV_013(status: int, tries: int) -> None:
    async def asking() -> None:
        clock = clock_now()
        api = table(alice={"stats"})
        api.fails = ApiError(status, "Failed", "not now")
        config = replace(WEBHOOK, authentication=OPEN)
        began_s = clock.monotonic_s()
        on = port(config, api=api, clock=clock)
        assert (await ask(on, "/stats/summary"))[0] == 500
        assert len(api.asked) == tries
        waited_s = clock.monotonic_s() - began_s
        assert 4.0 < waited_s < 4.1 if tries > 1 else waited_s < 0.1

    in_virtual_time(asking)


def test_the_cache_forgets_the_oldest_first() -> None:
    cache: ReviewCache[int] = ReviewCache(most=2)
    for number in range(3):
        cache.put(str(number), number, now_s=0, ttl_s=10)
    assert [cache.get(str(n), 9.9) for n in range(3)] == [None, 1, 2]
    assert cache.get("2", 10) is None
    cache.put("3", 3, now_s=0, ttl_s=0)
    assert cache.get("3", 0) is None
