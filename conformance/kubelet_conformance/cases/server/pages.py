"""What the ports show, and what they do not."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, KnownBug, Level, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
DISABLED = (405, "Debug endpoints are disabled.\n")
DEBUG_PATHS = (
    *("/run/a/b/c", "/exec/a/b/c", "/attach/a/b/c", "/portForward/a/b", "/containerLogs/a/b/c"),
    *("/runningpods/", "/debug/pprof/", "/logs/"),
)


@conformance(id="server-pods", rules=["MIRR-035", "SRV-010.1"], needs=[STATUS], alone=True)
async def pods_are_a_list_of_v1(node: Node) -> None:
    """/pods is a PodList of v1 with the pods of the node."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    answer = await node.kubelet.get("/pods")
    expect_equal(node, answer.status, 200, "status of /pods")
    expect(node, answer.headers["content-type"].startswith("application/json"), "JSON", answer)
    value = answer.json()
    expect_equal(node, (value["kind"], value["apiVersion"]), ("PodList", "v1"), "kind")
    names = [item["metadata"]["name"] for item in value["items"]]
    expect_equal(node, names, [node.runtime.pod_name("web")], "names in /pods")


@conformance(id="server-running-pods", rules=["SRV-010.1"], needs=[STATUS], alone=True)
async def running_pods_have_the_containers_that_run(node: Node) -> None:
    """/runningpods/ has the containers that run, and none that has ended."""
    containers = (container("main"), container("done", exits(0)))
    await node.apply_static(pod("web", *containers, restartPolicy="OnFailure"))
    await node.run_until(
        lambda: "terminated" in node.container("web", "done").get("state", {}),
        within_s=limits.START_S + limits.STOP_S,
    )
    await node.wait_running("web", "main")
    items = (await node.kubelet.get("/runningpods/")).json()["items"]
    expect_equal(
        node, [i["metadata"]["name"] for i in items], [node.runtime.pod_name("web")], "pods"
    )
    names = [c["name"] for c in items[0]["spec"]["containers"]]
    expect_equal(node, names, ["main"], "containers of /runningpods/")


@conformance(id="server-healthz", rules=["SRV-002.2", "SRV-002.3"], needs=[STATUS])
async def health_tells_its_checks_when_asked(node: Node) -> None:
    """/healthz of the main port answers ok; verbose it names its checks, of which some may be
    left out."""
    for path in ("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop"):
        answer = await node.kubelet.get(path)
        expect_equal(node, (answer.status, answer.text), (200, "ok"), path)
    check_lines = (await node.kubelet.get("/healthz?verbose")).text.splitlines()
    for name in ("ping", "log", "syncloop"):
        expect(node, f"[+]{name} ok" in check_lines, f"check {name}", check_lines)
    expect_equal(node, check_lines[-1], "healthz check passed", "last line")
    check_lines = (await node.kubelet.get("/healthz?verbose&exclude=log")).text.splitlines()
    expect(node, "[+]log excluded: ok" in check_lines, "log is excluded", check_lines)


@conformance(id="server-healthz-port", rules=["SRV-002.1"], needs=[STATUS], alone=True)
async def the_healthz_port_has_health_only(node: Node) -> None:
    """The healthz port answers /healthz and /healthz/ping, and nothing else."""
    for path, expected_status in (("/healthz", 200), ("/healthz/ping", 200), ("/pods", 404)):
        answer = await node.kubelet.get(path, port="healthz")
        expect_equal(node, answer.status, expected_status, f"status of {path}")
    for path in ("/healthz/syncloop", "/metrics", "/configz", "/exec/a/b/c"):
        answer = await node.kubelet.get(path, port="healthz")
        expect_equal(node, answer.status, 404, f"status of {path}")


