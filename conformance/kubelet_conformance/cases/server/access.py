"""Who may ask the main port, and what (SRV-011 to SRV-014)."""

from kubelet_conformance.cases.server.commands import WEBSOCKET
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, RESTART = Feature.API, Feature.STATUS, Feature.RESTART
EVERY_PATH = (
    *("/pods", "/healthz", "/healthz/ping", "/metrics", "/metrics/resource", "/stats/summary"),
    *("/runningpods/", "/configz", "/logs/", "/containerLogs/a/b/c", "/exec/a/b/c"),
    *("/attach/a/b/c", "/portForward/a/b", "/run/a/b/c", "/checkpoint/a/b/c"),
)
REVIEWED = {
    "authentication": {"webhook": {"enabled": True}, "anonymous": {"enabled": False}},
    "authorization": {"mode": "Webhook"},
}
BY_TOKEN = {**REVIEWED, "authorization": {"mode": "AlwaysAllow"}}
ANYBODY = {
    "authentication": {"webhook": {"enabled": False}, "anonymous": {"enabled": True}},
    "authorization": {"mode": "Webhook"},
}
TOKEN_REVIEWS, ACCESS_REVIEWS = "/tokenreviews$", "/subjectaccessreviews$"


def bearer(token: str) -> dict[str, str]:
    """The headers of a client with that token."""
    return {"Authorization": f"Bearer {token}"}


def alice(node: Node, *allowed: str) -> dict[str, str]:
    """The headers of alice, who may `get` these subresources of the node and nothing else."""
    node.api.add_user("secret", "alice", "dev")
    node.api.deny(user="alice")
    for subresource in allowed:
        node.api.allow(user="alice", verb="get", resource="nodes", subresource=subresource)
    return bearer("secret")


@conformance(
    id="access-default",
    rules=["SRV-011.1", "SRV-011.2"],
    needs=[API, STATUS],
    node_config=REVIEWED,
)
async def nobody_gets_in_without_credentials(node: Node) -> None:
    """Without credentials every path of the main port is 401, health included."""
    for path in EVERY_PATH:
        for method in ("GET", "POST"):
            answer = await node.kubelet.http(method=method, path=path)
            expected_answer = (401, "Unauthorized")
            expect_equal(node, (answer.status, answer.text), expected_answer, f"{method} {path}")
    for header in ("Bearer", "Basic YTpi", "Bearer  secret"):
        answer = await node.kubelet.get("/pods", headers={"Authorization": header})
        expect_equal(node, answer.status, 401, f"status with {header!r}")


@conformance(id="access-token", rules=["SRV-013.1"], needs=[API, STATUS], node_config=BY_TOKEN)
async def a_token_is_reviewed_by_the_api_server(node: Node) -> None:
    """A bearer token is asked about in a TokenReview; a wrong one is 401."""
    node.api.add_user("secret", "alice")
    answer = await node.kubelet.get("/pods", headers=bearer("secret"))
    expect_equal(node, answer.status, 200, "status with a good token")
    review = node.api.requests("POST", TOKEN_REVIEWS)[-1].body
    expect_equal(node, review["spec"], {"token": "secret"}, "spec of the TokenReview")
    answer = await node.kubelet.get("/pods", headers={"Authorization": "bearer secret"})
    expect_equal(node, answer.status, 200, "status with a small letter")
    answer = await node.kubelet.get("/pods", headers=bearer("wrong"))
    expect_equal(node, (answer.status, answer.text), (401, "Unauthorized"), "a wrong token")


@conformance(
    id="access-wrong-token-anonymous",
    rules=["SRV-013.2"],
    needs=[API, STATUS],
    node_config={
        "authentication": {"webhook": {"enabled": True}, "anonymous": {"enabled": True}},
        "authorization": {"mode": "AlwaysAllow"},
    },
)
async def a_wrong_token_is_refused_where_none_is_needed(node: Node) -> None:
    """With anonymous requests allowed, a request with a wrong token is still 401."""
    expect_equal(node, (await node.kubelet.get("/pods")).status, 200, "status without a token")
    answer = await node.kubelet.get("/pods", headers=bearer("wrong"))
    expect_equal(node, answer.status, 401, "status with a wrong token")


