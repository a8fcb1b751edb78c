"""HTTP probes: what they send, and what status, redirects and errors mean."""

from typing import Any

from fakecri import serves
from kubelet_conformance.cases.probes.common import RUN_S, becomes_ready, pod_ip, ready, says
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, grpc_probe, http_probe, pod, tcp_probe
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import redirects, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, API = Feature.STATUS, Feature.API
REACHED, SERVERS = Feature.POD_NETWORK, Feature.POD_SERVERS


@conformance(id="http-liveness", rules=["PROBE-068", "PROBE-034"], needs=[STATUS, REACHED])
async def a_server_error_restarts_the_container(node: Node) -> None:
    """Status 500 is a failure of a liveness probe, status 204 a success."""
    port = (serves(8080, status=204), serves(8080, status=500, from_s=3))
    probe = http_probe(8080, probe={"failure_threshold": 2})
    main = container("main", runs(*port), probes={"liveness": probe})
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + 3 + 2 * RUN_S + limits.NOTICE_S,
        what="a second start",
    )
    first = node.times_s("StartContainer", container="main")[0]
    stop = node.times_s("StopContainer", container="main")[0]
    expect(node, stop - first >= 3.5, "the stop after 3.5 s or later", f"{stop - first:.2f} s")


@conformance(id="http-message", rules=["PROBE-068.3", "PROBE-081"], needs=[API, REACHED])
async def a_failed_http_probe_names_the_status(node: Node) -> None:
    """The event about a failed HTTP probe has the status code and not the body."""
    main = container(
        "main",
        runs().also(serves(8080, status=400)),
        probes={"readiness": http_probe(8080)},
    )
    await node.api.create_pod(pod("web", main))
    await says(node, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 400")


@conformance(
    id="http-request",
    rules=["PROBE-066.1", "PROBE-066.3", "PROBE-066.5", "PROBE-067.1"],
    needs=[STATUS, REACHED, SERVERS],
)
async def an_http_probe_sends_its_own_headers(node: Node) -> None:
    """An HTTP probe is a GET of the path with its query, with User-Agent kube-probe/..., Accept
    */*, and without compression."""
    main = container(
        "main",
        runs().also(serves(8080)),
        probes={"readiness": http_probe(8080, "/health?full=1")},
    )
    await node.apply_static(pod("web", main))
    await becomes_ready(node)
    visit = node.runtime.visits("web")[0]
    expect_equal(node, visit.path, "/health?full=1", "path of the request")
    expect_equal(node, visit.header("Accept"), ["*/*"], "Accept")
    expect_equal(node, visit.header("Accept-Encoding"), [], "Accept-Encoding")
    expect_equal(node, visit.header("Connection"), ["close"], "Connection")
    expect_equal(node, visit.header("Host"), [f"{pod_ip(node, 'web')}:8080"], "Host")
    agent = visit.header("User-Agent")
    expect(node, len(agent) == 1 and agent[0].startswith("kube-probe/"), "kube-probe/...", agent)


@conformance(id="http-headers", rules=["PROBE-067"], needs=[STATUS, REACHED, SERVERS])
async def headers_of_the_manifest_replace_those_of_the_kubelet(node: Node) -> None:
    """All headers of the manifest are sent, Host replaces the host, and an empty value removes a
    header."""
    headers = [
        {"name": "Host", "value": "shop.example"},
        {"name": "X-Tag", "value": "1"},
        {"name": "X-Tag", "value": "2"},
        {"name": "User-Agent", "value": ""},
        {"name": "Accept", "value": ""},
    ]
    main = container(
        "main",
        runs().also(serves(8080)),
        probes={"readiness": http_probe(8080, httpHeaders=headers)},
    )
    await node.apply_static(pod("web", main))
    await becomes_ready(node)
    visit = node.runtime.visits("web")[0]
    expect_equal(node, visit.header("Host"), ["shop.example"], "Host")
    expect_equal(node, visit.header("X-Tag"), ["1", "2"], "X-Tag")
    expect_equal(node, visit.header("User-Agent"), [], "User-Agent")
    expect_equal(node, visit.header("Accept"), [], "Accept")


@conformance(id="http-redirect", rules=["PROBE-069", "PROBE-067"], needs=[STATUS, REACHED, SERVERS])
async def a_redirect_on_the_same_host_is_followed(node: Node) -> None:
    """A redirect to the same host is followed and the answer there counts; a Host header of the
    manifest is sent again."""
    headers = [{"name": "Host", "value": "shop.example"}]
    there = redirects(8080, (("/start", "/middle"), ("/middle", "/end")))
    main = container(
        "main",
        runs(serves(8080, status=503), *there),
        probes={"readiness": http_probe(8080, "/start", httpHeaders=headers)},
    )
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: len(node.runtime.visits("web")) >= 3,
        within_s=limits.START_S + RUN_S,
        what="three requests",
    )
    first = node.runtime.visits("web")[:3]
    expect_equal(node, [v.path for v in first], ["/start", "/middle", "/end"], "requested paths")
    expect_equal(node, [v.header("Host") for v in first], [["shop.example"]] * 3, "Host")
    expect(node, not ready(node), "a container that is not ready: the last answer was 503")


