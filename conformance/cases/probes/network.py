"""HTTP, TCP and gRPC probes: what they ask, and what the answers mean."""

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import container, grpc_probe, http_probe, pod, tcp_probe
from conformance.harness.node import Node
from conformance.harness.workload import Port, runs
from conformance.registry import Feature, Level, conformance

STATUS, API = Feature.STATUS, Feature.API
REACHED, SERVERS = Feature.POD_NETWORK, Feature.POD_SERVERS
RUN_S = 2.0  # a period of one second, and what a run takes


def pod_ip(node: Node, pod: str) -> str:
    return str(((node.pod(pod) or {}).get("status") or {}).get("podIP", ""))


def ready(node: Node, pod: str = "web", name: str = "main") -> bool:
    return node.container(pod, name).get("ready") is True


async def becomes_ready(node: Node, *, after_s: float = 0.0) -> None:
    await node.run_until(
        lambda: ready(node), within_s=limits.START_S + after_s + RUN_S, what="the container ready"
    )


async def says(node: Node, reason: str, wanted: str) -> None:
    """Expect an event with that reason and exactly that message about the container.

    It need not be the first one: a real container takes a moment until it listens.
    """
    await node.run_until(
        lambda: wanted in [event["message"] for event in node.events(reason, pod="web")],
        within_s=limits.START_S + 3 * RUN_S,
        what=f"an event {reason}: {wanted}",
    )
    event = next(e for e in node.events(reason, pod="web") if e["message"] == wanted)
    expect_equal(node, event["type"], "Warning", "type")
    path = event["involvedObject"].get("fieldPath")
    expect_equal(node, path, "spec.containers{main}", "fieldPath")


@conformance(id="http-liveness", rules=["PROBE-068", "PROBE-034"], needs=[STATUS, REACHED])
async def a_server_error_restarts_the_container(node: Node) -> None:
    """Status 500 is a failure of a liveness probe, status 204 a success."""
    port = Port(8080, status=204, then_s=3, then_status=500)
    probe = http_probe(8080, probe={"failure_threshold": 2})
    main = container("main", runs().with_port(port), probes={"liveness": probe})
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + 3 + 2 * RUN_S + limits.NOTICE_S,
        what="a second start",
    )
    first = node.times_s("StartContainer", container="main")[0]
    stop = node.times_s("StopContainer", container="main")[0]
    expect(node, stop - first >= 3.5, "not before the second 500", f"{stop - first:.2f} s")


@conformance(id="http-message", rules=["PROBE-068", "PROBE-081"], needs=[API, REACHED])
async def a_failed_http_probe_names_the_status(node: Node) -> None:
    """The event about a failed HTTP probe has the status code and not the body."""
    main = container(
        "main",
        runs().with_port(Port(8080, status=503)),
        probes={"readiness": http_probe(8080)},
    )
    await node.api.create_pod(pod("web", main))
    await says(node, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")


@conformance(id="http-request", rules=["PROBE-066", "PROBE-067"], needs=[STATUS, REACHED, SERVERS])
async def an_http_probe_sends_its_own_headers(node: Node) -> None:
    """An HTTP probe is a GET of the path with its query, with User-Agent kube-probe/..., Accept
    */*, and without compression."""
    main = container(
        "main",
        runs().with_port(Port(8080)),
        probes={"readiness": http_probe(8080, "/health?full=1")},
    )
    await node.apply_static(pod("web", main))
    await becomes_ready(node)
    visit = node.runtime.visits("web")[0]
    expect_equal(node, visit.path, "/health?full=1", "path")
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
        runs().with_port(Port(8080)),
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
    port = Port(8080, status=503, redirects=(("/start", "/middle"), ("/middle", "/end")))
    good = Port(8080, from_s=0)
    main = container(
        "main",
        runs().with_port(good).with_port(port),
        probes={"readiness": http_probe(8080, "/start", httpHeaders=headers)},
    )
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: len(node.runtime.visits("web")) >= 3,
        within_s=limits.START_S + RUN_S,
        what="three requests",
    )
    first = node.runtime.visits("web")[:3]
    expect_equal(node, [v.path for v in first], ["/start", "/middle", "/end"], "paths")
    expect_equal(node, [v.header("Host") for v in first], [["shop.example"]] * 3, "Host")
    expect(node, not ready(node), "503 behind the redirects: not ready")


