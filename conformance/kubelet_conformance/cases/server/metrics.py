"""What /metrics counts: calls, starts and ends, pulls, refusals, resizes, requests."""

from __future__ import annotations

from typing import Final

from kubelet_conformance.cases.images.seen import wait_running, wait_waiting
from kubelet_conformance.cases.server.scraped import (
    expect_at_least,
    expect_grown,
    expect_metric,
    metrics,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import MISSING_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, Level, conformance

API, STATUS, FAULTS, REGISTRY = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.REGISTRY
CALLS: Final = "kubelet_runtime_operations_total"
FAILED_CALLS: Final = "kubelet_runtime_operations_errors_total"
STARTED: Final = "kubelet_started_containers_total"
NOT_STARTED: Final = "kubelet_started_containers_errors_total"
ENSURED: Final = "kubelet_image_manager_ensure_image_requests_total"
COUNTERS: Final = (
    *("kubelet_started_pods_total", "kubelet_started_pods_errors_total"),
    *("kubelet_orphaned_runtime_pods_total", "kubelet_pleg_discard_events"),
    *("kubelet_lifecycle_handler_http_fallbacks_total", "kubelet_image_volume_requested_total"),
    *("kubelet_memory_manager_pinning_requests_total", "kubelet_cpu_manager_pinning_errors_total"),
    *("kubelet_topology_manager_admission_errors_total",),
    "kubelet_evented_pleg_connection_error_count",
)
LATER: Final = (
    *("kubelet_evictions", "kubelet_preemptions", STARTED, NOT_STARTED, ENSURED),
    *("kubelet_admission_rejections_total", "kubelet_terminated_containers_total"),
    "kubelet_image_pull_duration_seconds",
)


@conformance(
    id="metrics-at-first",
    rules=["SRV-036.1", "SRV-036.2"],
    needs=[STATUS],
    since="1.35",
    alone=True,
)
async def metrics_without_labels_are_there_from_the_start(node: Node) -> None:
    """Of a node without pods, counters without labels are 0, those with labels have no line, and
    pods are counted in all their states, though there are none."""
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    page = await metrics(node)
    for name in COUNTERS:
        expect_metric(node, page, 0, name)
        expect_equal(node, page.types.get(name), "counter", f"type of {name}")
    for name in LATER:
        expect_equal(node, (page.of(name), page.types.get(name)), ({}, None), f"lines of {name}")
    for static in ("", "true"):
        for name in ("desired_pods", "active_pods", "restarted_pods_total"):
            expect_metric(node, page, 0, f"kubelet_{name}", static=static)
    kinds = [(config, static) for config in ("desired", "orphan") for static in ("", "true")]
    for config, static in (*kinds, ("runtime_only", "unknown")):
        for lifecycle in ("sync", "terminating", "terminated"):
            expect_metric(
                node,
                page,
                0,
                "kubelet_working_pods",
                lifecycle=lifecycle,
                config=config,
                static=static,
            )
    expect_equal(node, len(page.of("kubelet_working_pods")), 15, "samples of working pods")
    expect_equal(node, list(page.of("kubelet_node_name").values()), [1.0], "kubelet_node_name")


@conformance(
    id="metrics-of-a-start",
    rules=["SRV-037.1", "SRV-037.2", "SRV-038.1", "SRV-038.4", "SRV-036.1"],
    level=Level.SHOULD,
    needs=[STATUS],
    alone=True,
)
async def a_start_is_counted_with_its_calls(node: Node) -> None:
    """A pod with an init container is counted once, with its containers by their kind, the calls
    of the runtime, and the steps of its worker."""
    first = container("first", exits(0))
    await node.apply_static(pod("web", container("main"), init=[first]))
    await node.wait_running("web")
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    page = await metrics(node)
    expect_metric(node, page, 1, "kubelet_started_pods_total")
    expect_metric(node, page, 0, "kubelet_started_pods_errors_total")
    expect_metric(node, page, 1, STARTED, container_type="container")
    expect_metric(node, page, 1, STARTED, container_type="init_container")
    expected_calls = {"run_podsandbox": 1, "create_container": 2, "start_container": 2}
    for call, number in expected_calls.items():
        expect_metric(node, page, number, CALLS, operation_type=call)
        duration = "kubelet_runtime_operations_duration_seconds_count"
        expect_metric(node, page, number, duration, operation_type=call)
        expect_equal(node, page.get(FAILED_CALLS, operation_type=call), None, f"failed {call}")
    expect_metric(
        node, page, 1, "kubelet_run_podsandbox_duration_seconds_count", runtime_handler=""
    )
    expect_at_least(node, page, 2, CALLS, operation_type="list_podsandbox")
    worker = "kubelet_pod_worker_duration_seconds_count"
    expect_metric(node, page, 1, worker, operation_type="create")
    expect_at_least(node, page, 1, worker, operation_type="sync")
    expect_metric(node, page, 1, "kubelet_pod_worker_start_duration_seconds_count")
    expect_metric(node, page, 1, "kubelet_containers_per_pod_count_sum")
    expect_at_least(node, page, 1, "kubelet_pod_start_duration_seconds_count")
    expect_metric(node, page, 1, "kubelet_running_pods")
    expect_metric(node, page, 1, "kubelet_running_containers", container_state="running")
    expect_metric(node, page, 1, "kubelet_desired_pods", static="true")
    expect_metric(
        node, page, 1, "kubelet_working_pods", lifecycle="sync", config="desired", static="true"
    )


@conformance(
    id="metrics-of-ends",
    rules=["SRV-038.2", "SRV-038.1"],
    level=Level.SHOULD,
    needs=[STATUS],
    since="1.36",
    alone=True,
)
async def each_end_is_counted_with_its_code(node: Node) -> None:
    """Each end of a container is counted once, by kind, exit code and reason, however often its
    status is shown; a start that is backed off is no start."""
    await node.apply_static(pod("job", container("main", exits(3)), restartPolicy="Never"))
    await node.apply_static(pod("loop", container("main", exits(4))))
    await node.run_until(
        lambda: node.container("loop", "main").get("restartCount", 0) >= 1,
        within_s=2 * limits.START_S + limits.NOTICE_S,
    )
    await node.run_for(limits.NOTICE_S)
    page = await metrics(node)
    ended = "kubelet_terminated_containers_total"
    labels = {"container_type": "container", "reason": "Error"}
    expect_metric(node, page, 1, ended, exit_code="3", **labels)
    expect_at_least(node, page, 1, ended, exit_code="4", **labels)
    starts = node.count("StartContainer")
    expect_metric(node, page, starts, STARTED, container_type="container")
    backed_off = page.get(NOT_STARTED, container_type="container", code="CrashLoopBackOff")
    expect_equal(node, backed_off, None, "starts that were backed off")


@conformance(
    id="metrics-of-failures",
    rules=["SRV-037.1", "SRV-037.2", "SRV-038.1"],
    level=Level.SHOULD,
    needs=[STATUS, FAULTS],
    alone=True,
)
async def what_the_runtime_refuses_is_counted_as_failed(node: Node) -> None:
    """A sandbox that cannot be made, and a container that cannot be started, are counted with the
    calls that failed."""
    node.runtime.on("RunPodSandbox").fails("UNKNOWN", "no network", times=1)
    node.runtime.on("StartContainer").fails("UNKNOWN", "no program", times=1)
    await node.apply_static(pod("web"))
    await node.run_until(
        lambda: node.running("web"), within_s=2 * limits.SYNC_ERROR_S + 2 * limits.START_S
    )
    page = await metrics(node)
    expect_metric(node, page, 1, "kubelet_started_pods_errors_total")
    expect_metric(node, page, 2, "kubelet_started_pods_total")
    expect_metric(node, page, 1, "kubelet_run_podsandbox_errors_total", runtime_handler="")
    code = "RunContainerError"
    expect_metric(node, page, 1, NOT_STARTED, container_type="container", code=code)
    for call in ("run_podsandbox", "start_container"):
        expect_metric(node, page, 1, FAILED_CALLS, operation_type=call)
        expect_metric(node, page, 2, CALLS, operation_type=call)


@conformance(
    id="metrics-of-a-stop",
    rules=["SRV-037.1"],
    level=Level.SHOULD,
    needs=[STATUS, FAULTS],
    alone=True,
)
async def what_is_gone_is_counted_as_a_failed_call(node: Node) -> None:
    """A call to stop a container that is not there any more has failed, though the stop has not."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.runtime.on("StopContainer").fails("NOT_FOUND", "it is gone", times=1)
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox") >= 1, within_s=limits.STOP_S + limits.NOTICE_S
    )
    await node.run_for(limits.NOTICE_S)
    page = await metrics(node)
    expect_metric(node, page, 1, FAILED_CALLS, operation_type="stop_container")
    failed = page.get(FAILED_CALLS, operation_type="stop_podsandbox")
    expect_equal(node, failed, None, "failed stops of sandboxes")


@conformance(
    id="metrics-of-pulls",
    rules=["SRV-039.1", "BACK-213", "SRV-037.1"],
    level=Level.SHOULD,
    needs=[API, STATUS, REGISTRY],
    since="1.35",
    alone=True,
)
async def pulls_are_counted_with_what_was_needed(node: Node) -> None:
    """A pull that succeeds is timed by the size of its image; what was needed and there is counted
    by policy, for a pull that fails, too."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    before = await metrics(node)
    await node.api.create_pod(pod("web", container("main", image=image)))
    await wait_running(node, "web")
    after = await metrics(node)
    size = "kubelet_image_pull_duration_seconds_count"
    timed = {labels: n for labels, n in after.of(size).items() if n}
    expect_equal(node, sum(timed.values()), 1, "pulls that were timed")
    expect_grown(
        node,
        before,
        after,
        1,
        ENSURED,
        pull_policy="ifnotpresent",
        present_locally="false",
        pull_required="true",
    )
    expect_grown(node, before, after, 1, CALLS, operation_type="pull_image")
    await node.api.create_pod(pod("none", container("main", image=MISSING_IMAGE)))
    await wait_waiting(node, "none", "ErrImagePull")
    again = await metrics(node)
    expect_grown(node, after, again, 1, FAILED_CALLS, operation_type="pull_image")
    expect_equal(node, sum(again.of(size).values()), 1, "pulls that were timed")
    code = "ErrImagePull"
    expect_metric(node, again, 1, NOT_STARTED, container_type="container", code=code)


@conformance(
    id="metrics-of-images-there",
    rules=["BACK-213", "SRV-039.1"],
    level=Level.SHOULD,
    needs=[STATUS],
    since="1.35",
    alone=True,
)
async def images_that_are_there_are_counted(node: Node) -> None:
    """An image that is there is counted as such, and that a pod may have it without a login."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    page = await metrics(node)
    expect_metric(
        node,
        page,
        1,
        ENSURED,
        pull_policy="ifnotpresent",
        present_locally="true",
        pull_required="false",
    )
    checks = "kubelet_imagemanager_image_mustpull_checks_total"
    expect_metric(node, page, 1, checks, result="credentialPolicyAllowed")
    expect_equal(node, page.of("kubelet_image_pull_duration_seconds_count"), {}, "pulls")
    expect_metric(node, page, 0, "kubelet_imagemanager_ondisk_pulledrecords")


@conformance(
    id="metrics-of-api-pods",
    rules=["SRV-038.3", "SRV-038.4", "SRV-037.3", "SRV-036.1"],
    level=Level.SHOULD,
    needs=[API, STATUS],
    alone=True,
)
async def starts_of_api_pods_are_timed_to_what_clients_see(node: Node) -> None:
    """A pod of the API server is timed from its creation to when the API server tells that it
    runs, once; the mirror of a static pod is such a pod. Requests and written statuses are
    counted."""
    await node.apply_static(pod("static"))
    await node.wait_running("static")
    await _is_changed(node, "static")
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    await _is_changed(node, "web")
    for name in ("static", "web"):
        await node.api.patch_pod(name, {"metadata": {"labels": {"changed": "again"}}})
    await node.run_for(limits.NOTICE_S)
    page = await metrics(node)
    expect_metric(node, page, 2, "kubelet_pod_start_total_duration_seconds_count")
    expect_metric(node, page, 2, "kubelet_pod_start_sli_duration_seconds_count")
    expect_at_least(node, page, 1, "kubelet_pod_status_sync_duration_seconds_count")
    counts = {
        (dict(labels)["code"], dict(labels)["method"]): number
        for labels, number in page.of("rest_client_requests_total").items()
    }
    for code, method in (("200", "GET"), ("200", "PATCH"), ("201", "POST")):
        expect(node, counts.get((code, method), 0) >= 1, f"{method} with {code}", counts)


async def _is_changed(node: Node, name: str) -> None:
    """Change a label when the pod has been told to run: only an update that comes after the kubelet
    has written the status ends the time of a start."""
    await node.run_for(limits.STATUS_PASS_S)
    await node.api.patch_pod(name, {"metadata": {"labels": {"changed": "later"}}})
    await node.run_for(limits.NOTICE_S)


@conformance(
    id="metrics-of-refusals",
    rules=["SRV-036.1", "LIFE-011"],
    level=Level.SHOULD,
    needs=[API, STATUS],
    alone=True,
)
async def refused_pods_are_counted_by_reason(node: Node) -> None:
    """A pod that the node refuses is counted, by the reason in its status."""
    await node.api.create_pod(pod("web", nodeSelector={"no": "such"}))
    await node.run_until(
        lambda: node.api.phase("web") == "Failed",
        within_s=limits.STATUS_PASS_S + limits.START_S,
    )
    page = await metrics(node)
    rejections = page.of("kubelet_admission_rejections_total")
    expect_equal(node, sum(rejections.values()), 1, f"refusals {rejections}")
    expect_equal(node, page.of(STARTED), {}, "containers that were started")


@conformance(
    id="metrics-of-requests",
    rules=["SRV-038.5"],
    level=Level.SHOULD,
    needs=[STATUS],
    alone=True,
)
async def requests_are_counted_by_their_paths(node: Node) -> None:
    """Requests are counted by the first part of their path, two below /metrics, others together."""
    for path in ("/pods", "/metrics/cadvisor", "/healthz/ping", "/no/such", "/wp-admin.php"):
        await node.kubelet.get(path)
    await node.kubelet.get("/pods", port="read-only")
    page = await metrics(node)
    requests = "kubelet_http_requests_total"
    of_main = {"method": "GET", "server_type": "readwrite", "long_running": "false"}
    expect_metric(node, page, 1, requests, path="metrics", **of_main)
    expect_metric(node, page, 1, requests, path="metrics/cadvisor", **of_main)
    expect_metric(node, page, 1, requests, path="healthz", **of_main)
    expect_metric(node, page, 2, requests, path="other", **of_main)
    expect_at_least(node, page, 1, requests, path="pods", **{**of_main, "server_type": "readonly"})
    expect_metric(node, page, 1, "kubelet_http_inflight_requests", path="metrics", **of_main)
    duration = "kubelet_http_requests_duration_seconds_count"
    expect_metric(node, page, 2, duration, path="other", **of_main)


@conformance(
    id="metrics-of-logs", rules=["SRV-039.2"], level=Level.SHOULD, needs=[STATUS], alone=True
)
async def the_logs_of_each_container_have_a_size(node: Node) -> None:
    """The bytes of the logs of a container that runs are shown, by container, pod and namespace."""
    await node.apply_static(pod("web", container("main"), container("beside")))
    await node.wait_running("web", "main")
    await node.wait_running("web", "beside")
    await node.run_for(limits.EVICTION_CYCLE_S)
    page = await metrics(node)
    containers = {
        (dict(labels)["container"], dict(labels)["pod"], dict(labels)["namespace"])
        for labels in page.of("kubelet_container_log_filesystem_used_bytes")
    }
    name = node.runtime.pod_name("web")
    expected_containers = {("main", name, "default"), ("beside", name, "default")}
    expect_equal(node, containers, expected_containers, "containers with a size of logs")