@conformance(
    id="http-redirect-kinds", rules=["PROBE-069.1", "PROBE-068.2"], needs=[STATUS, REACHED]
)
async def some_answers_below_400_are_followed_and_others_are_final(node: Node) -> None:
    """A 308 is followed, and the answer there counts; a 304 is final although it has a Location,
    and final answers of this kind are successes."""
    chain = (("/start", "/end"),)
    moved = (serves(8080, status=503), *redirects(8080, chain, 308))
    final = (serves(8081, status=503), *redirects(8081, chain, 304))
    web = pod(
        "web",
        container("moved", runs(*moved), probes={"readiness": http_probe(8080, "/start")}),
        container("kept", runs(*final), probes={"readiness": http_probe(8081, "/start")}),
    )
    await node.apply_static(web)
    await node.run_until(
        lambda: ready(node, name="kept"), within_s=limits.START_S + RUN_S, what="kept is ready"
    )
    await node.run_for(2 * RUN_S)
    expect(node, not ready(node, name="moved"), "moved is not ready: it was sent to a 503")


@conformance(
    id="http-redirect-absolute", rules=["PROBE-067", "PROBE-069"], needs=[STATUS, REACHED, SERVERS]
)
async def an_absolute_redirect_sets_the_host_anew(node: Node) -> None:
    """A redirect to another port of the same host is followed, but without the Host header of the
    manifest."""
    headers = [{"name": "Host", "value": "shop.example"}, {"name": "X-Tag", "value": "1"}]
    away = redirects(8080, [("/start", "http://{ip}:8081/end")])
    work = runs(serves(8080, status=503), *away, serves(8081))
    probe = http_probe(8080, "/start", httpHeaders=headers)
    await node.apply_static(pod("web", container("main", work, probes={"readiness": probe})))
    await becomes_ready(node)
    first, second = node.runtime.visits("web")[:2]
    expect_equal(node, (first.port, second.port), (8080, 8081), "ports of the requests")
    expect_equal(node, first.header("Host"), ["shop.example"], "Host of the first")
    expect_equal(node, second.header("Host"), [f"{pod_ip(node, 'web')}:8081"], "Host of the second")
    expect_equal(node, second.header("X-Tag"), ["1"], "X-Tag of the second")
    referer = [f"http://{pod_ip(node, 'web')}:8080/start"]
    expect_equal(node, second.header("Referer"), referer, "Referer of the second")


@conformance(id="http-redirect-away", rules=["PROBE-069", "PROBE-068"], needs=[API, REACHED])
async def a_redirect_to_another_host_is_a_warning(node: Node) -> None:
    """A redirect to another host is not followed: the probe succeeds, with an event
    ProbeWarning."""
    port = (serves(8080, status=500), *redirects(8080, [("/away", "http://192.0.2.99/")]))
    main = container("main", runs(*port), probes={"readiness": http_probe(8080, "/away")})
    await node.api.create_pod(pod("web", main))
    await becomes_ready(node)
    text = "Readiness probe warning: Probe terminated redirects, Response body: "
    await says(node, "ProbeWarning", text)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(
    id="http-body-lost",
    rules=["PROBE-070", "PROBE-018"],
    level=Level.SHOULD,
    needs=[API, REACHED],
    since="1.33",
)
async def a_body_that_breaks_off_is_an_error_and_no_failure(node: Node) -> None:
    """An answer whose body breaks off is an error of the probe, which is neither success nor
    failure, whatever its status."""
    main = container(
        "main",
        runs().also(serves(8080, status=500, lost_bytes=9)),
        probes={"liveness": http_probe(8080)},
    )
    await node.api.create_pod(pod("web", main))
    text = "Liveness probe errored and resulted in failure state: unexpected EOF"
    await says(node, "Unhealthy", text)
    await node.run_for(3 * RUN_S)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="http-redirect-loop", rules=["PROBE-069"], needs=[API, REACHED])
