"""In-place resize: running containers get other CPU and memory, or are restarted for it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from criapi.v1 import api_pb2 as cri

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal, expect_order
from conformance.harness.manifests import Container, PodPlan, container, pod, sidecar
from conformance.harness.node import Node
from conformance.harness.workload import runs
from conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.CGROUPS]
MI = 1 << 20
RESIZE_S = limits.NOTICE_S + limits.STATUS_PASS_S
SETTLED_S = 3.0
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
SMALL_MEMORY = "16Mi"
RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def asking(cpu: str, memory: str) -> dict[str, Any]:
    """Resources with equal requests and limits."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}


def requesting(cpu: str) -> dict[str, Any]:
    """A request for CPU alone, without a limit."""
    return {"requests": {"cpu": cpu}}


async def run_pod(node: Node, plan: PodPlan) -> None:
    """Create the pod and run until the API shows it as running and the syncs of its start are
    over."""
    await node.api.create_pod(plan)
    names = [c.name for c in plan.containers]
    await node.run_until(
        lambda: all("running" in node.api.container(plan.name, n).get("state", {}) for n in names),
        within_s=limits.START_S,
        what=f"{plan.name} runs",
    )
    await node.run_for(limits.NOTICE_S)  # no sync of the start is under way any more


async def resized(node: Node, pod_name: str, times: int = 1) -> None:
    await until(node, lambda: len(node.events("ResizeCompleted", pod=pod_name)) >= times)


async def uses_memory(node: Node, used_bytes: int) -> None:
    """Run until the runtime has reported for some seconds that its containers use so much memory,
    and at most a fifth more: a shell that fills a variable holds it twice for a moment.

    The runtime is asked because a fake's containers are in no cgroup of this machine.
    """
    began_s = since_s = node.now_s
    while node.now_s < since_s + SETTLED_S:
        in_time = node.now_s < began_s + RESIZE_S + SETTLED_S + node.slack_s
        expect(node, in_time, f"{used_bytes} bytes in use")
        await node.run_for(0.2)
        answer = await node.runtime.direct.call(
            "ListContainerStats", cri.ListContainerStatsRequest()
        )
        used = sum(s.memory.usage_bytes.value for s in answer.stats)
        if not used_bytes <= used <= used_bytes * 1.2:
            since_s = node.now_s


async def until(node: Node, condition: Callable[[], object], what: str = "") -> None:
    await node.run_until(condition, within_s=RESIZE_S, what=what or "the resize is done")


def api_condition(node: Node, pod_name: str, kind: str) -> dict[str, Any]:
    """The pod's condition of that type at the API; {} when there is none."""
    conditions = ((node.api.pod(pod_name) or {}).get("status") or {}).get("conditions") or []
    return next((dict(c) for c in conditions if c["type"] == kind), {})


def message(node: Node, reason: str, pod_name: str) -> tuple[str, dict[str, Any]]:
    """The newest event with that reason: the text before the JSON in its message, and the JSON."""
    words, _, summary = node.events(reason, pod=pod_name)[-1]["message"].partition(": ")
    return words, json.loads(summary)


def updates(node: Node, name: str = "main") -> list[Any]:
    return [c.request.linux for c in node.calls("UpdateContainerResources", container=name)]


def main_of(cpu: str, memory: str, **fields: Any) -> Container:
    return container("main", resources=asking(cpu, memory), **fields)


@conformance(id="resize-running", rules=["CG-064", "CG-065"], needs=NEEDS)
async def a_resize_updates_the_running_container(node: Node) -> None:
    """For more memory and CPU UpdateContainerResources is called, first for memory and then for
    CPU, and nothing is restarted."""
    await run_pod(node, pod("web", main_of("100m", "64Mi"), container("other")))
    await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
    await resized(node, "web")
    seen = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in updates(node)]
    expect_equal(node, seen, [(96, 10_000), (96, 20_000)], "memory limit in MiB, CPU quota")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("UpdateContainerResources"), 2, "updates")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(id="resize-restart", rules=["CG-064", "LIFE-115"], needs=NEEDS)
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
        "stop, then the next attempt",
    )
    made = node.calls("CreateContainer", container="main")[1].request.config.linux.resources
    expect_equal(node, made.memory_limit_in_bytes, 96 * MI, "memory limit")
    expect_equal(node, len(updates(node)), 0, "updates")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    killing = [e["message"] for e in node.events("Killing", pod="web")]
    expect_equal(node, killing, ["Container main resize requires restart"], "message of Killing")