@conformance(
    id="access-token-cached",
    rules=["SRV-013.4"],
    needs=[API, STATUS, Feature.VIRTUAL_TIME],
    node_config={
        "authentication": {
            "webhook": {"enabled": True, "cacheTTL": "40s"},
            "anonymous": {"enabled": False},
        },
        "authorization": {"mode": "AlwaysAllow"},
    },
)
async def what_a_token_is_worth_is_remembered(node: Node) -> None:
    """The answer about a token holds for cacheTTL, then the API server is asked again."""
    node.api.add_user("secret", "alice")
    for _ in range(3):
        await node.kubelet.get("/pods", headers=bearer("secret"))
    expect_equal(node, len(node.api.requests("POST", TOKEN_REVIEWS)), 1, "reviews")
    node.api.remove_user("secret")
    await node.run_for(30)
    answer = await node.kubelet.get("/pods", headers=bearer("secret"))
    expect_equal(node, answer.status, 200, "status after 30 s")
    await node.run_for(15)
    answer = await node.kubelet.get("/pods", headers=bearer("secret"))
    expect_equal(node, answer.status, 401, "status after 45 s")
    expect_equal(node, len(node.api.requests("POST", TOKEN_REVIEWS)), 2, "reviews")


@conformance(
    id="access-certificate",
    rules=["SRV-013.1", "SRV-013.3", "SRV-003.2"],
    needs=[API, STATUS, RESTART],
)
async def a_client_certificate_says_who_asks(node: Node) -> None:
    """The common name of a client certificate is the user, its organizations are the groups. Where
    there is no authority for them, none is asked for, and none counts."""
    authentication = {
        "x509": {"clientCAFile": node.kubelet.client_authority()},
        "webhook": {"enabled": False},
        "anonymous": {"enabled": False},
    }
    node.api.allow(user="kube", group="team")
    await node.kubelet.restart(authentication=authentication, authorization={"mode": "Webhook"})
    answer = await node.kubelet.get("/pods", certificate=("kube", ("team", "other")))
    expect_equal(node, answer.status, 200, "status with a certificate")
    spec = node.api.requests("POST", ACCESS_REVIEWS)[-1].body["spec"]
    expect_equal(node, spec["user"], "kube", "user")
    expected_groups = ["other", "system:authenticated", "team"]
    expect_equal(node, sorted(spec["groups"]), expected_groups, "groups")
    answer = await node.kubelet.get("/pods")
    expect_equal(node, answer.status, 401, "status without a certificate")
    authentication["x509"] = {"clientCAFile": ""}
    await node.kubelet.restart(authentication=authentication)
    answer = await node.kubelet.get("/pods", certificate=("kube", ("team", "other")))
    expect_equal(node, answer.status, 401, "status with a certificate that nobody asked for")


@conformance(
    id="access-forbidden", rules=["SRV-011.3", "SRV-012.1"], needs=[API, STATUS],
    node_config=REVIEWED)  # fmt: skip
async def what_is_not_allowed_is_told_in_the_words_of_rbac(node: Node) -> None:
    """A 403 names user, verb, resource and subresources."""
    headers = alice(node)
    for method, path, verb, subresources in (
        ("GET", "/stats/summary", "get", "stats"),
        ("POST", "/stats/summary", "create", "stats"),
        ("GET", "/metrics/cadvisor", "get", "metrics"),
        ("GET", "/logs/", "get", "log"),
        ("POST", "/checkpoint/a/b/c", "create", "checkpoint"),
        ("GET", "/containerLogs/a/b/c", "get", "proxy"),
        ("POST", "/exec/a/b/c", "create", "proxy"),
        ("PUT", "/metrics", "update", "metrics"),
        ("DELETE", "/metrics", "delete", "metrics"),
    ):
        answer = await node.kubelet.http(method=method, path=path, headers=headers)
        words = (
            f"Forbidden (user=alice, verb={verb}, resource=nodes, "
            f"subresource(s)=[{subresources}])\n"
        )
        expect_equal(node, (answer.status, answer.text), (403, words), f"{method} {path}")


