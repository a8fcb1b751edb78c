"""Service accounts of the fake API server: token requests, token reviews, the admission of pods."""

from typing import Any

import pytest
from fakekubeapi_helpers import POD_A, PODS, create, ok, pod, refused

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.access.tokens import read, sign
from simclock import VirtualLoop

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN = f"{ACCOUNTS}/default/token"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
AUDIENCE = "https://kubernetes.default.svc.cluster.local"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def bound(kind: str = "Pod", name: str = "a", **more: Any) -> dict[str, Any]:
    return {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}, **more}


async def request_token(api: FakeApi, **spec: Any) -> dict[str, Any]:
    return ok(await api.request("POST", TOKEN, body={"spec": spec}))


async def review(api: FakeApi, token: str, *audiences: str) -> dict[str, Any]:
    spec = {"token": token, "audiences": list(audiences)}
    body = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
    found = ok(await api.request("POST", REVIEWS, body=body))["status"]
    assert isinstance(found, dict)
    return found


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a token, as a client reads them: without its key."""
    import base64
    import json

    text = token.split(".")[1]
    found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    assert isinstance(found, dict)
    return found


def test_a_signed_token_is_read_with_its_key_alone() -> None:
    token = sign(b"key", {"sub": "a"})
    assert token.count(".") == 2
    assert read(b"key", token) == {"sub": "a"}
    assert read(b"other", token) is None
    assert read(b"key", token[:-3] + "AAA") is None
    head, _, tail = token.split(".")
    assert read(b"key", f"{head}.{sign(b'other', {'sub': 'b'}).split('.')[1]}.{tail}") is None


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", "é.ü.ö", "...", "a.b.c.d", "=.=.="])
def test_other_texts_are_no_tokens(text: str) -> None:
    assert read(b"key", text) is None


@pytest.mark.virtual_time
async def test_a_token_request_answers_with_a_token_and_when_it_ends() -> None:
    api = FakeApi()
    answer = await request_token(api)
    assert answer["kind"] == "TokenRequest"
    assert answer["spec"] == {
        "audiences": [AUDIENCE],
        "expirationSeconds": 3600,
        "boundObjectRef": None,
    }
    claims = claims_of(answer["status"]["token"])
    assert claims["sub"] == "system:serviceaccount:default:default"
    assert claims["aud"] == [AUDIENCE]
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["kubernetes.io"]["serviceaccount"]["uid"] == answer["metadata"]["uid"]
    from datetime import datetime

    ends = datetime.fromisoformat(answer["status"]["expirationTimestamp"])
    assert ends.timestamp() == claims["exp"]


@pytest.mark.virtual_time
async def test_what_is_null_in_a_token_request_is_not_said() -> None:
    """A kubelet sends all fields that its Go types have."""
    metadata = {"name": None, "uid": None, "creationTimestamp": None}
    spec = {"audiences": [AUDIENCE], "expirationSeconds": None}
    status = {"token": "", "expirationTimestamp": None}
    body = {"metadata": metadata, "spec": spec, "status": status}
    answer = await FakeApi().request("POST", TOKEN, body=body)
    assert (answer.status, answer.body["spec"]["expirationSeconds"]) == (201, 3600)


@pytest.mark.virtual_time
async def test_a_token_lasts_ten_minutes_at_least() -> None:
    api = FakeApi()
    answer = await api.request("POST", TOKEN, body={"spec": {"expirationSeconds": 599}})
    assert "may not specify a duration less than 10 minutes" in refused(answer, 422, "Invalid")
    await request_token(api, expirationSeconds=600)
    answer = await api.request("POST", TOKEN, body={"spec": {"expirationSeconds": 2**32 + 1}})
    assert "larger than 2^32 seconds" in refused(answer, 422, "Invalid")


@pytest.mark.virtual_time
async def test_a_token_is_bound_to_an_object_of_the_same_account() -> None:
    api = FakeApi()
    answer = await api.request("POST", TOKEN, body={"spec": bound()})
    assert refused(answer, 404, "NotFound") == 'pods "a" not found'
    await create(api, PODS, pod("a"))
    answer = await api.request("POST", TOKEN, body={"spec": bound()})
    assert "different serviceaccount name" in refused(answer, 400, "BadRequest")
    await create(api, PODS, pod("b", serviceAccountName="default"))
    ref = bound(name="b")
    ref["boundObjectRef"]["uid"] = "other"
    answer = await api.request("POST", TOKEN, body={"spec": ref})
    assert "might have been deleted and then recreated" in refused(answer, 409, "Conflict")
    answer = await api.request("POST", TOKEN, body={"spec": bound("Service")})
    assert "cannot bind token to object of type /v1, Kind=Service" in refused(
        answer, 400, "BadRequest"
    )


@pytest.mark.virtual_time
async def test_the_token_of_a_default_volume_holds_for_a_year() -> None:
    api = FakeApi()
    await create(api, PODS, pod("a", serviceAccountName="default"))
    answer = await request_token(api, **bound(expirationSeconds=3607))
    claims = claims_of(answer["status"]["token"])
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    assert claims["kubernetes.io"]["pod"]["name"] == "a"
    assert claims["kubernetes.io"]["node"] == {"name": "n"}


@pytest.mark.virtual_time
async def test_reviews_know_tokens_until_they_end_or_their_object_goes() -> None:
    api = FakeApi()
    await create(api, PODS, pod("a", node=None, serviceAccountName="default"))
    token = (await request_token(api, **bound()))["status"]["token"]
    found = await review(api, token)
    assert found["authenticated"]
    assert found["user"]["username"] == "system:serviceaccount:default:default"
    assert "system:serviceaccounts:default" in found["user"]["groups"]
    assert found["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["a"]
    other = await review(api, token, "vault")
    assert not other.get("authenticated")
    assert 'invalid for the target audiences ["vault"]' in other["error"]
    await api.request("DELETE", POD_A)
    gone = await review(api, token)
    assert gone == {
        "user": {},
        "error": "[invalid bearer token, service account token has been invalidated]",
    }


def test_a_token_ends_when_its_time_is_over() -> None:
    async def body() -> None:
        import asyncio

        api = FakeApi()
        token = (await request_token(api, expirationSeconds=600))["status"]["token"]
        await asyncio.sleep(599)
        assert (await review(api, token))["authenticated"]
        await asyncio.sleep(1)
        assert "service account token has expired" in (await review(api, token))["error"]

    loop = VirtualLoop()
    try:
        loop.run_until_complete(body())
    finally:
        loop.close()


@pytest.mark.virtual_time
async def test_an_account_that_is_made_again_has_other_tokens() -> None:
    api = FakeApi()
    token = (await request_token(api))["status"]["token"]
    await api.request("DELETE", f"{ACCOUNTS}/default")
    assert ok(await api.request("GET", f"{ACCOUNTS}/default"))["metadata"]["uid"]
    assert "does not match claim" in (await review(api, token))["error"]


@pytest.mark.virtual_time
async def test_reviews_know_the_users_of_the_table() -> None:
    api = FakeApi()
    api.users.add("secret", "alice", groups=["dev"])
    assert (await review(api, "secret"))["user"] == {
        "username": "alice",
        "groups": ["dev", "system:authenticated"],
    }
    assert (await review(api, "other"))["error"] == "invalid bearer token"
    api.users.remove("other", explained=False)
    assert await review(api, "other") == {"user": {}}
    api.users.add("other", "bob", uid="7", extra={"team": ["a", "b"]})
    told = (await review(api, "other"))["user"]
    assert (told["uid"], told["extra"]) == ("7", {"team": ["a", "b"]})
    api.users.remove("other")
    assert (await review(api, "other"))["error"] == "invalid bearer token"
    answer = await api.request("POST", REVIEWS, body={"spec": {}})
    assert "token is required" in refused(answer, 400, "BadRequest")
    assert refused(await api.request("GET", REVIEWS), 405, "MethodNotAllowed")


@pytest.mark.virtual_time
async def test_pods_get_an_account_only_when_that_is_switched_on() -> None:
    plain = FakeApi()
    made = await create(plain, PODS, pod("a"))
    assert "serviceAccountName" not in made["spec"]
    assert "volumes" not in made["spec"]
    listed = ok(await plain.request("GET", "/api/v1/configmaps"))
    assert listed["items"] == []


@pytest.mark.virtual_time
async def test_a_new_pod_gets_the_default_account_and_its_token_volume() -> None:
    api = FakeApi(options=ServerOptions(service_account_admission=True))
    made = await create(api, PODS, pod("a"))
    assert made["spec"]["serviceAccountName"] == made["spec"]["serviceAccount"] == "default"
    (volume,) = made["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    token, root, namespace = volume["projected"]["sources"]
    assert token == {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    assert root["configMap"]["name"] == "kube-root-ca.crt"
    assert namespace["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"] == "metadata.namespace"
    (mount,) = made["spec"]["containers"][0]["volumeMounts"]
    assert mount == {"name": volume["name"], "readOnly": True, "mountPath": MOUNT}
    path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
    assert "BEGIN CERTIFICATE" in ok(await api.request("GET", path))["data"]["ca.crt"]


@pytest.mark.virtual_time
async def test_the_admission_can_be_switched_on_later() -> None:
    api = FakeApi()
    await create(api, PODS, pod("a"))
    api.admit_service_accounts()
    assert (await create(api, PODS, pod("b")))["spec"]["serviceAccountName"] == "default"
    listed = ok(await api.request("GET", "/api/v1/configmaps"))
    assert len(listed["items"]) == 4


@pytest.mark.virtual_time
async def test_pods_and_accounts_may_refuse_the_token() -> None:
    api = FakeApi(options=ServerOptions(service_account_admission=True))
    made = await create(api, PODS, pod("a", automountServiceAccountToken=False))
    assert "volumes" not in made["spec"]
    account = {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False}
    account["imagePullSecrets"] = [{"name": "hub"}]
    await create(api, ACCOUNTS, account)
    made = await create(api, PODS, pod("b", serviceAccountName="quiet"))
    assert "volumes" not in made["spec"]
    assert made["spec"]["imagePullSecrets"] == [{"name": "hub"}]
    answer = await api.request("POST", PODS, body=pod("c", serviceAccountName="none"))
    assert refused(answer, 403, "Forbidden") == (
        'pods "c" is forbidden: error looking up service account default/none: '
        'serviceaccount "none" not found'
    )


@pytest.mark.virtual_time
async def test_a_mirror_pod_names_no_account_secret_or_token() -> None:
    api = FakeApi(options=ServerOptions(service_account_admission=True))
    mirror = pod("m")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    made = await create(api, PODS, mirror)
    assert "volumes" not in made["spec"]
    assert "serviceAccountName" not in made["spec"]
    for number, more in enumerate(
        [
            {"serviceAccountName": "default"},
            {"volumes": [{"name": "s", "secret": {"secretName": "s"}}]},
            {
                "volumes": [
                    {
                        "name": "t",
                        "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
                    }
                ]
            },
        ]
    ):
        other = pod(f"m{number}", **more)
        other["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        answer = await api.request("POST", PODS, body=other)
        assert "a mirror pod may not" in refused(answer, 403, "Forbidden")