async def redirects_end_after_ten_requests(node: Node) -> None:
    """A redirect that leads to itself fails the probe."""
    port = (serves(8080), *redirects(8080, [("/loop", "/loop")]))
    main = container("main", runs(*port), probes={"readiness": http_probe(8080, "/loop")})
    await node.api.create_pod(pod("web", main))
    text = 'Readiness probe failed: Get "/loop": stopped after 10 redirects'
    await says(node, "Unhealthy", text)


@conformance(
    id="https-unverified", rules=["PROBE-066.1", "PROBE-066.5"], needs=[STATUS, REACHED, SERVERS]
)
async def an_https_probe_takes_any_certificate(node: Node) -> None:
    """The certificate of an HTTPS probe is not verified."""
    main = container(
        "main",
        runs().also(serves(8443, "https")),
        probes={"readiness": http_probe(8443, scheme="HTTPS")},
    )
    await node.apply_static(pod("web", main))
    await becomes_ready(node)


@conformance(id="http-refused", rules=["PROBE-068", "PROBE-081"], needs=[API, REACHED])
async def a_closed_port_is_a_failure(node: Node) -> None:
    """A refused connection is a failure of the probe; the event has the client's words."""
    main = container("main", probes={"readiness": http_probe(8080, "/x")})
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    ip = pod_ip(node, "web")
    text = f'Get "http://{ip}:8080/x": dial tcp {ip}:8080: connect: connection refused'
    await says(node, "Unhealthy", f"Readiness probe failed: {text}")


@conformance(id="http-timeout", rules=["PROBE-066", "PROBE-068"], needs=[API, REACHED])
async def a_slow_answer_is_a_failure(node: Node) -> None:
    """An answer that takes longer than timeoutSeconds is a failure."""
    main = container(
        "main",
        runs().also(serves(8080, delay_s=4)),
        probes={"readiness": http_probe(8080, "/x", probe={"timeout_s": 1})},
    )
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    url = f"http://{pod_ip(node, 'web')}:8080/x"
    text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    await says(node, "Unhealthy", f'Readiness probe failed: Get "{url}": {text}')


@conformance(
    id="http-timeout-given",
    rules=["PROBE-066.6", "PROBE-072.3", "PROBE-003.1"],
    needs=[STATUS, REACHED, SERVERS],
)
async def a_slow_answer_within_the_timeout_is_a_success(node: Node) -> None:
    """With a timeoutSeconds of seven an answer after two seconds is in time, of HTTP as of gRPC."""
    slow = runs().also(serves(8080, delay_s=2)).also(serves(9090, "grpc", delay_s=2))
    probes = {
        "startup": grpc_probe(9090, timeout_s=7),
        "readiness": http_probe(8080, "/x", probe={"timeout_s": 7}),
    }
    await node.apply_static(pod("web", container("main", slow, probes=probes)))
    await becomes_ready(node, after_s=2 * (2 + RUN_S))
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(
    id="http-timeout-in-all", rules=["PROBE-066.6", "PROBE-069.2"], needs=[STATUS, REACHED]
)
async def redirects_share_one_timeout(node: Node) -> None:
    """The timeout is that of the whole exchange: four slow answers in a row are too late, though
    each of them is in time."""
    chain = (("/a", "/b"), ("/b", "/c"), ("/c", "/d"))
    work = runs(serves(8080, delay_s=2), *redirects(8080, chain, delay_s=2))
    probe = http_probe(8080, "/a", probe={"timeout_s": 5})
    await node.apply_static(pod("web", container("main", work, probes={"readiness": probe})))
    await node.wait_running("web")
    await node.run_for(4 * 2 + 2 * RUN_S)
    expect(node, not ready(node), "a container that is not ready")


