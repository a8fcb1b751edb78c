"""The access table of the fake API server, and what reviews say of it."""

from typing import Any

import pytest
from fakekubeapi_helpers import ok, refused

from fakekubeapi import FakeApi, User
from fakekubeapi.access import AccessPolicy, Attributes

GROUP = "/apis/authorization.k8s.io/v1"
PROXY = {"verb": "get", "resource": "nodes", "subresource": "proxy", "name": "n"}


async def review(api: FakeApi, **spec: Any) -> dict[str, Any]:
    body = {"spec": spec}
    answer = ok(await api.request("POST", f"{GROUP}/subjectaccessreviews", body=body))
    found = answer["status"]
    assert isinstance(found, dict)
    return found


def test_the_newest_row_that_fits_decides() -> None:
    policy = AccessPolicy()
    get = Attributes(user="a", groups=("g",), verb="get", resource="nodes")
    assert not policy.decide(get).allowed
    assert not policy.decide(get).denied
    policy.allow(group="g")
    assert policy.decide(get).allowed
    row = policy.deny(user="a", verb="get")
    assert policy.decide(get).denied
    policy.remove(row)
    assert policy.decide(get).allowed
    policy.say_nothing(user="a")
    assert (policy.decide(get).allowed, policy.decide(get).denied) == (False, False)
    policy.contradict(user="a")
    assert (policy.decide(get).allowed, policy.decide(get).denied) == (True, True)


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ({"path": "/logs/*"}, True),
        ({"path": "/logs/a"}, True),
        ({"path": "/logs"}, False),
        ({"user": "*"}, True),
        ({"user": "b"}, False),
        ({"group": "g"}, False),
        ({"verb": "post"}, False),
        ({"resource": "nodes"}, False),
    ],
)
def test_a_row_fits_where_all_its_fields_do(row: dict[str, str], fits: bool) -> None:
    policy = AccessPolicy()
    policy.allow(**row)
    wanted = Attributes(user="a", verb="get", path="/logs/a")
    assert policy.decide(wanted).allowed is fits


def test_an_unknown_field_of_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="has no colour"):
        AccessPolicy().allow(colour="red")


@pytest.mark.virtual_time
async def test_users_with_a_token_may_do_everything_others_nothing() -> None:
    api = FakeApi()
    api.users.add("t", "alice")
    assert await review(api, user="alice", resourceAttributes=PROXY) == {"allowed": True}
    assert await review(api, user="bob", resourceAttributes=PROXY) == {"allowed": False}
    masters = await review(api, user="x", groups=["system:masters"], resourceAttributes=PROXY)
    assert masters["allowed"]


@pytest.mark.virtual_time
async def test_rows_decide_by_resource_subresource_and_name() -> None:
    api = FakeApi()
    api.access.allow(user="bob", resource="nodes", subresource="stats")
    assert not (await review(api, user="bob", resourceAttributes=PROXY))["allowed"]
    stats = {**PROXY, "subresource": "stats"}
    assert (await review(api, user="bob", resourceAttributes=stats))["allowed"]
    api.access.deny(user="bob")
    denied = await review(api, user="bob", resourceAttributes=stats)
    assert denied["denied"]
    assert not denied["allowed"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "spec",
    [
        {"resourceAttributes": PROXY},
        {"user": "a"},
        {"user": "a", "resourceAttributes": PROXY, "nonResourceAttributes": {"path": "/"}},
    ],
)
async def test_a_review_names_a_user_and_one_access(spec: dict[str, Any]) -> None:
    answer = await FakeApi().request("POST", f"{GROUP}/subjectaccessreviews", body={"spec": spec})
    refused(answer, 422, "Invalid")


@pytest.mark.virtual_time
async def test_a_client_may_ask_about_itself() -> None:
    api = FakeApi()
    api.access.allow(user="alice", verb="get")
    api.users.add("t", "bob")
    path = f"{GROUP}/selfsubjectaccessreviews"
    body = {"spec": {"resourceAttributes": PROXY}}
    alice = await api.request("POST", path, body=body, user=User("alice"))
    assert ok(alice)["status"]["allowed"]
    carol = await api.request("POST", path, body=body, user=User("carol"))
    assert not ok(carol)["status"]["allowed"]
    whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = await api.request("POST", whoami, body={}, user=api.client_of("Bearer t"))
    assert ok(answer)["status"]["userInfo"]["username"] == "bob"
    assert api.client_of("Bearer none").name == api.client_of("").name == "kubernetes-admin"