@conformance(
    id="http-redirect-absolute", rules=["PROBE-067", "PROBE-069"], needs=[STATUS, REACHED, SERVERS]
)
async def an_absolute_redirect_sets_the_host_anew(node: Node) -> None:
    """A redirect to another port of the same host is followed, but without the Host header of the
    manifest."""
    headers = [{"name": "Host", "value": "shop.example"}, {"name": "X-Tag", "value": "1"}]
    away = Port(8080, status=503, redirects=(("/start", "http://{ip}:8081/end"),))
    work = runs().with_port(away).with_port(Port(8081))
    probe = http_probe(8080, "/start", httpHeaders=headers)
    await node.apply_static(pod("web", container("main", work, probes={"readiness": probe})))
    await becomes_ready(node)
    first, second = node.runtime.visits("web")[:2]
    expect_equal(node, (first.port, second.port), (8080, 8081), "ports")
    expect_equal(node, first.header("Host"), ["shop.example"], "Host of the first")
    expect_equal(node, second.header("Host"), [f"{pod_ip(node, 'web')}:8081"], "Host of the second")
    expect_equal(node, second.header("X-Tag"), ["1"], "X-Tag of the second")
    referer = [f"http://{pod_ip(node, 'web')}:8080/start"]
    expect_equal(node, second.header("Referer"), referer, "Referer of the second")


@conformance(id="http-redirect-away", rules=["PROBE-069", "PROBE-068"], needs=[API, REACHED])
async def a_redirect_to_another_host_is_a_warning(node: Node) -> None:
    """A redirect to another host is not followed: the probe succeeds, with an event
    ProbeWarning."""
    port = Port(8080, status=500, redirects=(("/away", "http://192.0.2.99/"),))
    main = container(
        "main", runs().with_port(port), probes={"readiness": http_probe(8080, "/away")}
    )
    await node.api.create_pod(pod("web", main))
    await becomes_ready(node)
    text = "Readiness probe warning: Probe terminated redirects, Response body: "
    await says(node, "ProbeWarning", text)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(
    id="http-body-lost", rules=["PROBE-070", "PROBE-018"], level=Level.SHOULD, needs=[API, REACHED]
)
async def a_body_that_breaks_off_is_an_error_and_no_failure(node: Node) -> None:
    """An answer whose body breaks off is an error of the probe, which is neither success nor
    failure, whatever its status."""
    main = container(
        "main",
        runs().with_port(Port(8080, status=500, lost_bytes=9)),
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
    port = Port(8080, redirects=(("/loop", "/loop"),))
    main = container(
        "main", runs().with_port(port), probes={"readiness": http_probe(8080, "/loop")}
    )
    await node.api.create_pod(pod("web", main))
    text = 'Readiness probe failed: Get "/loop": stopped after 10 redirects'
    await says(node, "Unhealthy", text)


@conformance(id="https-unverified", rules=["PROBE-066"], needs=[STATUS, REACHED, SERVERS])
async def an_https_probe_takes_any_certificate(node: Node) -> None:
    """The certificate of an HTTPS probe is not verified."""
    main = container(
        "main",
        runs().with_port(Port(8443, "https")),
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
        runs().with_port(Port(8080, delay_s=4)),
        probes={"readiness": http_probe(8080, "/x", probe={"timeout_s": 1})},
    )
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    url = f"http://{pod_ip(node, 'web')}:8080/x"
    text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    await says(node, "Unhealthy", f'Readiness probe failed: Get "{url}": {text}')


@conformance(
    id="http-timeout-given", rules=["PROBE-066", "PROBE-003"], needs=[STATUS, REACHED, SERVERS]
)
async def a_slow_answer_within_the_timeout_is_a_success(node: Node) -> None:
    """With a timeoutSeconds of seven an answer after two seconds is in time, of HTTP as of gRPC."""
    slow = runs().with_port(Port(8080, delay_s=2)).with_port(Port(9090, "grpc", delay_s=2))
    probes = {
        "startup": grpc_probe(9090, timeout_s=7),
        "readiness": http_probe(8080, "/x", probe={"timeout_s": 7}),
    }
    await node.apply_static(pod("web", container("main", slow, probes=probes)))
    await becomes_ready(node, after_s=2 * (2 + RUN_S))
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="probe-named-port", rules=["PROBE-061"], needs=[STATUS, REACHED])
async def a_port_is_found_by_its_name(node: Node) -> None:
    """A probe may name a port of its container."""
    main = container(
        "main",
        runs().with_port(Port(8080)),
        probes={"readiness": http_probe("web"), "liveness": tcp_probe("web")},
        ports=[{"name": "web", "containerPort": 8080}],
    )
    await node.apply_static(pod("web", main))
    await becomes_ready(node)
    await node.run_for(2 * RUN_S)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="probe-unknown-port", rules=["PROBE-061", "PROBE-018"], needs=[API, REACHED])
async def an_unknown_port_is_an_error_and_no_failure(node: Node) -> None:
    """A probe of a port name that the container does not have never gets a result."""
    main = container("main", runs().with_port(Port(8080)), probes={"liveness": tcp_probe("other")})
    await node.api.create_pod(pod("web", main))
    text = 'strconv.Atoi: parsing "other": invalid syntax'
    whole = f"Liveness probe errored and resulted in unknown state: {text}"
    await says(node, "Unhealthy", whole)
    await node.run_for(3 * RUN_S)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="tcp-readiness", rules=["PROBE-071", "PROBE-033"], needs=[STATUS, REACHED])
