"""Ports of probes, and TCP and gRPC probes: what they ask, and what the answers mean."""

from fakecri import serves
from kubelet_conformance.cases.probes.common import (
    RUN_S,
    becomes_ready,
    errors,
    pod_ip,
    ready,
    says,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, grpc_probe, http_probe, pod, tcp_probe
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance

STATUS, API = Feature.STATUS, Feature.API
REACHED, SERVERS = Feature.POD_NETWORK, Feature.POD_SERVERS


@conformance(id="probe-named-port", rules=["PROBE-061.1"], needs=[STATUS, REACHED])
async def a_port_is_found_by_its_name(node: Node) -> None:
    """A probe may name a port of its container, and means that one though another container has a
    port of the same name."""
    main = container(
        "main",
        runs().also(serves(8080)),
        probes={"readiness": http_probe("web"), "liveness": tcp_probe("web")},
        ports=[{"name": "web", "containerPort": 8080}],
    )
    other = container("another", ports=[{"name": "web", "containerPort": 9999}])
    await node.apply_static(pod("web", other, main))
    await becomes_ready(node)
    await node.run_for(2 * RUN_S)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="probe-unknown-port", rules=["PROBE-061", "PROBE-018"], needs=[API, REACHED])
async def an_unknown_port_is_an_error_and_no_failure(node: Node) -> None:
    """A probe of a port name that the container does not have never gets a result."""
    main = container("main", runs().also(serves(8080)), probes={"liveness": tcp_probe("other")})
    await node.api.create_pod(pod("web", main))
    text = 'strconv.Atoi: parsing "other": invalid syntax'
    await node.run_until(
        lambda: errors(node, text),
        within_s=limits.START_S + 3 * RUN_S,
        what=f"an event Liveness probe errored: {text}",
    )
    await node.run_for(3 * RUN_S)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="tcp-readiness", rules=["PROBE-071", "PROBE-033"], needs=[STATUS, REACHED])
async def a_tcp_probe_succeeds_when_the_port_is_open(node: Node) -> None:
    """A TCP probe succeeds when the connection is accepted; until then the container is not
    ready."""
    port = serves(8080, "tcp", from_s=3, until_s=8)
    main = container("main", runs().also(port), probes={"readiness": tcp_probe(8080)})
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


@conformance(
    id="grpc-serving",
    rules=["PROBE-072.1", "PROBE-072.2", "PROBE-072.5"],
    needs=[STATUS, REACHED, SERVERS],
)
async def a_grpc_probe_asks_the_health_service(node: Node) -> None:
    """A gRPC probe asks the health service about the named service, and SERVING is a success."""
    main = container(
        "main",
        runs().also(serves(9090, "grpc")),
        probes={"readiness": grpc_probe(9090, "db"), "liveness": grpc_probe(9090)},
    )
    await node.apply_static(pod("web", main))
    await becomes_ready(node)
    await node.run_for(2 * RUN_S)
    services = {v.service for v in node.runtime.visits("web")}
    expect_equal(node, services, {"db", ""}, "services asked for")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="grpc-not-serving", rules=["PROBE-073.1"], needs=[API, REACHED, SERVERS])
async def every_other_health_is_a_failure(node: Node) -> None:
    """NOT_SERVING and UNKNOWN are failures of the probe, and the events say so."""
    work = runs()
    for port, health in ((9090, "NOT_SERVING"), (9091, "UNKNOWN")):
        work = work.also(serves(port, "grpc", health=health))
    probes = {"readiness": grpc_probe(9090), "liveness": grpc_probe(9091, failure_threshold=9)}
    await node.api.create_pod(pod("web", container("main", work, probes=probes)))
    why = "probe failed: service unhealthy (responded with"
    await says(node, "Unhealthy", f'Readiness {why} "NOT_SERVING")')
    await says(node, "Unhealthy", f'Liveness {why} "UNKNOWN")')


@conformance(id="grpc-refused", rules=["PROBE-073.1", "PROBE-073.2"], needs=[API, REACHED])
async def a_grpc_probe_waits_for_its_connection(node: Node) -> None:
    """A gRPC probe fails when no connection is accepted in time."""
    main = container("main", probes={"readiness": grpc_probe(9090, timeout_s=1)})
    await node.api.create_pod(pod("web", main))
    await node.wait_running("web")
    address = f"{pod_ip(node, 'web')}:9090"
    text = f'failed to connect service "{address}" within 1s: context deadline exceeded'
    await says(node, "Unhealthy", f"Readiness probe failed: timeout: {text}")


@conformance(id="grpc-slow", rules=["PROBE-073.3", "PROBE-072.3"], needs=[API, REACHED, SERVERS])
async def connection_and_call_share_the_time_limit(node: Node) -> None:
    """A health answer that comes later than timeoutSeconds is a failure."""
    port = serves(9090, "grpc", delay_s=4)
    main = container("main", runs().also(port), probes={"readiness": grpc_probe(9090, timeout_s=1)})
    await node.api.create_pod(pod("web", main))
    text = "Readiness probe failed: timeout: health rpc did not complete within 1s"
    await says(node, "Unhealthy", text)


@conformance(id="grpc-no-such-service", rules=["PROBE-073.5"], needs=[API, REACHED, SERVERS])
async def a_service_that_the_server_does_not_know_is_a_failure(node: Node) -> None:
    """A gRPC probe that asks for a service which the server does not know fails with the error of
    the call; one that asks for a known one at the same port succeeds."""
    work = runs().also(serves(9090, "grpc", service="known"))
    probes = {
        "readiness": grpc_probe(9090, "other"),
        "liveness": grpc_probe(9090, "known"),
    }
    await node.api.create_pod(pod("web", container("main", work, probes=probes)))
    text = "error: health rpc probe failed: rpc error: code = NotFound desc = "
    await node.run_until(
        lambda: [
            event
            for event in node.events("Unhealthy", pod="web")
            if event["message"].startswith(f"Readiness probe failed: {text}")
        ],
        within_s=limits.START_S + 3 * RUN_S,
        what=f"an event Readiness probe failed: {text}...",
    )
    await node.run_for(2 * RUN_S)
    expect(node, not ready(node), "main is not ready")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")
