"""Lifecycle hooks other than exec, and what the end of a hook means for the rest of the pod."""

from typing import Any

from fakecri import serves
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, hook, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import ignores_term, runs
from kubelet_conformance.registry import Feature, conformance

STATUS = Feature.STATUS
PORT = 8080


def sleeping(seconds: int) -> dict[str, object]:
    """A lifecycle whose preStop hook sleeps."""
    return {"preStop": {"sleep": {"seconds": seconds}}}


@conformance(id="prestop-sleep", rules=["LIFE-143"], needs=[STATUS])
async def a_sleep_hook_uses_up_its_seconds_of_the_grace(node: Node) -> None:
    """A preStop hook that sleeps runs no program in the container, and its seconds are taken from
    the grace period."""
    await node.apply_static(pod("web", container("main", lifecycle=sleeping(3)), grace_s=9))
    await node.wait_running("web")
    since = node.now_s
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=3 + limits.STOP_S
    )
    (stop,) = node.calls("StopContainer", container="main")
    expect(node, node.time_s(stop) - since >= 3.0, "StopContainer after 3 s", node.time_s(stop))
    expect_equal(node, stop.request.timeout, 6, "timeout of StopContainer")
    expect_equal(node, node.count("ExecSync", container="main"), 0, "commands run")


@conformance(id="prestop-before-kill", rules=["LIFE-143", "LIFE-115"], needs=[Feature.API])
async def a_prestop_hook_runs_for_a_single_container_too(node: Node) -> None:
    """The preStop hook also runs before StopContainer when only the container is replaced, not the
    pod."""
    web = container("main", hooks={"preStop": hook(takes_s=1)})
    await node.api.create_pod(pod("web", web, container("other"), grace_s=5))
    await node.run_until(
        lambda: node.count("StartContainer", container="other"), within_s=limits.START_S
    )
    await node.run_for(limits.NOTICE_S)
    spec = (node.api.pod("web") or {})["spec"]["containers"]
    changed = [{**c, "image": "localhost/busybox:2"} if c["name"] == "main" else c for c in spec]
    await node.api.patch_pod("web", {"spec": {"containers": changed}})
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=1 + limits.NOTICE_S + limits.STOP_S,
        what="main starts again",
    )
    (run,) = node.calls("ExecSync", container="main")
    (stop,) = node.calls("StopContainer", container="main")
    expect(node, node.ended_s(run) <= node.time_s(stop), "the hook ends before StopContainer")
    expect_equal(node, stop.request.timeout, 4, "timeout of StopContainer")
    expect_equal(node, node.count("StopContainer", container="other"), 0, "stops of other")


@conformance(id="poststart-retried", rules=["LIFE-142", "BACK-001"], needs=[STATUS])
async def a_container_whose_poststart_hook_fails_is_started_again(node: Node) -> None:
    """A container whose postStart hook fails is stopped, with its preStop hook and the pod's grace
    period, and started again."""
    hooks = {
        "postStart": hook(exit_code=1, name="first"),
        "preStop": hook(takes_s=1, name="last"),
    }
    await node.apply_static(pod("web", container("main", hooks=hooks), grace_s=5))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="a second start of main",
    )
    stop = node.calls("StopContainer", container="main")[0]
    expect_equal(node, stop.request.timeout, 4, "timeout: the grace less the preStop hook")
    scripts = [call.request.cmd[-1].rpartition("# ")[2] for call in node.calls("ExecSync")[:2]]
    expect_equal(node, scripts, ["first", "last"], "hooks in order")


@conformance(id="hook-http", rules=["LIFE-142"], needs=[STATUS, Feature.POD_SERVERS])
async def an_http_hook_calls_the_pod_and_takes_any_answer(node: Node) -> None:
    """A postStart hook over HTTP is sent to the pod's address, and every answer, also status 500,
    is a success."""
    action = {"port": PORT, "path": "/started", "httpHeaders": [{"name": "X-Hook", "value": "1"}]}
    main = container(
        "main",
        runs().also(serves(PORT, status=500)),
        lifecycle={"postStart": {"httpGet": action}},
    )
    await node.apply_static(pod("web", main))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    visits = node.runtime.visits("web")
    expect_equal(node, len(visits), 1, "connections to the container")
    expect_equal(node, visits[0].path, "/started", "path")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


async def stops_for(node: Node, action: dict[str, Any]) -> None:
    """Expect that a container with that postStart hook is stopped because of it."""
    main = container("main", lifecycle={"postStart": action})
    await node.apply_static(pod("job", main, restartPolicy="Never"))
    await node.run_until(
        lambda: node.phase("job") in ("Failed", "Succeeded"),
        within_s=limits.START_S + limits.STOP_S + limits.NOTICE_S,
        what="the end of the pod",
    )
    expect_equal(node, node.count("StopContainer", container="main"), 1, "stops")


