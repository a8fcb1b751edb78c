"""What /metrics/probes counts, and what /metrics/cadvisor says of containers and their cgroups."""

from __future__ import annotations

from typing import Final

from kubecri.v1 import api_pb2 as cri

from fakecri import uses
from kubelet_conformance.cases.cgroups.pods import MI, limited
from kubelet_conformance.cases.server.scraped import (
    Scraped,
    expect_at_least,
    expect_metric,
    scraped,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Exec, RunProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, CGROUPS, GROUPS = Feature.STATUS, Feature.CGROUPS, Feature.CONTAINER_GROUPS
RUNS, DURATION = "prober_probe_total", "prober_probe_duration_seconds"
NANO, MICRO, TICKS = 10**9, 10**6, 100
NO_LIMIT: Final = 1 << 62
Place = tuple[str, str, str, float]
"""The controller of v1, a file, a key in it (or none), and what its number is divided by."""
V1: Final[dict[str, Place]] = {
    "container_cpu_user_seconds_total": ("cpuacct", "cpuacct.stat", "user", TICKS),
    "container_cpu_system_seconds_total": ("cpuacct", "cpuacct.stat", "system", TICKS),
    "container_memory_cache": ("memory", "memory.stat", "total_cache", 1),
    "container_memory_mapped_file": ("memory", "memory.stat", "total_mapped_file", 1),
    "container_memory_total_active_file_bytes": ("memory", "memory.stat", "total_active_file", 1),
    "container_memory_total_inactive_file_bytes": (
        *("memory", "memory.stat", "total_inactive_file"),
        1,
    ),
    "container_memory_max_usage_bytes": ("memory", "memory.max_usage_in_bytes", "", 1),
    "container_memory_failcnt": ("memory", "memory.failcnt", "", 1),
    "container_oom_events_total": ("memory", "memory.oom_control", "oom_kill", 1),
    "container_threads": ("pids", "pids.current", "", 1),
    "container_spec_cpu_period": ("cpu", "cpu.cfs_period_us", "", 1),
    "container_spec_cpu_shares": ("cpu", "cpu.shares", "", 1),
    "container_spec_memory_limit_bytes": ("memory", "memory.limit_in_bytes", "", 1),
}
V2: Final[dict[str, Place]] = {
    "container_cpu_user_seconds_total": ("", "cpu.stat", "user_usec", MICRO),
    "container_cpu_system_seconds_total": ("", "cpu.stat", "system_usec", MICRO),
    "container_memory_cache": ("", "memory.stat", "file", 1),
    "container_memory_mapped_file": ("", "memory.stat", "file_mapped", 1),
    "container_memory_total_active_file_bytes": ("", "memory.stat", "active_file", 1),
    "container_memory_total_inactive_file_bytes": ("", "memory.stat", "inactive_file", 1),
    "container_memory_kernel_usage": ("", "memory.stat", "kernel", 1),
    "container_oom_events_total": ("", "memory.events", "oom_kill", 1),
    "container_threads": ("", "pids.current", "", 1),
    "container_spec_memory_limit_bytes": ("", "memory.max", "", 1),
}
QUOTA = "container_spec_cpu_quota"
OF_A_QUOTA = {1: ("throttled_time", NANO), 2: ("throttled_usec", MICRO)}


@conformance(
    id="metrics-of-probes",
    rules=["SRV-032", "PROBE-082"],
    level=Level.SHOULD,
    needs=[STATUS],
    alone=True,
)
async def probes_are_counted_until_their_container_ends(node: Node) -> None:
    """/metrics/probes counts the runs of each probe by result, and times those that have not
    failed; when the pod has ended, its probes are gone from the page."""
    good = RunProbe(run=Exec(("/bin/true",), 0), period_s=1)
    bad = RunProbe(run=Exec(("/bin/false",), 1), period_s=1)
    main = container("main", probes={"liveness": good, "readiness": bad})
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("ExecSync", container="main") >= 6,
        within_s=limits.START_S + 6,
        what="three runs of each probe",
    )
    await node.run_for(limits.NOTICE_S)
    page = scraped((await node.kubelet.get("/metrics/probes")).text)
    listed = node.pod("web") or {}
    of_pod = {"pod": listed["metadata"]["name"], "namespace": "default", "container": "main"}
    ran = {**of_pod, "pod_uid": listed["metadata"]["uid"]}
    expect_at_least(node, page, 2, RUNS, probe_type="Liveness", result="successful", **ran)
    expect_at_least(node, page, 2, RUNS, probe_type="Readiness", result="failed", **ran)
    expect_equal(node, len(page.of(RUNS)), 2, "kinds of results")
    timed = page.count(RUNS, probe_type="Liveness", result="successful", **ran)
    expect_metric(node, page, timed, f"{DURATION}_count", probe_type="Liveness", **of_pod)
    expect_equal(node, len(page.of(f"{DURATION}_count")), 1, "probes that are timed")
    expect_equal(node, page.types.get(RUNS), "counter", "the type of the runs")
    expect_equal(node, page.types.get(DURATION), "histogram", "the type of durations")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("RemovePodSandbox") or not node.pod("web"),
        within_s=limits.STOP_S + limits.NOTICE_S,
    )
    await node.run_for(limits.NOTICE_S)
    page = scraped((await node.kubelet.get("/metrics/probes")).text)
    expect_equal(node, page.of(RUNS), {}, "runs after the pod has ended")


