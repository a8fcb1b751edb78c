"""What /metrics counts of resizes, evictions, exclusive resources and cgroups; swap, and the
configuration as /configz shows it."""

from __future__ import annotations

from kubelet_conformance.cases.eviction.common import evicted_for, hungry
from kubelet_conformance.cases.eviction.cycle import LOW, MEMORY
from kubelet_conformance.cases.images.seen import wait_running
from kubelet_conformance.cases.lifecycle.resizing.common import NEEDS as RESIZES
from kubelet_conformance.cases.lifecycle.resizing.common import requesting, run_pod, until, updates
from kubelet_conformance.cases.lifecycle.resizing.pending import TOO_MUCH, pending, taking
from kubelet_conformance.cases.resources import memory
from kubelet_conformance.cases.resources.cpus import guaranteed
from kubelet_conformance.cases.resources.topology import SERVER, refusal, static
from kubelet_conformance.cases.server.scraped import (
    expect_at_least,
    expect_metric,
    metrics,
    scraped,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, STATUS, NODE = Feature.API, Feature.STATUS, Feature.NODE_RESOURCES
REQUESTED = "kubelet_container_requested_resizes_total"
HEADERS = {"Authorization": ["Bearer first", "Bearer second"], "X-Custom": ["a"]}


@conformance(
    id="metrics-of-resizes", rules=["SRV-039.3"], level=Level.SHOULD, needs=RESIZES, since="1.36"
)
async def resizes_are_counted(node: Node) -> None:
    """A resize is counted by what it changes and how; one that waits is shown as deferred, one that
    is carried out is timed."""
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting("150m"))
    await until(node, lambda: bool(updates(node)), "the resize is carried out")
    await node.run_for(limits.NOTICE_S)
    page = await metrics(node)
    more = {"resource": "cpu", "requirement": "requests", "operation": "increase"}
    expect_metric(node, page, 1, REQUESTED, **more)
    expect_metric(node, page, 1, "kubelet_pod_resize_duration_milliseconds_count", success="true")
    expect_metric(node, page, 0, "kubelet_pod_in_progress_resizes")
    expect_equal(node, page.of("kubelet_pod_pending_resizes"), {}, "pending resizes")
    await node.api.resize_pod("web", "main", requesting(TOO_MUCH))
    await pending(node, "web", "Deferred")
    page = await metrics(node)
    expect_metric(node, page, 2, REQUESTED, **more)
    expect_metric(node, page, 1, "kubelet_pod_pending_resizes", reason="deferred")
    await node.api.resize_pod("web", "main", requesting("120m"))
    await until(node, lambda: len(updates(node)) >= 2, "the second resize is carried out")
    await node.run_for(limits.NOTICE_S)
    page = await metrics(node)
    expect_metric(node, page, 1, REQUESTED, **{**more, "operation": "decrease"})
    accepted = "kubelet_pod_deferred_accepted_resizes_total"
    expect_metric(node, page, 1, accepted, retry_trigger="pod_updated")
    expect_equal(node, page.of("kubelet_pod_pending_resizes"), {}, "pending resizes")


@conformance(
    id="metrics-of-evictions",
    rules=["EVIC-096", "SRV-038.2"],
    level=Level.SHOULD,
    needs=[API, Feature.SHORTAGE, Feature.VIRTUAL_TIME],
    node_config={"evictionHard": {"memory.available": "100Mi"}},
)
async def evictions_are_counted_by_signal(node: Node) -> None:
    """An eviction is counted by the signal of the resource that was short, with the age of its
    measurement."""
    await node.api.run_pods(hungry("web", memory_mi=60))
    await node.machine.run_short(MEMORY, 20 * 1024**2)
    await evicted_for(node, "web", LOW, within_s=2 * limits.EVICTION_CYCLE_S)
    page = await metrics(node)
    expect_at_least(node, page, 1, "kubelet_evictions", eviction_signal="memory.available")
    age = "kubelet_eviction_stats_age_seconds_count"
    expect_at_least(node, page, 1, age, eviction_signal="memory.available")


@conformance(
    id="metrics-of-memory-nodes",
    rules=["SRV-039.5"],
    level=Level.SHOULD,
    needs=[STATUS, NODE],
    node_config=memory.CONFIG,
    machine=SERVER,
    since="1.32",
)
async def containers_that_want_memory_of_nodes_are_counted(node: Node) -> None:
    """A container of a Guaranteed pod is counted as one that wants memory of nodes, and as an error
    if there is not enough; other containers are not."""
    requests = "kubelet_memory_manager_pinning_requests_total"
    errors = "kubelet_memory_manager_pinning_errors_total"
    page = await metrics(node)
    expect_equal(node, (page.get(requests), page.get(errors)), (0.0, 0.0), "at first")
    await node.apply_static(pod("a", memory.guaranteed("one", "40Gi")))
    await node.wait_running("a", "one")
    await node.apply_static(pod("b"))
    await node.wait_running("b")
    await node.apply_static(pod("c", memory.guaranteed("two", "1000Gi")))
    await refusal(node, "c")
    page = await metrics(node)
    expect_equal(node, (page.get(requests), page.get(errors)), (2.0, 1.0), "after three pods")