@conformance(
    id="access-review", rules=["SRV-012.1", "SRV-014.1", "SRV-013.3"], needs=[API, STATUS],
    node_config=REVIEWED,
)  # fmt: skip
async def the_api_server_is_asked_about_the_node(node: Node) -> None:
    """A SubjectAccessReview has the user with all groups, and the node as a resource."""
    answer = await node.kubelet.get("/metrics", headers=alice(node, "metrics"))
    expect_equal(node, answer.status, 200, "status")
    spec = node.api.requests("POST", ACCESS_REVIEWS)[-1].body["spec"]
    attributes = {
        "verb": "get",
        "version": "v1",
        "resource": "nodes",
        "subresource": "metrics",
        "name": node.name,
    }
    expect_equal(node, spec["resourceAttributes"], attributes, "resourceAttributes")
    expect_equal(node, spec["user"], "alice", "user")
    expect_equal(node, sorted(spec["groups"]), ["dev", "system:authenticated"], "groups")


@conformance(
    id="access-of-a-stream", rules=["SRV-012.3", "SRV-012.1"], needs=[API, STATUS],
    node_config=REVIEWED,
)  # fmt: skip
async def a_stream_by_get_is_a_read(node: Node) -> None:
    """Exec by a WebSocket, which begins with GET, has the verb get; with POST it has create."""
    headers = {**alice(node), **WEBSOCKET}
    path = "/exec/default/nobody/main?command=ls&output=1"
    for method, verb in (("GET", "get"), ("POST", "create")):
        answer = await node.kubelet.http(method=method, path=path, headers=headers)
        words = f"Forbidden (user=alice, verb={verb}, resource=nodes, subresource(s)=[proxy])\n"
        expect_equal(node, (answer.status, answer.text), (403, words), f"{method} of exec")
        spec = node.api.requests("POST", ACCESS_REVIEWS)[-1].body["spec"]
        expect_equal(node, spec["resourceAttributes"]["verb"], verb, f"verb reviewed of {method}")


@conformance(
    id="access-fine-grained", rules=["SRV-012.2", "SRV-011.3"], needs=[API, STATUS], since="1.33",
    node_config=REVIEWED,
)  # fmt: skip
async def pods_and_health_have_subresources_of_their_own(node: Node) -> None:
    """Some paths have a subresource beside proxy, and one that is allowed suffices."""
    headers = alice(node)
    for path, fine in (
        ("/pods", "pods"),
        ("/runningpods/", "pods"),
        ("/healthz", "healthz"),
        ("/healthz/syncloop", "healthz"),
        ("/configz", "configz"),
    ):
        answer = await node.kubelet.get(path, headers=headers)
        words = f"Forbidden (user=alice, verb=get, resource=nodes, subresource(s)=[{fine} proxy])\n"
        expect_equal(node, (answer.status, answer.text), (403, words), path)
    node.api.add_user("pods", "bob")
    node.api.deny(user="bob")
    node.api.allow(user="bob", subresource="pods")
    node.api.add_user("proxy", "carol")
    node.api.deny(user="carol")
    node.api.allow(user="carol", subresource="proxy")
    for token in ("pods", "proxy"):
        answer = await node.kubelet.get("/pods", headers=bearer(token))
        expect_equal(node, answer.status, 200, f"status of /pods with {token}")
    answer = await node.kubelet.get("/healthz", headers=bearer("pods"))
    expect_equal(node, answer.status, 403, "status of /healthz with pods alone")