def _number(node: Node, place: Place, words: tuple[str, ...]) -> float:
    """What the file of the cgroup says there."""
    controller, file, key, divisor = place
    text = node.cgroups.read(controller, file, *words)
    rows = dict(line.split() for line in text.splitlines()) if key else {"": text}
    value = rows[key].strip()
    return 0.0 if value == "max" or int(value) >= NO_LIMIT else int(value) / divisor


async def _cadvisor(node: Node) -> Scraped:
    """/metrics/cadvisor, without the times of its samples."""
    answer = await node.kubelet.get("/metrics/cadvisor")
    expect_equal(node, answer.status, 200, "status of /metrics/cadvisor")
    return scraped(answer.text)


def _of(node: Node, name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of the container's cgroup, and the labels of its samples."""
    (call,) = node.calls("CreateContainer", container=name)
    own_id, above = call.response.container_id, node.cgroups.of_pod("web")
    (group,) = [child for child in node.cgroups.children(*above) if own_id in child]
    return (*above, group), {
        "container": name,
        "id": f"{node.cgroups.path(*above)}/{own_id}",
        "image": call.request.config.image.image,
        "name": own_id,
        "namespace": "default",
        "pod": node.runtime.pod_name("web"),
    }


async def _shown(node: Node, places: dict[str, Place]) -> None:
    """Run a pod with and without limits, and compare the page with the files."""
    main = container("main", runs(uses(memory_bytes=20 * MI)), **limited("300m", "100Mi"))
    await node.apply_static(pod("web", main, container("side")))
    await node.wait_running("web", "main")
    await node.wait_running("web", "side")
    await node.run_for(limits.NOTICE_S)
    for name in ("main", "side"):
        words, labels = _of(node, name)
        before = {metric: _number(node, place, words) for metric, place in places.items()}
        page = await _cadvisor(node)
        for metric, place in places.items():
            value, after = page.get(metric, **labels), _number(node, place, words)
            is_between = value is not None and before[metric] <= value <= after
            expect(node, is_between, f"{metric} of {name}: {before[metric]} to {after}", value)
            kind = "counter" if metric.endswith("_total") else "gauge"
            expect_equal(node, page.types[metric], kind, f"type of {metric}")
        processes = node.cgroups.read("memory", "cgroup.procs", *words).split()
        expect_metric(node, page, len(processes), "container_processes", **labels)
        expect_at_least(node, page, 1, "container_last_seen", **labels)
    _expect_quota(node, page)


def _expect_quota(node: Node, page: Scraped) -> None:
    """Of `main` a quota and what it has throttled, of `side`, which has no limit, nothing."""
    words, limited_one = _of(node, "main")
    _, free = _of(node, "side")
    key, divisor = OF_A_QUOTA[node.cgroups.version]
    expect_metric(node, page, 30_000, QUOTA, **limited_one)
    expect_metric(node, page, 100_000, "container_spec_cpu_period", **limited_one)
    throttled = {
        "periods_total": ("cpu", "cpu.stat", "nr_periods", 1),
        "throttled_periods_total": ("cpu", "cpu.stat", "nr_throttled", 1),
        "throttled_seconds_total": ("cpu", "cpu.stat", key, divisor),
    }
    for name, place in throttled.items():
        metric = f"container_cpu_cfs_{name}"
        expect_metric(node, page, _number(node, place, words), metric, **limited_one)
        expect_equal(node, page.get(metric, **free), None, f"{metric} without a limit")
    expect_equal(node, page.get(QUOTA, **free), None, "the quota of what has none")
    expect_metric(node, page, 0, "container_spec_memory_limit_bytes", **free)
    expect_metric(node, page, 0, "container_spec_memory_swap_limit_bytes", **free)
    expect_metric(node, page, 0, "container_threads_max", **free)
    expect_metric(node, page, 2, "container_spec_cpu_shares", **free)
    failures = "container_memory_failcnt"
    expect_equal(node, failures in page.types, node.cgroups.version == 1, failures)


@conformance(
    id="metrics-of-cgroups-v1",
    rules=["SRV-034.1", "SRV-034.2", "SRV-034.3", "SRV-034.4"],
    level=Level.SHOULD,
    needs=[STATUS, CGROUPS, GROUPS, Feature.CGROUP_V1],
    alone=True,
)
async def cadvisor_shows_the_files_of_cgroup_v1(node: Node) -> None:
    """/metrics/cadvisor says of each container what the files of its cgroup say, with v1."""
    await _shown(node, V1)


@conformance(
    id="metrics-of-cgroups-v2",
    rules=["SRV-034.1", "SRV-034.2", "SRV-034.3", "SRV-034.4"],
    level=Level.SHOULD,
    needs=[STATUS, CGROUPS, GROUPS, Feature.CGROUP_V2],
    alone=True,
)
async def cadvisor_shows_the_files_of_cgroup_v2(node: Node) -> None:
    """/metrics/cadvisor says of each container what the files of its cgroup say, with v2."""
    await _shown(node, V2)


@conformance(
    id="metrics-of-containers",
    rules=["SRV-032"],
    level=Level.SHOULD,
    needs=[STATUS, CGROUPS, GROUPS],
    alone=True,
)
async def cadvisor_shows_what_the_runtime_tells(node: Node) -> None:
    """/metrics/cadvisor has the size of the machine, and of each container what the runtime tells:
    CPU time, memory, its filesystem; the interfaces of a pod are those of its sandbox."""
    await node.apply_static(pod("web", container("main", runs(uses(memory_bytes=20 * MI)))))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    page = await _cadvisor(node)
    _, labels = _of(node, "main")
    answer = await node.runtime.direct.call("ListContainerStats", cri.ListContainerStatsRequest())
    (stats,) = answer.stats
    used = stats.cpu.usage_core_nano_seconds.value / NANO
    shown = page.get("container_cpu_usage_seconds_total", cpu="total", **labels)
    expect(node, shown is not None and 0 <= shown <= used, f"CPU time up to {used}", shown)
    memory = {
        "container_memory_working_set_bytes": stats.memory.working_set_bytes.value,
        "container_memory_usage_bytes": stats.memory.usage_bytes.value,
        "container_memory_rss": stats.memory.rss_bytes.value,
    }
    for name, value in memory.items():
        expect_metric(node, page, value, name, **labels)
        expect_equal(node, page.types[name], "gauge", f"type of {name}")
    failures = page.of("container_memory_failures_total")
    kinds = {dict(each)["failure_type"] for each in failures}
    told = {
        kind
        for kind, field in (("pgfault", "page_faults"), ("pgmajfault", "major_page_faults"))
        if stats.memory.HasField(field)
    }
    expect_equal(node, kinds, told, "kinds of page faults, as far as the runtime tells them")
    created = [c for c in page.of("container_start_time_seconds") if ("container", "main") in c]
    expect_equal(node, len(created), 1, "times of a start")
    for name in ("machine_cpu_cores", "machine_memory_bytes"):
        expect_at_least(node, page, 1, name)