@conformance(id="resize-status", rules=["CG-063", "LIFE-186"], needs=[*NEEDS, Feature.FAULTS])
async def a_resize_in_progress_shows_in_the_status(node: Node) -> None:
    """While the runtime works on a resize, PodResizeInProgress is True for the new generation,
    allocatedResources are the new values and resources the old ones; afterwards the condition is
    gone."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdateContainerResources", container="main").delays(3.0):
        await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
        await until(node, lambda: api_condition(node, "web", IN_PROGRESS), "resize in progress")
        condition = api_condition(node, "web", IN_PROGRESS)
        wanted = ("True", 2, None, None)
        seen = tuple(
            condition.get(key) for key in ("status", "observedGeneration", "reason", "message")
        )
        expect_equal(node, seen, wanted, "status, observedGeneration, reason, message")
        told = node.api.container("web", "main")
        expect_equal(
            node, told["allocatedResources"], {"cpu": "200m", "memory": "96Mi"}, "allocated"
        )
        expect_equal(node, told["resources"]["limits"], {"cpu": "100m", "memory": "64Mi"}, "actual")
        await node.run_until(
            lambda: node.events("ResizeCompleted", pod="web"), within_s=6 + RESIZE_S
        )
    await until(node, lambda: not api_condition(node, "web", IN_PROGRESS), "no condition any more")
    told = node.api.container("web", "main")
    expect_equal(node, told["resources"], asking("200m", "96Mi"), "actual resources at the end")


@conformance(id="resize-events", rules=["CG-063"], needs=NEEDS)
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


@conformance(id="resize-grows-pod-first", rules=["CG-065"], needs=NEEDS)
async def the_pod_grows_before_its_containers(node: Node) -> None:
    """When memory and CPU grow, the pod's cgroup is raised before the container, first for memory
    and then for CPU: a container never has more than its pod."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
    await resized(node, "web")
    order = [c.method for c in node.calls() if c.method.startswith("Update")]
    expect_equal(
        node,
        order,
        [
            "UpdatePodSandboxResources",
            "UpdateContainerResources",
            "UpdatePodSandboxResources",
            "UpdatePodSandboxResources",
            "UpdateContainerResources",
        ],
        "updates",
    )
    told = [c.request.resources for c in node.calls("UpdatePodSandboxResources")]
    seen = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in told]
    expect_equal(node, seen, [(96, 10_000), (96, 20_000), (96, 20_000)], "memory, CPU quota")
    expect_pod_group(node, "web", quota_us=20_000, memory_mi=96)


def expect_pod_group(node: Node, name: str, *, quota_us: int, memory_mi: int) -> None:
    group = node.cgroups.of_pod(name)
    seen = (node.cgroups.cpu_quota_us(*group), node.cgroups.memory_limit_bytes(*group))
    expect_equal(node, seen, (quota_us, memory_mi * MI), "CPU quota and memory limit of the pod")


@conformance(id="resize-shrinks-pod-last", rules=["CG-065"], needs=NEEDS)
async def the_pod_shrinks_after_its_containers(node: Node) -> None:
    """When memory and CPU shrink, the container is lowered before the pod's cgroup, first for
    memory and then for CPU: a container never has more than its pod."""
    await run_pod(node, pod("web", main_of("200m", "96Mi")))
    await node.api.resize_pod("web", "main", asking("100m", "64Mi"))
    await resized(node, "web")
    order = [c.method for c in node.calls() if c.method.startswith("Update")]
    expect_equal(
        node,
        order,
        [
            "UpdateContainerResources",
            "UpdatePodSandboxResources",
            "UpdateContainerResources",
            "UpdatePodSandboxResources",
            "UpdatePodSandboxResources",
        ],
        "updates",
    )
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=64)


@conformance(id="resize-decreases-first", rules=["CG-065"], needs=NEEDS)
async def containers_that_get_less_come_first(node: Node) -> None:
    """When two containers swap their CPU, the one that gets less is updated before the other."""
    await run_pod(
        node,
        pod(
            "web",
            container("up", resources=asking("100m", "64Mi")),
            container("down", resources=asking("200m", "64Mi")),
        ),
    )
    up, down = asking("200m", "64Mi"), asking("100m", "64Mi")
    await node.api.resize_containers("web", {"up": up, "down": down})
    await resized(node, "web")
    names = {c.response.container_id: c.request.config.metadata.name
             for c in node.calls("CreateContainer")}  # fmt: skip
    order = [names[c.request.container_id] for c in node.calls("UpdateContainerResources")]
    expect_equal(node, order, ["down", "up"], "order of updates")


@conformance(
    id="resize-error", rules=["CG-063", "CG-065", "LIFE-186"], needs=[*NEEDS, Feature.FAULTS]
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
    expect(node, "busy" in condition["message"], "the runtime's text", condition["message"])
    words, summary = message(node, "ResizeError", "web")
    expect_equal(node, words, "Pod resize error", "words of ResizeError")
    expect(node, "busy" in summary["error"], "the runtime's text", summary)
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"),
        within_s=limits.SYNC_ERROR_S + RESIZE_S,
        what="completed at last",
    )
    await until(node, lambda: not api_condition(node, "web", IN_PROGRESS), "no condition any more")
    expect_pod_group(node, "web", quota_us=20_000, memory_mi=96)


