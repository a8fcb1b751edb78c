"""In-place resize: running containers get other CPU and memory, or are restarted for it."""

from functools import partial
from typing import Any

from fakecri import uses
from kubelet_conformance.cases.lifecycle.resizing.common import (
    IN_PROGRESS,
    MI,
    NEEDS,
    RESIZE_S,
    RESTARTS,
    api_condition,
    asking,
    expect_pod_group,
    main_of,
    message,
    requesting,
    resized,
    run_pod,
    told_of,
    until,
    updated,
    updates,
    used_bytes,
    uses_memory,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance


@conformance(id="resize-running", rules=["CG-064", "CG-065", "LIFE-116"], needs=NEEDS, since="1.34")
async def a_resize_updates_the_running_container(node: Node) -> None:
    """For more memory and CPU UpdateContainerResources is called, first for memory and then for
    CPU, and nothing is restarted."""
    await run_pod(node, pod("web", main_of("100m", "64Mi"), container("other")))
    await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
    await resized(node, "web")
    amounts = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in updates(node)]
    expect_equal(node, amounts, [(96, 10_000), (96, 20_000)], "memory limits in MiB, CPU quotas")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("UpdateContainerResources"), 2, "updates")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(
    id="resize-of-a-static-pod",
    rules=["CG-064.5", "CG-064.4"],
    needs=[Feature.STATUS, Feature.CGROUPS],
    since="1.36",
)
async def a_static_pod_that_keeps_its_uid_is_resized(node: Node) -> None:
    """A manifest with a UID of its own that asks for other resources is resized in place: memory
    and CPU of the running container are updated, and nothing is restarted."""
    named = {"uid": "0b9c1a52-6c1e-4f0e-9d3c-0c6b7d1a4e21"}
    await node.apply_static(pod("web", main_of("100m", "64Mi"), metadata=named))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    await node.apply_static(pod("web", main_of("200m", "96Mi"), metadata=named))
    await node.run_until(
        lambda: node.count("UpdateContainerResources") == 2,
        within_s=RESIZE_S,
        what="two updates of main",
    )
    amounts = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in updates(node)]
    expect_equal(node, amounts, [(96, 10_000), (96, 20_000)], "memory limits in MiB, CPU quotas")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("UpdateContainerResources"), 2, "updates")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(
    id="resize-restart", rules=["CG-064", "LIFE-115", "LIFE-115.4"], needs=NEEDS, since="1.34"
)
async def a_resize_restarts_the_container_where_its_policy_says_so(node: Node) -> None:
    """With resizePolicy RestartContainer for memory the container is stopped and started again,
    with its new memory, in the same sandbox."""
    await run_pod(node, pod("web", main_of("100m", "64Mi", resizePolicy=RESTARTS)))
    await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
    await resized(node, "web")
    steps = [w for w in node.writes("web") if "SandboxResources" not in w and "Remove" not in w]
    expect_order(
        node,
        steps,
        ["StopContainer main/0", "CreateContainer main/1", "StartContainer main/1"],
        "the stop, then the next attempt",
    )
    resources = node.calls("CreateContainer", container="main")[1].request.config.linux.resources
    expect_equal(node, resources.memory_limit_in_bytes, 96 * MI, "memory limit")
    expect_equal(node, len(updates(node)), 0, "updates")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    killing = [e["message"] for e in node.events("Killing", pod="web")]
    expect_equal(node, killing, ["Container main resize requires restart"], "message of Killing")