@conformance(
    id="server-configz",
    rules=["SRV-010.1"],
    needs=[STATUS],
    node_config={"maxPods": 77, "syncFrequency": "40s", "containerLogMaxSize": "20Mi"},
    bugs=[KnownBug("136044", "/configz has neither kind nor apiVersion", fixed="1.36")],
)
async def the_configuration_is_shown_with_its_defaults(node: Node) -> None:
    """/configz has the configuration as the file has it, with defaults."""
    config = (await node.kubelet.get("/configz")).json()["kubeletconfig"]
    expected = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "maxPods": 77,
        "syncFrequency": "40s",
        "containerLogMaxSize": "20Mi",
        "containerLogMaxFiles": 5,
        "runtimeRequestTimeout": "2m0s",
        "enableDebuggingHandlers": True,
    }
    fields = {name: config.get(name) for name in expected}
    expect_equal(node, fields, expected, "fields of /configz")
    expect_equal(node, config["authentication"]["webhook"]["enabled"], False, "webhook.enabled")


@conformance(
    id="server-resource-metrics", rules=["SRV-031.1", "SRV-031.2"], needs=[STATUS], alone=True
)
async def resources_are_shown_as_metrics(node: Node) -> None:
    """/metrics/resource has CPU and memory of node, pods and containers, and no error."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.EVICTION_CYCLE_S)
    lines = (await node.kubelet.get("/metrics/resource")).text.splitlines()
    where = f'pod="{node.runtime.pod_name("web")}"'
    names = {line.partition("{")[0].split(" ")[0] for line in lines if line[:1] != "#"}
    for name in (
        *("node_cpu_usage_seconds_total", "node_memory_working_set_bytes"),
        *("container_start_time_seconds", "container_memory_working_set_bytes"),
    ):
        expect(node, name in names, name, sorted(names))
    expect(node, any('container="main"' in x and where in x for x in lines), "labels", lines)
    errors = [line for line in lines if line.startswith("resource_scrape_error ")]
    expect_equal(node, [float(line.split()[1]) for line in errors], [0.0], "scrape errors")


@conformance(id="server-read-only", rules=["SRV-010.1"], needs=[STATUS], alone=True)
async def the_read_only_port_has_no_debug_handlers(node: Node) -> None:
    """The read-only port shows pods, and refuses what acts on them."""
    answer = await node.kubelet.get("/pods", port="read-only")
    expect_equal(node, answer.status, 200, "status of /pods")
    for path in DEBUG_PATHS:
        answer = await node.kubelet.get(path, port="read-only")
        expect_equal(node, (answer.status, answer.text), DISABLED, path)
    for path in ("/configz", "/checkpoint/a/b/c"):
        answer = await node.kubelet.get(path, port="read-only")
        expect_equal(node, answer.status, 404, f"status of {path}")


@conformance(
    id="server-no-debug",
    rules=["SRV-010.1"],
    needs=[STATUS],
    node_config={"enableDebuggingHandlers": False},
)
async def without_debug_handlers_the_main_port_has_none(node: Node) -> None:
    """With enableDebuggingHandlers false the main port refuses what the read-only port does."""
    for path in DEBUG_PATHS:
        answer = await node.kubelet.get(path)
        expect_equal(node, (answer.status, answer.text), DISABLED, path)
    expect_equal(node, (await node.kubelet.get("/configz")).status, 404, "status of /configz")
    expect_equal(node, (await node.kubelet.get("/pods")).status, 200, "status of /pods")


@conformance(
    id="server-single-switches",
    rules=["SRV-010.2"],
    needs=[STATUS],
    node_config={"enableSystemLogHandler": False, "enableProfilingHandler": False},
)
async def single_handlers_can_be_switched_off(node: Node) -> None:
    """Logs of the system and profiles are refused where they are switched off."""
    for path, words in (
        ("/logs/", "logs endpoint is disabled.\n"),
        ("/debug/pprof/heap", "profiling endpoint is disabled.\n"),
    ):
        answer = await node.kubelet.get(path)
        expect_equal(node, (answer.status, answer.text), (405, words), path)


@conformance(id="server-methods", rules=["SRV-010.1"], needs=[STATUS], alone=True)
async def methods_and_paths_that_are_none_are_told(node: Node) -> None:
    """A wrong method is 405, a path that is none 404."""
    for method, path, status, words in (
        ("POST", "/pods", 405, "405: Method Not Allowed"),
        ("GET", "/run/a/b/c", 405, "405: Method Not Allowed"),
        ("GET", "/checkpoint/a/b/c", 405, "405: Method Not Allowed"),
        ("GET", "/containerLogs/a/b", 404, "404: Page Not Found"),
        ("GET", "/nothing", 404, "404 page not found\n"),
    ):
        answer = await node.kubelet.http(method=method, path=path)
        expect_equal(node, (answer.status, answer.text), (status, words), f"{method} {path}")


@conformance(id="server-traversal", rules=["SRV-010.1"], needs=[STATUS], alone=True)
async def no_path_leads_out_of_the_logs(node: Node) -> None:
    """Whatever is written into the path of /logs/, no file outside of /var/log is shown."""
    expect_equal(node, (await node.kubelet.get("/logs/")).status, 200, "status of /logs/")
    for path in (
        "/logs/../../etc/passwd",
        "/logs/..%2f..%2fetc/passwd",
        "/logs/%2e%2e/%2e%2e/etc/passwd",
        "/logs/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/logs//etc/passwd",
        "/logs/%2fetc/passwd",
        "/logs/./../../etc/passwd",
        "/logs/%00/../../../etc/passwd",
    ):
        answer = await node.kubelet.get(path)
        expect(node, answer.status != 200, f"{path} is not shown", answer.status)
        expect(node, "root:" not in answer.text, f"nothing of /etc/passwd: {path}", answer.text)


@conformance(id="server-summary-short", rules=["SRV-030.2"], needs=[STATUS], alone=True)
async def the_short_summary_has_cpu_and_memory(node: Node) -> None:
    """With only_cpu_and_memory=true the summary has no disks."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.EVICTION_CYCLE_S)
    path = "/stats/summary"
    whole = (await node.kubelet.get(path)).json()["node"]
    short = (await node.kubelet.get(f"{path}?only_cpu_and_memory=true")).json()["node"]
    expect(node, "fs" in whole and "fs" not in short, "fs in the whole one only", sorted(short))
    expect(node, "memory" in short, "memory in the short one", sorted(short))
    other = (await node.kubelet.get(f"{path}?only_cpu_and_memory=1")).json()["node"]
    expect(node, "fs" in other, "another value than true means the whole one", sorted(other))