async def a_tcp_probe_succeeds_when_the_port_is_open(node: Node) -> None:
    """A TCP probe succeeds when the connection is accepted; until then the container is not
    ready."""
    port = Port(8080, "tcp", from_s=3, until_s=8)
    main = container("main", runs().with_port(port), probes={"readiness": tcp_probe(8080)})
    await node.apply_static(pod("web", main))
    await node.wait_running("web")
    await node.run_for(1.5)
    expect(node, not ready(node), "not ready before the port is open")
    await becomes_ready(node, after_s=3)
    await node.run_until(lambda: not ready(node), within_s=5 + RUN_S, what="not ready again")


@conformance(id="tcp-message", rules=["PROBE-071", "PROBE-081"], needs=[API, REACHED])
async def a_failed_tcp_probe_says_why(node: Node) -> None:
    """The event about a refused TCP probe has the error of the connection."""
    main = container("main", probes={"readiness": tcp_probe(8080)})
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    text = f"dial tcp {pod_ip(node, 'web')}:8080: connect: connection refused"
    await says(node, "Unhealthy", f"Readiness probe failed: {text}")


@conformance(id="tcp-odd-host", rules=["PROBE-071", "PROBE-034"], needs=[API])
async def a_tcp_probe_of_no_possible_name_fails(node: Node) -> None:
    """A liveness probe over TCP whose host can be no name (`a..b`) fails, and the container is
    restarted."""
    action = {"tcpSocket": {"port": 8080, "host": "a..b"}, "periodSeconds": 1}
    main = container("main", livenessProbe={**action, "failureThreshold": 1})
    await node.apply_static(pod("web", main))
    await says(node, "Unhealthy", "Liveness probe failed: dial tcp: lookup a..b: no such host")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") >= 2,
        within_s=limits.START_S + 3 * RUN_S + limits.NOTICE_S,
        what="a second start",
    )


@conformance(id="http-odd-host", rules=["PROBE-066", "PROBE-018"], needs=[API])
async def a_host_that_makes_no_url_is_an_error_and_no_failure(node: Node) -> None:
    """A liveness probe over HTTP whose host makes no valid URL (`a b`) never gets a result."""
    action = {"httpGet": {"port": 8080, "host": "a b", "path": "/x"}, "periodSeconds": 1}
    main = container("main", livenessProbe={**action, "failureThreshold": 1})
    await node.apply_static(pod("web", main))
    text = 'parse "http://a%20b:8080/x": invalid URL escape "%20"'
    await says(node, "Unhealthy", f"Liveness probe errored and resulted in unknown state: {text}")
    await node.run_for(3)
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts")


@conformance(id="grpc-serving", rules=["PROBE-072"], needs=[STATUS, REACHED, SERVERS])
async def a_grpc_probe_asks_the_health_service(node: Node) -> None:
    """A gRPC probe asks the health service about the named service, and SERVING is a success."""
    main = container(
        "main",
        runs().with_port(Port(9090, "grpc")),
        probes={"readiness": grpc_probe(9090, "db"), "liveness": grpc_probe(9090)},
    )
    await node.apply_static(pod("web", main))
    await becomes_ready(node)
    await node.run_for(2 * RUN_S)
    asked = {v.service for v in node.runtime.visits("web")}
    expect_equal(node, asked, {"db", ""}, "services asked for")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="grpc-not-serving", rules=["PROBE-073"], needs=[API, REACHED, SERVERS])
async def every_other_health_is_a_failure(node: Node) -> None:
    """NOT_SERVING is a failure of the probe, and the event says so."""
    port = Port(9090, "grpc", health="NOT_SERVING")
    main = container("main", runs().with_port(port), probes={"readiness": grpc_probe(9090)})
    await node.api.create_pod(pod("web", main))
    text = 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
    await says(node, "Unhealthy", text)


@conformance(id="grpc-refused", rules=["PROBE-073"], needs=[API, REACHED])
async def a_grpc_probe_waits_for_its_connection(node: Node) -> None:
    """A gRPC probe fails when no connection is accepted in time."""
    main = container("main", probes={"readiness": grpc_probe(9090, timeout_s=1)})
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    address = f"{pod_ip(node, 'web')}:9090"
    text = f'failed to connect service "{address}" within 1s: context deadline exceeded'
    await says(node, "Unhealthy", f"Readiness probe failed: timeout: {text}")


@conformance(id="grpc-slow", rules=["PROBE-073", "PROBE-072"], needs=[API, REACHED, SERVERS])
async def connection_and_call_share_the_time_limit(node: Node) -> None:
    """A health answer that comes later than timeoutSeconds is a failure."""
    port = Port(9090, "grpc", delay_s=4)
    main = container(
        "main", runs().with_port(port), probes={"readiness": grpc_probe(9090, timeout_s=1)}
    )
    await node.api.create_pod(pod("web", main))
    text = "Readiness probe failed: timeout: health rpc did not complete within 1s"
    await says(node, "Unhealthy", text)