@conformance(
    id="resize-status", rules=["CG-063", "LIFE-186"], needs=[*NEEDS, Feature.FAULTS], since="1.34"
)
async def a_resize_in_progress_shows_in_the_status(node: Node) -> None:
    """While the runtime works on a resize, PodResizeInProgress is True for the new generation,
    allocatedResources are the new values and resources the old ones; afterwards the condition is
    gone."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdateContainerResources", container="main").delays(3.0):
        await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
        await until(node, lambda: api_condition(node, "web", IN_PROGRESS), "resize in progress")
        condition = api_condition(node, "web", IN_PROGRESS)
        expected_fields = ("True", 2, None, None)
        condition_fields = tuple(
            condition.get(key) for key in ("status", "observedGeneration", "reason", "message")
        )
        expect_equal(
            node, condition_fields, expected_fields, "status, observedGeneration, reason, message"
        )
        row = node.api.container("web", "main")
        expect_equal(
            node, row["allocatedResources"], {"cpu": "200m", "memory": "96Mi"}, "allocated"
        )
        old = {"cpu": "100m", "memory": "64Mi"}
        expect_equal(node, row["resources"]["limits"], old, "actual")
        await node.run_until(
            lambda: node.events("ResizeCompleted", pod="web"), within_s=6 + RESIZE_S
        )
    await until(node, lambda: not api_condition(node, "web", IN_PROGRESS), "no condition any more")
    row = node.api.container("web", "main")
    expect_equal(node, row["resources"], asking("200m", "96Mi"), "actual resources at the end")


@conformance(
    id="resize-status-of-the-pod",
    rules=["CG-063.5", "LIFE-186"],
    needs=[*NEEDS, Feature.FAULTS],
    since="1.36",
)
async def the_limits_of_the_pods_cgroup_show_in_the_status(node: Node) -> None:
    """While the runtime works on a resize that raises limits, the pod's resources in its status are
    still the limits of before."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdateContainerResources", container="main").delays(3.0):
        await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
        await until(node, lambda: api_condition(node, "web", IN_PROGRESS), "resize in progress")
        whole = (node.api.pod("web") or {})["status"].get("resources") or {}
        old = {"cpu": "100m", "memory": "64Mi"}
        expect_equal(node, whole.get("limits"), old, "limits of the pod's cgroup in the status")


@conformance(id="resize-events", rules=["CG-063"], needs=NEEDS, since="1.35")
async def events_tell_what_a_resize_asks_for(node: Node) -> None:
    """ResizeStarted and ResizeCompleted name the resources of all containers, and the generation
    of the spec, as JSON."""
    await run_pod(node, pod("web", main_of("100m", "64Mi"), container("other")))
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    await resized(node, "web")
    summary = {
        "containers": [
            {"name": "main", "resources": asking("200m", "64Mi")},
            {"name": "other", "resources": {}},
        ],
        "generation": 2,
    }
    expect_equal(
        node, message(node, "ResizeStarted", "web"), ("Pod resize started", summary), "started"
    )
    expect_equal(
        node,
        message(node, "ResizeCompleted", "web"),
        ("Pod resize completed", summary),
        "completed",
    )