@conformance(
    id="metrics-of-exclusive-cpus",
    rules=["SRV-039.5"],
    level=Level.SHOULD,
    needs=[STATUS, NODE],
    node_config=static(topologyManagerPolicy="single-numa-node"),
    machine=SERVER,
    since="1.33",
)
async def exclusive_cpus_are_counted(node: Node) -> None:
    """CPUs that a container has to itself leave the shared pool, and are counted by NUMA node;
    what cannot be aligned is counted as such."""
    shared, own = (
        "kubelet_cpu_manager_shared_pool_size_millicores",
        "kubelet_cpu_manager_exclusive_cpu_allocation_count",
    )
    await node.run_for(limits.NOTICE_S)
    expect_metric(node, await metrics(node), 0, own)
    await node.apply_static(pod("web", guaranteed("main", "4")))
    await node.wait_running("web", "main")
    await node.apply_static(pod("large", guaranteed("main", "40")))
    await refusal(node, "large")
    page = await metrics(node)
    expect_metric(node, page, 4, own)
    expect_metric(node, page, 1000 * (64 - 2 - 4), shared)
    per_node = page.of("kubelet_cpu_manager_allocation_per_numa")
    expect_equal(node, sum(per_node.values()), 4, "CPUs by NUMA node")
    expect_metric(node, page, 1, "kubelet_cpu_manager_pinning_requests_total")
    expect_metric(node, page, 0, "kubelet_cpu_manager_pinning_errors_total")
    expect_metric(node, page, 2, "kubelet_topology_manager_admission_requests_total")
    expect_metric(node, page, 1, "kubelet_topology_manager_admission_errors_total")
    aligned = "kubelet_container_aligned_compute_resources_{}"
    labels = {"scope": "container", "boundary": "numa_node"}
    expect_metric(node, page, 1, aligned.format("count"), **labels)
    expect_metric(node, page, 1, aligned.format("failure_count"), **labels)


@conformance(
    id="metrics-of-cgroups", rules=["SRV-039.6"], level=Level.SHOULD, needs=[Feature.CGROUPS, API]
)
async def operations_on_cgroups_are_timed(node: Node) -> None:
    """The cgroup of a pod is made when it starts and removed when it has ended, and that is
    timed."""
    name = "kubelet_cgroup_manager_duration_seconds_count"
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    page = await metrics(node)
    created = page.count(name, operation_type="create")
    expect(node, created >= 1, "cgroups that were made", created)
    expect_at_least(node, page, 1, name, operation_type="update")
    expect_equal(node, page.get(name, operation_type="destroy"), None, "cgroups that were removed")
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox") >= 1, within_s=limits.STOP_S + limits.NOTICE_S
    )
    await node.run_for(2 * limits.HOUSEKEEPING_S + limits.NOTICE_S)
    page = await metrics(node)
    expect_at_least(node, page, 1, name, operation_type="destroy")


@conformance(id="metrics-of-a-new-node", rules=["SRV-038.6"], level=Level.SHOULD, needs=[API, NODE])
async def the_start_of_a_new_node_is_timed(node: Node) -> None:
    """When a new Node is ready, the steps from the boot to there have their times."""
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("status") == "True",
        within_s=limits.NODE_STATUS_S + limits.START_S,
    )
    await node.run_for(limits.NOTICE_S)
    page = await metrics(node)
    steps = {
        step: page.get(f"kubelet_node_startup_{step}_duration_seconds")
        for step in ("pre_kubelet", "pre_registration", "registration", "post_registration")
    }
    expect(node, all(value is not None for value in steps.values()), "four steps", steps)
    after_the_start = [steps["pre_registration"], steps["registration"]]
    expect(node, all(0 < (value or 0) < 60 for value in after_the_start), "0 to 60 s", steps)
    whole = page.count("kubelet_node_startup_duration_seconds")
    expect_equal(node, round(whole, 3), round(sum(v or 0 for v in steps.values()), 3), "the sum")


@conformance(
    id="metrics-of-swap",
    rules=["SRV-031.3", "SRV-030.10"],
    needs=[STATUS],
    since="1.34",
    alone=True,
)
async def swap_is_shown_where_nobody_tells_of_it(node: Node) -> None:
    """Containers that run have their swap on /metrics/resource, though it be 0, with a time."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.EVICTION_CYCLE_S)
    text = (await node.kubelet.get("/metrics/resource")).text
    page = scraped(text)
    for name in ("container_swap_usage_bytes", "container_swap_limit_bytes"):
        samples = page.of(name)
        expect_equal(node, list(samples.values()), [0.0], name)
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
        expect_equal(node, len(line.rpartition("}")[2].split()), 2, "value and time")


@conformance(
    id="configz-is-a-configuration",
    rules=["SRV-040", "SRV-040.1"],
    needs=[STATUS],
    node_config={"staticPodURLHeader": HEADERS, "resolvConf": ""},
    since="1.34",
)
async def what_is_shown_is_the_whole_configuration(node: Node) -> None:
    """/configz has the headers of requests for manifests as they are, switches that are off, and an
    empty resolvConf; the image service's socket only if it is another than the runtime's."""
    config = (await node.kubelet.get("/configz")).json()["kubeletconfig"]
    expect_equal(node, config.get("staticPodURLHeader"), HEADERS, "staticPodURLHeader")
    expect_equal(node, config.get("resolvConf"), "", "resolvConf")
    for switch in ("seccompDefault", "mergeDefaultEvictionSettings", "enableSystemLogQuery"):
        expect_equal(node, config.get(switch), False, switch)
    expect(node, "imageServiceEndpoint" not in config, "no imageServiceEndpoint", config)
