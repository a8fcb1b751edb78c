"""How long the kubelet remembers each kind of answer about clients, and for whom it holds."""

from typing import Any

from kubelet_conformance.cases.server.access import (
    ACCESS_REVIEWS,
    BY_TOKEN,
    REVIEWED,
    TOKEN_REVIEWS,
    bearer,
)
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, LONG = Feature.API, Feature.STATUS, Feature.VIRTUAL_TIME
PATH = "/stats/summary"


def reviews(node: Node, path: str) -> int:
    """How often the API server was asked."""
    return len(node.api.requests("POST", path))


async def status(node: Node, token: str, path: str = PATH) -> int:
    """What a client with that token is answered."""
    return (await node.kubelet.get(path, headers=bearer(token))).status


@conformance(
    id="access-no-opinion-cached",
    rules=["SRV-014.1"],
    needs=[API, STATUS, LONG],
    node_config={
        **REVIEWED,
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "100s", "cacheUnauthorizedTTL": "20s"},
        },
    },
)
async def whoever_is_not_allowed_is_asked_about_soon_again(node: Node) -> None:
    """An answer that allows holds for cacheAuthorizedTTL, one that denies and one without an
    opinion both for cacheUnauthorizedTTL; until then nobody is asked."""
    users = ("allowed", "denied", "unknown")
    for user in users:
        node.api.add_user(f"token-of-{user}", user)
    node.api.allow(user="allowed")
    node.api.deny(user="denied")
    node.api.say_nothing(user="unknown")

    async def answers() -> list[int]:
        return [await status(node, f"token-of-{user}") for user in users]

    expect_equal(node, await answers(), [200, 403, 403], "answers at first")
    expect_equal(node, reviews(node, ACCESS_REVIEWS), 3, "reviews at first")
    for user in users:
        node.api.allow(user=user)
    node.api.deny(user="allowed")
    await node.run_for(15)
    expect_equal(node, await answers(), [200, 403, 403], "answers after 15 s")
    expect_equal(node, reviews(node, ACCESS_REVIEWS), 3, "reviews after 15 s")
    await node.run_for(10)
    expect_equal(node, await answers(), [200, 200, 200], "answers after 25 s")
    expect_equal(node, reviews(node, ACCESS_REVIEWS), 5, "reviews after 25 s")
    await node.run_for(80)
    expect_equal(node, await answers(), [403, 200, 200], "answers after 105 s")
    expect_equal(node, reviews(node, ACCESS_REVIEWS), 6, "reviews after 105 s")


@conformance(
    id="access-user-whole",
    rules=["SRV-014.4", "SRV-013.4"],
    needs=[API, STATUS],
    node_config=REVIEWED,
)
async def a_user_is_more_than_a_name(node: Node) -> None:
    """A review names the user's UID, groups and extra facts, all that the TokenReview told; users
    that differ in one of these are asked about apart, and each once."""
    users: list[dict[str, Any]] = [
        {"uid": "1", "extra": {"team": ["a"]}},
        {"uid": "2", "extra": {"team": ["a"]}},
        {"uid": "1", "extra": {"team": ["b"]}},
        {"uid": "1", "extra": {"team": ["a", "b"]}},
        {"uid": "1", "extra": {"other": ["a"]}},
        {"uid": "1"},
        {"extra": {"team": ["a"]}},
    ]
    began = "a-token-that-begins-as-all-the-others-do" * 3
    for index, user in enumerate(users):
        node.api.add_user(f"{began}-{index}", "alice", "dev", **user)
    node.api.allow(user="alice")
    for again in (1, 2):
        for index in range(len(users)):
            expect_equal(node, await status(node, f"{began}-{index}"), 200, f"{index}, {again}")
    specs = [request.body["spec"] for request in node.api.requests("POST", ACCESS_REVIEWS)]
    facts = [{k: spec[k] for k in ("uid", "extra") if k in spec} for spec in specs]
    expect_equal(node, facts, users, "UIDs and extra facts of the reviews")
    expect_equal(node, reviews(node, TOKEN_REVIEWS), len(users), "reviews of tokens")


@conformance(
    id="access-refused-token-cached",
    rules=["SRV-013.4", "SRV-013.6"],
    needs=[API, STATUS, LONG],
    node_config={
        **BY_TOKEN,
        "authentication": {
            "webhook": {"enabled": True, "cacheTTL": "40s"},
            "anonymous": {"enabled": False},
        },
    },
)
async def a_token_that_is_nobodys_is_remembered(node: Node) -> None:
    """That a token is nobody's, which the API server says without an error, is remembered as long
    as whose it is: cacheTTL."""
    node.api.remove_user("secret", explained=False)
    for _ in range(2):
        expect_equal(node, await status(node, "secret", "/pods"), 401, "status at first")
    expect_equal(node, reviews(node, TOKEN_REVIEWS), 1, "reviews")
    node.api.add_user("secret", "alice")
    await node.run_for(30)
    expect_equal(node, await status(node, "secret", "/pods"), 401, "status after 30 s")
    await node.run_for(15)
    expect_equal(node, await status(node, "secret", "/pods"), 200, "status after 45 s")
    expect_equal(node, reviews(node, TOKEN_REVIEWS), 2, "reviews after 45 s")


@conformance(
    id="access-contradiction", rules=["SRV-014.5"], needs=[API, STATUS, LONG], node_config=REVIEWED
)
async def an_answer_that_contradicts_itself_allows_nothing(node: Node) -> None:
    """A review that is both allowed and denied is no answer, 500; it is remembered as one that
    allows."""
    node.api.add_user("secret", "alice")
    node.api.contradict(user="alice")
    expect_equal(node, await status(node, "secret"), 500, "status")
    node.api.allow(user="alice")
    expect_equal(node, await status(node, "secret"), 500, "status at once again")
    await node.run_for(290)
    expect_equal(node, await status(node, "secret"), 500, "status after 290 s")
    await node.run_for(15)
    expect_equal(node, await status(node, "secret"), 200, "status after 305 s")
    expect_equal(node, reviews(node, ACCESS_REVIEWS), 2, "reviews")


@conformance(id="access-long-path", rules=["SRV-014.6"], needs=[API, STATUS], node_config=REVIEWED)
async def answers_about_long_requests_are_not_kept(node: Node) -> None:
    """An answer about a request whose path has 10,000 characters or more is not remembered; how
    long the names of the user are does not count."""
    group = "g" * 5000
    node.api.add_user("secret", "alice", group, f"{group}{group}", extra={"x": ["y" * 9000]})
    node.api.allow(user="alice")
    for path, count_due in ((PATH, 1), (f"/logs/{'a' * 10000}", 2), (f"/logs/{'a' * 9000}", 1)):
        before = reviews(node, ACCESS_REVIEWS)
        for _ in range(2):
            await status(node, "secret", path)
        expect_equal(node, reviews(node, ACCESS_REVIEWS) - before, count_due, path[:40])