@conformance(id="hook-http-refused", rules=["LIFE-142"], needs=[STATUS, Feature.POD_NETWORK])
async def an_http_hook_to_a_closed_port_fails(node: Node) -> None:
    """A postStart hook over HTTP to a closed port stops the container like any failed hook."""
    await stops_for(node, {"httpGet": {"port": 9}})


@conformance(id="hook-tcp-never-runs", rules=["LIFE-143"], needs=[STATUS])
async def a_tcp_hook_is_refused_and_delays_no_stop(node: Node) -> None:
    """A preStop hook with tcpSocket is not carried out: StopContainer follows at once, with the
    full grace period."""
    main = container("main", lifecycle={"preStop": {"tcpSocket": {"port": PORT}}})
    await node.apply_static(pod("web", main, grace_s=6))
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=limits.STOP_S
    )
    (stop,) = node.calls("StopContainer", container="main")
    expect_equal(node, stop.request.timeout, 6, "timeout of StopContainer")


@conformance(
    id="hook-http-fallback", rules=["LIFE-142.5"], needs=[Feature.API, Feature.POD_SERVERS]
)
async def a_hook_that_is_asked_again_without_tls_sends_no_credentials(node: Node) -> None:
    """A hook over HTTPS that is answered in plain HTTP is sent again without TLS and without the
    header Authorization; the hook has succeeded."""
    headers = [{"name": name, "value": "1"} for name in ("Authorization", "X-Other")]
    action = {"port": PORT, "scheme": "HTTPS", "path": "/up", "httpHeaders": headers}
    main = container(
        "main", runs().also(serves(PORT)), lifecycle={"postStart": {"httpGet": action}}
    )
    await node.api.create_pod(pod("web", main))
    await node.run_until(
        lambda: node.runtime.visits("web"), within_s=limits.START_S, what="a request in plain HTTP"
    )
    await node.run_for(limits.NOTICE_S)
    visits = [visit for visit in node.runtime.visits("web") if visit.path == "/up"]
    expect_equal(node, len(visits), 1, "requests in plain HTTP")
    headers_sent = (visits[0].header("Authorization"), visits[0].header("X-Other"))
    expect_equal(node, headers_sent, ([], ["1"]), "headers Authorization and X-Other")
    fallback_events = node.events("LifecycleHTTPFallback", pod="web")
    expect_equal(node, fallback_events, [], "events, which upstream's recorder drops")
    expect_equal(node, node.events("FailedPostStartHook", pod="web"), [], "failed hooks")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(id="poststart-tcp", rules=["LIFE-142.6"], needs=[STATUS])
async def a_tcp_hook_after_the_start_is_a_failed_hook(node: Node) -> None:
    """A postStart hook with tcpSocket stops the container like any failed hook."""
    await stops_for(node, {"tcpSocket": {"port": PORT}})


@conformance(id="prestop-odd-host", rules=["LIFE-143", "PROBE-066"], needs=[Feature.API])
async def a_prestop_hook_whose_host_makes_no_url_delays_no_stop(node: Node) -> None:
    """A preStop hook over HTTP whose host makes no valid URL (`127.0.0.1:99`) fails at once:
    StopContainer follows, with the full grace period."""
    action = {"httpGet": {"port": PORT, "host": "127.0.0.1:99"}}
    main = container("main", lifecycle={"preStop": action})
    await node.api.create_pod(pod("web", main, grace_s=6))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
    )
    await node.run_for(limits.NOTICE_S)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=limits.STOP_S
    )
    (stop,) = node.calls("StopContainer", container="main")
    expect_equal(node, stop.request.timeout, 6, "timeout of StopContainer")
    await node.run_until(
        lambda: node.event_count("FailedPreStopHook"), within_s=limits.NOTICE_S, what="the event"
    )


@conformance(id="poststart-odd-host", rules=["LIFE-142", "PROBE-066"], needs=[STATUS])
async def a_hook_whose_host_makes_no_url_is_a_failed_hook(node: Node) -> None:
    """A postStart hook over HTTP whose host makes no valid URL stops the container like any failed
    hook."""
    await stops_for(node, {"httpGet": {"port": PORT, "host": "127.0.0.1:99"}})


@conformance(id="prestop-goes-on", rules=["LIFE-143"], needs=[STATUS])
async def a_hook_that_outlasts_the_grace_is_not_given_up(node: Node) -> None:
    """When the grace period is over the container is stopped; the call of its preStop hook is not
    cancelled and ends by itself."""
    hooks = {"preStop": hook(takes_s=8)}
    await node.apply_static(pod("web", container("main", ignores_term(), hooks=hooks), grace_s=3))
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=3 + limits.STOP_S
    )
    await node.run_for(1)
    (stop,) = node.calls("StopContainer", container="main")
    expect_equal(node, stop.request.timeout, 2, "timeout of StopContainer")
    runs_of_hook = node.calls("ExecSync", container="main")
    expect_equal(node, len(runs_of_hook), 1, "runs of the hook")
    expect(node, (runs_of_hook[0].error or ("",))[0] != "CANCELLED", "not cancelled", runs_of_hook)