@conformance(id="probe-other-host", rules=["PROBE-066.2", "PROBE-071.1"], needs=[STATUS, REACHED])
async def the_host_of_the_manifest_is_asked(node: Node) -> None:
    """HTTP and TCP probes go to the host of the manifest, not to the pod."""
    await node.apply_static(pod("db", container("main", runs().also(serves(8080)))))
    await node.wait_running("db")
    host = pod_ip(node, "db")
    probes = {"startup": tcp_probe(8080), "readiness": http_probe(8080)}
    fields: dict[str, Any] = {
        f"{kind}Probe": probe.manifest(kind) for kind, probe in probes.items()
    }
    fields["startupProbe"]["tcpSocket"]["host"] = host
    fields["readinessProbe"]["httpGet"]["host"] = host
    await node.apply_static(pod("web", container("main", **fields)))
    await becomes_ready(node, after_s=RUN_S)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(
    id="http-odd-host",
    rules=["PROBE-066.4", "PROBE-018", "PROBE-081.2"],
    needs=[API],
    since="1.33",
)
async def a_host_that_makes_no_url_is_an_error_and_no_failure(node: Node) -> None:
    """A liveness probe over HTTP whose host makes no valid URL (`a b`) never gets a result."""
    action = {"httpGet": {"port": 8080, "host": "a b", "path": "/x"}, "periodSeconds": 1}
    main = container("main", livenessProbe={**action, "failureThreshold": 1})
    await node.apply_static(pod("web", main))
    text = 'parse "http://a%20b:8080/x": invalid URL escape "%20"'
    await says(node, "Unhealthy", f"Liveness probe errored and resulted in unknown state: {text}")
    await node.run_for(3)
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts")


@conformance(id="http-odd-name", rules=["PROBE-066.4", "PROBE-034.1"], needs=[API])
async def a_host_that_can_be_no_name_is_a_failure(node: Node) -> None:
    """A liveness probe over HTTP whose host is a label between dots that is empty (`a..b`) fails,
    and the container is restarted."""
    action = {"httpGet": {"port": 8080, "host": "a..b", "path": "/x"}, "periodSeconds": 1}
    main = container("main", livenessProbe={**action, "failureThreshold": 1})
    await node.api.create_pod(pod("web", main))
    text = 'Get "http://a..b:8080/x": dial tcp: lookup a..b: no such host'
    await says(node, "Unhealthy", f"Liveness probe failed: {text}")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") >= 2,
        within_s=limits.START_S + 2 * RUN_S + limits.NOTICE_S,
        what="a second start",
    )


@conformance(id="http-odd-header", rules=["PROBE-067.5"], needs=[API, REACHED])
async def a_header_with_a_line_end_fails_the_run(node: Node) -> None:
    """A header whose value has a control character is not sent: each run fails, though a server
    that answers is there."""
    headers = [{"name": "X-Tag", "value": "a\nX-Other: b"}]
    probe = http_probe(8080, "/x", httpHeaders=headers)
    main = container("main", runs().also(serves(8080)), probes={"readiness": probe})
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    url = f"http://{pod_ip(node, 'web')}:8080/x"
    text = f'Get "{url}": net/http: invalid header field value for "X-Tag"'
    await says(node, "Unhealthy", f"Readiness probe failed: {text}")
    await node.run_for(2 * RUN_S)
    expect(node, not ready(node), "main is not ready")


@conformance(
    id="http-codes", rules=["PROBE-068.1", "PROBE-068.3", "PROBE-011.1"], needs=[STATUS, REACHED]
)
async def codes_below_400_are_successes(node: Node) -> None:
    """Every status from 200 to 399 makes a container ready, and none from 400 on, in probes of
    every type: with 400 a liveness probe kills, and a startup probe never succeeds."""
    codes = {"c200": 200, "c299": 299, "c399": 399, "c400": 400, "c404": 404, "c503": 503}
    main = [
        container(
            name,
            runs().also(serves(8080 + at, status=code)),
            probes={"readiness": http_probe(8080 + at)},
        )
        for at, (name, code) in enumerate(codes.items())
    ]
    living = container(
        "living",
        runs().also(serves(9080, status=400)),
        probes={"liveness": http_probe(9080)},
    )
    starting = container(
        "starting",
        runs().also(serves(9081, status=400)),
        probes={"startup": http_probe(9081, probe={"failure_threshold": 1000})},
    )
    await node.apply_static(pod("web", *main, living, starting, grace_s=1))
    await node.run_until(
        lambda: (
            all(node.container("web", name).get("ready") for name in ("c200", "c299", "c399"))
            and node.count("StopContainer", container="living")
        ),
        within_s=limits.START_S + 4 * RUN_S + limits.NOTICE_S,
        what="the first three are ready, living is killed",
    )
    await node.run_for(2 * RUN_S)
    readiness = {name: node.container("web", name).get("ready") for name in codes}
    expect_equal(node, readiness, {name: code < 400 for name, code in codes.items()}, "ready")
    expect_equal(node, node.container("web", "starting").get("started"), False, "started")
