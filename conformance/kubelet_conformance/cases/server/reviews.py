"""What the kubelet asks the API server about clients, when it asks again, and what it remembers."""

import asyncio

from kubelet_conformance.cases.server.access import (
    ACCESS_REVIEWS,
    ANYBODY,
    BY_TOKEN,
    REVIEWED,
    TOKEN_REVIEWS,
    bearer,
)
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
AGAIN_S = 6.0
"""Five tries: after 0.5, 0.75, 1.1 and 1.7 s, each up to a fifth longer."""


@conformance(
    id="access-token-review-again",
    rules=["SRV-013.5", "SRV-011.2"],
    needs=[API, STATUS],
    node_config=BY_TOKEN,
)
async def a_token_is_reviewed_again_when_the_server_has_failed(node: Node) -> None:
    """While the API server answers 500, a TokenReview is made again after half a second and
    later, and the client gets its answer when one succeeds. One that is refused, or finds no
    server, is not made again: the client gets 401."""
    node.api.add_user("secret", "alice")
    with node.api.fails("POST", TOKEN_REVIEWS, status=500):
        request = asyncio.ensure_future(node.kubelet.get("/pods", headers=bearer("secret")))
        await node.run_for(1.0)
    await node.run_until(request.done, within_s=AGAIN_S, what="an answer")
    expect_equal(node, request.result().status, 200, "status after reviews that failed")
    before = len(node.api.requests("POST", TOKEN_REVIEWS))
    node.api.add_user("other", "bob")
    with node.api.fails("POST", TOKEN_REVIEWS, status=403):
        answer = await node.kubelet.get("/pods", headers=bearer("other"))
    expect_equal(node, answer.status, 401, "status after a review that was refused")
    with node.api.down():
        answer = await node.kubelet.get("/pods", headers=bearer("other"))
    expect_equal(node, answer.status, 401, "status without a server")
    expect_equal(node, len(node.api.requests("POST", TOKEN_REVIEWS)) - before, 2, "reviews")


@conformance(
    id="access-review-again",
    rules=["SRV-014.3", "SRV-011.4"],
    needs=[API, STATUS],
    node_config=ANYBODY,
)
async def an_access_is_reviewed_again_when_the_server_has_failed(node: Node) -> None:
    """The same for SubjectAccessReviews; one that is refused is 500, and nothing is remembered of
    it: the next request is reviewed anew."""
    node.api.allow(user="system:anonymous")
    with node.api.fails("POST", ACCESS_REVIEWS, status=500):
        request = asyncio.ensure_future(node.kubelet.get("/metrics"))
        await node.run_for(1.0)
    await node.run_until(request.done, within_s=AGAIN_S, what="an answer")
    expect_equal(node, request.result().status, 200, "status after reviews that failed")
    before = len(node.api.requests("POST", ACCESS_REVIEWS))
    with node.api.fails("POST", ACCESS_REVIEWS, status=403):
        answer = await node.kubelet.get("/logs/")
    expect_equal(node, answer.status, 500, "status after a review that was refused")
    expect_equal(node, len(node.api.requests("POST", ACCESS_REVIEWS)) - before, 1, "reviews")
    answer = await node.kubelet.get("/logs/")
    expect_equal(node, answer.status, 200, "status when it is not refused any more")


@conformance(
    id="access-remembered-apart",
    rules=["SRV-014.4", "SRV-013.3", "SRV-013.4"],
    needs=[API, STATUS],
    node_config=REVIEWED,
)
async def what_is_remembered_of_one_access_says_nothing_of_another(node: Node) -> None:
    """An answer holds for the same token, user, groups, verb and subresource: another of these is
    asked about, and a remembered one is not."""
    for token, name, group in (
        ("sesame-1", "alice", "dev"),
        ("sesame-2", "alice", "ops"),
        ("sesame-3", "bob", "dev"),
    ):
        node.api.add_user(token, name, group)
    node.api.deny(user="alice")
    node.api.deny(user="bob")
    node.api.allow(user="alice", group="dev", verb="get", subresource="metrics")

    async def status(token: str, path: str = "/metrics", method: str = "GET") -> int:
        return (await node.kubelet.http(method=method, path=path, headers=bearer(token))).status

    for _ in range(2):
        expect_equal(node, await status("sesame-1"), 200, "alice of dev")
        expect_equal(node, await status("sesame-2"), 403, "alice of ops")
        expect_equal(node, await status("sesame-3"), 403, "bob")
        expect_equal(node, await status("sesame-1", method="POST"), 403, "another verb")
        expect_equal(node, await status("sesame-1", "/logs/"), 403, "another subresource")
        expect_equal(node, await status("sesame-1"), 200, "alice of dev again")
    expect_equal(node, len(node.api.requests("POST", TOKEN_REVIEWS)), 3, "reviews of tokens")
    expect_equal(node, len(node.api.requests("POST", ACCESS_REVIEWS)), 5, "reviews of accesses")


@conformance(
    id="access-wrong-token-again", rules=["SRV-013.6"], needs=[API, STATUS], node_config=BY_TOKEN
)
async def a_wrong_token_may_become_a_right_one(node: Node) -> None:
    """Of a token that the API server refused with an error nothing is remembered: it is reviewed
    at each request, and works as soon as the server knows it."""
    for _ in range(2):
        answer = await node.kubelet.get("/pods", headers=bearer("secret"))
        expect_equal(node, answer.status, 401, "status with a token that nobody has")
    expect_equal(node, len(node.api.requests("POST", TOKEN_REVIEWS)), 2, "reviews")
    node.api.add_user("secret", "alice")
    answer = await node.kubelet.get("/pods", headers=bearer("secret"))
    expect_equal(node, answer.status, 200, "status when the token is somebody's")