@conformance(
    id="access-cached",
    rules=["SRV-014.1"],
    needs=[API, STATUS, Feature.VIRTUAL_TIME],
    node_config={
        **REVIEWED,
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "100s", "cacheUnauthorizedTTL": "20s"},
        },
    },
)
async def what_is_allowed_is_remembered_longer_than_what_is_not(node: Node) -> None:
    """Answers of the API server hold for cacheAuthorizedTTL and cacheUnauthorizedTTL."""
    headers = alice(node, "metrics")

    async def status(path: str) -> int:
        return (await node.kubelet.get(path, headers=headers)).status

    async def both() -> tuple[int, int]:
        return await status("/metrics"), await status("/logs/")

    expect_equal(node, await both(), (200, 403), "first")
    node.api.deny(user="alice", subresource="metrics")
    node.api.allow(user="alice", subresource="log")
    await node.run_for(10)
    expect_equal(node, await both(), (200, 403), "10 s")
    await node.run_for(15)
    expect_equal(node, await both(), (200, 200), "25 s")
    await node.run_for(60)
    expect_equal(node, await status("/metrics"), 200, "status of /metrics after 85 s")
    await node.run_for(20)
    expect_equal(node, await status("/metrics"), 403, "status of /metrics after 105 s")


@conformance(
    id="access-anonymous",
    rules=["SRV-013.1"],
    needs=[API, STATUS],
    node_config=ANYBODY,
    since="1.33",
)
async def the_anonymous_user_may_what_it_is_allowed(node: Node) -> None:
    """A request without credentials is that of system:anonymous, of system:unauthenticated."""
    node.api.allow(user="system:anonymous", subresource="healthz")
    expect_equal(node, (await node.kubelet.get("/healthz")).status, 200, "status of /healthz")
    spec = node.api.requests("POST", ACCESS_REVIEWS)[-1].body["spec"]
    expect_equal(node, spec["groups"], ["system:unauthenticated"], "groups")
    answer = await node.kubelet.get("/metrics")
    words = (
        "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n"
    )
    expect_equal(node, (answer.status, answer.text), (403, words), "/metrics")


@conformance(
    id="access-nobody-can-tell", rules=["SRV-011.4"], needs=[API, STATUS], node_config=ANYBODY
)
async def without_an_answer_nothing_is_allowed(node: Node) -> None:
    """When the API server refuses to review an access, the request is 500 and does nothing."""
    with node.api.fails("POST", ACCESS_REVIEWS, status=403):
        answer = await node.kubelet.get("/metrics")
    words = (
        "Authorization error (user=system:anonymous, verb=get, resource=nodes, subresource=metrics)"
    )
    expect_equal(node, (answer.status, answer.text), (500, words), "/metrics")


@conformance(id="access-no-client", rules=["SRV-014.2"], needs=[RESTART])
async def webhooks_need_an_api_server(node: Node) -> None:
    """A kubelet without an API server does not start with webhooks."""
    error_text = await node.kubelet.refused_start(**REVIEWED)
    words = "no client provided, cannot use webhook authentication"
    expect(node, words in error_text, words, error_text)


@conformance(id="access-no-client-authorization", rules=["SRV-014.2"], needs=[RESTART])
async def webhook_authorization_needs_an_api_server(node: Node) -> None:
    """A kubelet without an API server does not start with authorization mode Webhook."""
    error_text = await node.kubelet.refused_start(**ANYBODY)
    words = "no client provided, cannot use webhook authorization"
    expect(node, words in error_text, words, error_text)


@conformance(
    id="access-no-method",
    rules=["SRV-014.2", "SRV-011.2"],
    needs=[STATUS],
    node_config={
        "authentication": {"webhook": {"enabled": False}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
    },
)
async def with_all_ways_switched_off_nobody_gets_in(node: Node) -> None:
    """A kubelet with all ways of authentication switched off runs, and lets nobody in."""
    for headers in ({}, bearer("secret")):
        answer = await node.kubelet.get("/pods", headers=headers)
        expect_equal(node, (answer.status, answer.text), (401, "Unauthorized"), "/pods")


@conformance(id="access-read-only", rules=["SRV-001.2"], needs=[API, STATUS], node_config=REVIEWED)
async def the_read_only_port_asks_nobody(node: Node) -> None:
    """The read-only port shows pods without credentials, whatever the main port wants."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    answer = await node.kubelet.get("/pods", port="read-only")
    expect_equal(node, answer.status, 200, "status of /pods")
    expect_equal(node, (await node.kubelet.get("/pods")).status, 401, "status on the main port")