@conformance(
    id="server-odd-hosts", rules=["SRV-011.1"], level=Level.SHOULD, needs=[STATUS], alone=True
)
async def the_host_that_is_named_does_not_matter(node: Node) -> None:
    """Requests are answered whatever host they name."""
    for host in ("node", "elsewhere.example:1", "[::1]"):
        answer = await node.kubelet.get("/healthz", headers={"Host": host})
        expect_equal(node, (answer.status, answer.text), (200, "ok"), host)


@conformance(id="server-pods-as-told", rules=["MIRR-035"], needs=[Feature.API, STATUS], alone=True)
async def pods_of_the_api_server_have_its_status(node: Node) -> None:
    """While no status can be written, /pods shows a pod of the API server as that has it, and a
    static pod as the kubelet knows it."""
    with node.api.fails("PATCH", r"/pods/[^/]+/status$", status=500):
        await node.apply_static(pod("own"))
        await node.api.create_pod(pod("web"))
        await node.run_until(
            lambda: all(node.count("StartContainer", pod=name) for name in ("own", "web")),
            within_s=2 * limits.START_S,
            what="both start",
        )
        await node.run_for(limits.NOTICE_S)
        phases = {name: (node.pod(name) or {})["status"].get("phase") for name in ("own", "web")}
        expect_equal(node, phases, {"own": "Running", "web": "Pending"}, "phases in /pods")
    await node.run_until(
        lambda: (node.pod("web") or {})["status"].get("phase") == "Running",
        within_s=limits.STATUS_PASS_S + limits.NOTICE_S,
        what="web is Running in /pods",
    )