@conformance(id="resize-sandbox-refused", rules=["CG-065"], needs=[*NEEDS, Feature.FAULTS])
async def a_runtime_that_refuses_the_pods_size_ends_the_resize(node: Node) -> None:
    """When UpdatePodSandboxResources fails, no cgroup is written and no container updated."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdatePodSandboxResources", pod="web").fails("INTERNAL", "too much"):
        await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
        await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
        error = message(node, "ResizeError", "web")[1]["error"]
        wanted = (
            "failed to notify runtime for UpdatePodSandboxResources (resource=memory); resize "
            "rejected: "
        )
        expect(node, error.startswith(wanted), wanted, error)
        expect_equal(node, len(updates(node)), 0, "updates")
        expect_pod_group(node, "web", quota_us=10_000, memory_mi=64)


@conformance(id="resize-sandbox-unimplemented", rules=["CG-065"], needs=[*NEEDS, Feature.FAULTS])
async def a_runtime_without_that_call_does_not_matter(node: Node) -> None:
    """When UpdatePodSandboxResources answers UNIMPLEMENTED, the resize goes on."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdatePodSandboxResources", pod="web").fails(
        "UNIMPLEMENTED", "unknown method"
    ):
        await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
        await resized(node, "web")
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=96)


@conformance(
    id="resize-sandbox-not-implemented", rules=["CRI-122", "CG-065"], needs=[*NEEDS, Feature.FAULTS]
)
async def a_runtime_that_has_not_implemented_that_call_does_not_matter(node: Node) -> None:
    """The resize also goes on when UpdatePodSandboxResources answers UNKNOWN with the text `not
    implemented`, as containerd 2.2 does; any other UNKNOWN ends it."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    call = "UpdatePodSandboxResources"
    with node.runtime.on(call, pod="web").fails("UNKNOWN", "method not implemented yet"):
        await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
        await resized(node, "web")
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=96)
    with node.runtime.on(call, pod="web").fails("UNKNOWN", "no space left"):
        await node.api.resize_pod("web", "main", asking("100m", "128Mi"))
        await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
        expect_pod_group(node, "web", quota_us=10_000, memory_mi=96)


@conformance(id="resize-below-usage", rules=["CG-066"], needs=NEEDS)
async def memory_does_not_shrink_below_what_is_used(node: Node) -> None:
    """A memory limit below what the container uses is refused before anything is changed, and tried
    again."""
    main = container("main", runs(memory_bytes=100 * MI), resources=asking("100m", "256Mi"))
    await run_pod(node, pod("web", main))
    await uses_memory(node, 95 * MI)
    await node.api.resize_pod("web", "main", asking("100m", "64Mi"))
    await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
    error = message(node, "ResizeError", "web")[1]["error"]
    expect(node, error.startswith("cannot decrease memory limits: "), "refused", error)
    wanted = f'attempting to set container "main" memory limit ({64 * MI}) below current usage ('
    expect(node, wanted in error, wanted, error)
    expect_equal(node, len(updates(node)), 0, "updates")
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=256)
    await node.api.resize_pod("web", "main", asking("100m", "128Mi"))
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"),
        within_s=limits.SYNC_ERROR_S + RESIZE_S,
    )
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=128)


@conformance(id="resize-sidecar", rules=["CG-064"], needs=NEEDS)
async def a_sidecar_is_resized_too(node: Node) -> None:
    """A running sidecar gets other resources without a restart."""
    side = sidecar("side", resources=asking("100m", "64Mi"))
    await run_pod(node, pod("web", main_of("100m", "64Mi"), init=[side]))
    await node.api.resize_pod("web", "side", asking("200m", "64Mi"), init=True)
    await resized(node, "web")
    expect_equal(node, [r.cpu_quota for r in updates(node, "side")], [20_000], "CPU quota")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(id="resize-pod-level", rules=["CG-064", "CG-065"], needs=NEEDS)
async def the_pods_own_resources_can_be_resized(node: Node) -> None:
    """When the resources at the level of the pod change, its cgroup follows, and so does a
    container that has no limit of its own."""
    own = asking("200m", "128Mi")
    await run_pod(node, pod("web", container("main"), resources=own))
    await node.api.resize_whole_pod("web", asking("300m", "192Mi"))
    await resized(node, "web")
    expect_pod_group(node, "web", quota_us=30_000, memory_mi=192)
    last = updates(node)[-1]
    seen = (last.memory_limit_in_bytes // MI, last.cpu_quota)
    expect_equal(node, seen, (192, 30_000), "memory limit in MiB and CPU quota of main")


@conformance(id="resize-twice", rules=["CG-064", "CG-065"], needs=NEEDS)
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


def updated(node: Node, times: int) -> bool:
    return len(updates(node)) >= times


def told_of(node: Node, generation: int) -> bool:
    """Whether the newest event ResizeCompleted is about that generation of the pod."""
    found = node.events("ResizeCompleted", pod="web")
    return bool(found) and message(node, "ResizeCompleted", "web")[1]["generation"] == generation