@conformance(
    id="resize-error",
    rules=["CG-063", "CG-065", "LIFE-186"],
    needs=[*NEEDS, Feature.FAULTS],
    since="1.35",
)
async def a_resize_that_fails_is_told_and_tried_again(node: Node) -> None:
    """When the runtime fails, PodResizeInProgress has reason Error and the runtime's text, a
    warning is recorded, and the next try goes on where the first one stopped."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdateContainerResources", container="main").fails("UNKNOWN", "busy"):
        await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
        await until(
            node,
            lambda: api_condition(node, "web", IN_PROGRESS).get("reason") == "Error",
            "reason Error",
        )
    condition = api_condition(node, "web", IN_PROGRESS)
    expect(node, "busy" in condition["message"], "the runtime's error", condition["message"])
    words, summary = message(node, "ResizeError", "web")
    expect_equal(node, words, "Pod resize error", "text of the event ResizeError")
    expect(node, "busy" in summary["error"], "the runtime's error", summary)
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"),
        within_s=limits.SYNC_ERROR_S + RESIZE_S,
        what="the resize is completed",
    )
    await until(node, lambda: not api_condition(node, "web", IN_PROGRESS), "no condition any more")
    expect_pod_group(node, "web", quota_us=20_000, memory_mi=96)


@conformance(id="resize-below-usage", rules=["CG-066.1", "CG-066.2"], needs=NEEDS, since="1.35")
async def memory_does_not_shrink_below_what_is_used(node: Node) -> None:
    """A memory limit below what the container uses is refused before anything is changed, and tried
    again."""
    main = container("main", runs(uses(memory_bytes=100 * MI)), resources=asking("100m", "256Mi"))
    await run_pod(node, pod("web", main))
    await uses_memory(node, 95 * MI)
    await node.api.resize_pod("web", "main", asking("100m", "64Mi"))
    await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
    error = message(node, "ResizeError", "web")[1]["error"]
    expect(node, error.startswith("cannot decrease memory limits: "), "refused", error)
    part = f'attempting to set container "main" memory limit ({64 * MI}) below current usage ('
    expect(node, part in error, part, error)
    expect_equal(node, len(updates(node)), 0, "updates")
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=256)
    await node.api.resize_pod("web", "main", asking("100m", "128Mi"))
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"),
        within_s=limits.SYNC_ERROR_S + RESIZE_S,
    )
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=128)


@conformance(
    id="resize-below-usage-of-one", rules=["CG-066.1", "CG-066.2"], needs=NEEDS, since="1.35"
)
async def memory_of_one_container_does_not_shrink_below_what_it_uses(node: Node) -> None:
    """The same for one container among others that are not changed and use little: the pod as a
    whole would have room."""
    main = container("main", runs(uses(memory_bytes=100 * MI)), resources=asking("100m", "256Mi"))
    others = [container(name, resources=asking("100m", "128Mi")) for name in ("calm", "quiet")]
    await run_pod(node, pod("web", others[0], main, others[1]))
    await node.run_for(limits.NOTICE_S)
    await node.api.resize_pod("web", "main", asking("100m", "64Mi"))
    await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
    error = message(node, "ResizeError", "web")[1]["error"]
    part = f'attempting to set container "main" memory limit ({64 * MI}) below current usage ('
    expect(node, part in error, part, error)
    expect_equal(node, len(updates(node)), 0, "updates")


@conformance(
    id="resize-below-usage-again", rules=["CG-066.1"], needs=[*NEEDS, Feature.FAULTS], since="1.35"
)
async def memory_does_not_shrink_in_a_new_sandbox_either(node: Node) -> None:
    """The same in a pod whose sandbox was made anew: what counts is used by the containers there
    are now."""
    main = container("main", runs(uses(memory_bytes=100 * MI)), resources=asking("100m", "256Mi"))
    other = container("other", resources=asking("100m", "128Mi"))
    await run_pod(node, pod("web", main, other))
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("StartContainer", container="other") == 2,
        within_s=2 * limits.START_S,
        what="second starts",
    )
    await node.run_for(RESIZE_S)
    await node.api.resize_pod("web", "main", asking("100m", "64Mi"))
    await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
    error = message(node, "ResizeError", "web")[1]["error"]
    part = f'attempting to set container "main" memory limit ({64 * MI}) below current usage ('
    expect(node, part in error, part, error)


def _without_usage(answer: Any) -> None:
    for each in answer.stats:
        each.memory.ClearField("usage_bytes")


@conformance(
    id="resize-usage-untold",
    rules=["CG-066.4"],
    needs=[*NEEDS, Feature.FAULTS, Feature.NODE_RESOURCES, Feature.CONTAINER_GROUPS],
    since="1.35",
)
async def memory_shrinks_though_the_runtime_tells_no_usage(node: Node) -> None:
    """With a runtime whose statistics lack the memory that is used, the usage is read elsewhere: a
    limit below it is refused as ever, and one above it is set."""
    main = container("main", runs(uses(memory_bytes=100 * MI)), resources=asking("100m", "256Mi"))
    with node.runtime.on("ListContainerStats").changes_answer(_without_usage):
        await run_pod(node, pod("web", main))
        await node.api.resize_pod("web", "main", asking("100m", "64Mi"))
        await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
        error = message(node, "ResizeError", "web")[1]["error"]
        part = f'attempting to set container "main" memory limit ({64 * MI}) below current'
        expect(node, part in error, part, error)
        await node.api.resize_pod("web", "main", asking("100m", "128Mi"))
        await node.run_until(
            lambda: node.events("ResizeCompleted", pod="web"),
            within_s=limits.SYNC_ERROR_S + RESIZE_S,
            what="the resize is completed",
        )
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=128)


@conformance(
    id="resize-to-usage",
    rules=["CG-066.1", "CG-066.3"],
    needs=[*NEEDS, Feature.VIRTUAL_TIME, Feature.NODE_RESOURCES],
    since="1.35",
)
async def memory_does_not_shrink_to_what_is_used(node: Node) -> None:
    """A memory limit of exactly what is used is refused, for the pod and for its container; a page
    more is not."""
    main = container("main", runs(uses(memory_bytes=100 * MI)), resources=asking("100m", "256Mi"))
    await run_pod(node, pod("web", main))
    used = await used_bytes(node, "main")
    await node.api.resize_pod("web", "main", asking("100m", str(used)))
    await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
    error = message(node, "ResizeError", "web")[1]["error"]
    pod_text, main_text = (
        f"attempting to set {owner} memory limit ({used}) below current usage ({used})"
        for owner in ("pod", 'container "main"')
    )
    expected_error = f"cannot decrease memory limits: [{pod_text}, {main_text}]"
    expect_equal(node, error, expected_error, "error of the event ResizeError")
    await node.api.resize_pod("web", "main", asking("100m", str(used + 4096)))
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"),
        within_s=limits.SYNC_ERROR_S + RESIZE_S,
        what="the resize is completed",
    )


@conformance(id="resize-sidecar", rules=["CG-064"], needs=NEEDS, since="1.34")
async def a_sidecar_is_resized_too(node: Node) -> None:
    """A running sidecar gets other resources without a restart."""
    side = sidecar("side", resources=asking("100m", "64Mi"))
    await run_pod(node, pod("web", main_of("100m", "64Mi"), init=[side]))
    await node.api.resize_pod("web", "side", asking("200m", "64Mi"), init=True)
    await resized(node, "web")
    expect_equal(node, [r.cpu_quota for r in updates(node, "side")], [20_000], "CPU quota")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(
    id="resize-pod-level", rules=["CG-064", "CG-065", "LIFE-070.1"], needs=NEEDS, since="1.36"
)
async def the_pods_own_resources_can_be_resized(node: Node) -> None:
    """When the resources at the level of the pod change, its cgroup follows, and so does a
    container that has no limit of its own. Those that it was made with are no resize."""
    own = asking("200m", "128Mi")
    await run_pod(node, pod("web", container("main"), resources=own))
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.events("ResizeCompleted", pod="web"), [], "ResizeCompleted so far")
    await node.api.resize_whole_pod("web", asking("300m", "192Mi"))
    await resized(node, "web")
    expect_pod_group(node, "web", quota_us=30_000, memory_mi=192)
    last = updates(node)[-1]
    amounts = (last.memory_limit_in_bytes // MI, last.cpu_quota)
    expect_equal(node, amounts, (192, 30_000), "memory limit in MiB and CPU quota of main")


@conformance(id="resize-pod-level-added", rules=["CG-064.6", "CG-065"], needs=NEEDS, since="1.36")
async def a_pod_without_resources_of_its_own_can_get_some(node: Node) -> None:
    """Running pods whose containers alone have resources get some at the level of the pod: their
    cgroups follow, and so does a container without limits, while one with limits of its own stays
    as it is."""
    small = requesting("50m") | {"limits": {"cpu": "100m", "memory": "64Mi"}}
    await run_pod(node, pod("web", container("main", resources=small)))
    await run_pod(node, pod("bare", container("side", resources=requesting("50m"))))
    for name in ("web", "bare"):
        own = requesting("200m") | {"limits": {"cpu": "300m", "memory": "192Mi"}}
        await node.api.resize_whole_pod(name, own)
    await until(node, lambda: len(updates(node, "side")) >= 2, "side is updated")
    for name in ("web", "bare"):
        await resized(node, name)
    await node.run_for(limits.NOTICE_S)
    for name in ("web", "bare"):
        expect_pod_group(node, name, quota_us=30_000, memory_mi=192)
    last = updates(node, "side")[-1]
    amounts = (last.memory_limit_in_bytes // MI, last.cpu_quota)
    expect_equal(node, amounts, (192, 30_000), "memory limit in MiB and CPU quota of side")
    expect_equal(node, len(updates(node, "main")), 0, "updates of main")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="resize-twice", rules=["CG-064", "CG-065"], needs=NEEDS, since="1.35")
async def a_resize_there_and_back_ends_where_it_began(node: Node) -> None:
    """After a resize up and one down there have been two updates, and the pod has what it had."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    for number, cpu in enumerate(("200m", "100m"), start=1):
        await node.api.resize_pod("web", "main", asking(cpu, "64Mi"))
        # Not the event alone: a kubelet may tell of a resize that has not begun (CG-063).
        await until(node, partial(updated, node, number), f"update {number} of main")
        await until(node, partial(told_of, node, number + 1), f"resize {number} told as completed")
        await node.run_for(limits.NOTICE_S)
    expect_equal(node, [r.cpu_quota for r in updates(node)], [20_000, 10_000], "CPU quotas")
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=64)
