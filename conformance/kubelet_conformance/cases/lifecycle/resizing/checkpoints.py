"""Resizes and their checkpoints: what is read back from cgroups, and what is written when."""

import json
from functools import partial
from typing import Any

from fakecri import uses
from kubelet_conformance.cases.lifecycle.resizing.common import (
    MI,
    NEEDS,
    RESIZE_S,
    RESTARTS,
    api_condition,
    asking,
    main_of,
    requesting,
    resized,
    run_pod,
    until,
    updates,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance

ALLOCATED, ACTUATED = "allocated_pods_state", "actuated_pods_state"


def entries_of(node: Node, file: str) -> dict[str, Any]:
    """The entries of a checkpoint by the names of their pods' only container."""
    data = json.loads(json.loads(node.machine.read_root_file(file))["data"])
    named: dict[str, Any] = {}
    for entry in (data.get("entries") or {}).values():
        for name in entry["ContainerResources"]:
            named[name] = entry
    return named


@conformance(
    id="resize-shares-read-back", rules=["CG-021.2", "CG-065.3"],
    needs=[*NEEDS, Feature.CGROUP_V2], since="1.34",
)  # fmt: skip
async def shares_are_computed_back_from_the_weight(node: Node) -> None:
    """With cgroup v2 the runtime is told the shares that follow from the weight of the pod's
    cgroup, while its memory alone is resized: 500 for the weight of 512."""
    await run_pod(node, pod("web", main_of("500m", "64Mi")))
    await node.api.resize_pod("web", "main", asking("500m", "128Mi"))
    await resized(node, "web")
    told = [call.request.resources for call in node.calls("UpdatePodSandboxResources")]
    expect(node, told, "UpdatePodSandboxResources")
    rows = [(row.cpu_shares, row.memory_limit_in_bytes // MI) for row in told[:1]]
    expect_equal(node, rows, [(500, 128)], "shares and memory (MiB) that the runtime is told")


@conformance(id="resize-checkpoint-unchanged", rules=["CG-060.3"], needs=NEEDS, since="1.34")
async def a_checkpoint_is_written_when_it_changes(node: Node) -> None:
    """The file of allocated resources is not written while nothing changes, nor because a pod goes;
    the next pod brings it back, without the one that is gone."""
    await run_pod(node, pod("one", container("a", resources=requesting("100m"))))
    await run_pod(node, pod("two", container("b", resources=requesting("100m"))))
    expect_equal(node, sorted(entries_of(node, ALLOCATED)), ["a", "b"], "containers in the file")
    path = node.machine.directory("root") / ALLOCATED
    path.unlink()
    await node.run_for(100)
    expect_equal(node, path.exists(), False, "the file is written though nothing has changed")
    await node.api.delete_pod("two", grace_s=1)
    await node.run_until(
        lambda: node.api.pod("two") is None, within_s=3 * limits.STOP_S, what="two is gone"
    )
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    expect_equal(node, path.exists(), False, "the file is written because a pod went")
    await run_pod(node, pod("three", container("c", resources=requesting("100m"))))
    expect_equal(node, sorted(entries_of(node, ALLOCATED)), ["a", "c"], "containers in the file")


@conformance(
    id="resize-actuated-before", rules=["CG-060.4"], needs=[*NEEDS, Feature.FAULTS], since="1.36"
)
async def resources_are_noted_before_the_container_is_made(node: Node) -> None:
    """What a container is about to get is in the file of actuated resources before CreateContainer,
    so that no container runs of which nothing is known; a limit that only its pod has is its own
    there."""
    own = {"limits": {"cpu": "300m", "memory": "64Mi"}, "requests": {"cpu": "200m"}}
    main = container("main", resources=requesting("100m"))
    rule = node.runtime.on("CreateContainer", pod="web").hangs()
    await node.api.create_pod(pod("web", main, resources=own))
    await node.run_until(
        lambda: node.count("CreateContainer", pod="web"), within_s=limits.START_S, what="the call"
    )
    noted = entries_of(node, ACTUATED).get("main", {}).get("ContainerResources", {}).get("main")
    expected = {"limits": {"cpu": "300m", "memory": "64Mi"}, "requests": {"cpu": "100m"}}
    expect_equal(node, noted, expected, "resources of main in the file while it is made")
    rule.release()
    await node.wait_running("web")


def has_allocated(node: Node, name: str, cpu: str) -> bool:
    """Whether the API shows that so much CPU, and nothing else, is allocated to the pod."""
    allocated = node.api.container(name, "main").get("allocatedResources")
    return bool(allocated == {"cpu": cpu})


@conformance(
    id="resize-beside-a-deferred-one", rules=["CG-061.5", "CG-063.3"],
    needs=[*NEEDS, Feature.NODE_RESOURCES], machine={"cores": 4}, since="1.34",
)  # fmt: skip
async def what_another_pod_only_wants_takes_no_room(node: Node) -> None:
    """A resize is measured against what other pods have: one that is refused for now keeps its
    amounts, and its wish does not keep the resize of another pod from being done."""
    await run_pod(node, pod("large", container("main", resources=requesting("1"))))
    await run_pod(node, pod("web", container("main", resources=requesting("1"))))
    await node.api.resize_pod("large", "main", requesting("3500m"))
    await until(
        node, lambda: api_condition(node, "large", "PodResizePending").get("reason") == "Deferred"
    )
    await node.api.resize_pod("web", "main", requesting("2"))
    await resized(node, "web")
    for name, cpu in (("large", "1"), ("web", "2")):
        await until(
            node,
            partial(has_allocated, node, name, cpu),
            what=f"allocatedResources of {name}: {cpu} CPUs",
        )
    reason = api_condition(node, "large", "PodResizePending").get("reason")
    expect_equal(node, reason, "Deferred", "PodResizePending of large")


@conformance(id="resize-before-starts", rules=["CG-064.1"], needs=NEEDS, since="1.35")
async def containers_are_resized_before_others_start(node: Node) -> None:
    """When one resize updates a container in place and needs a restart of another, the update comes
    before the other one is made anew."""
    anew = main_of("100m", "64Mi", name="anew", resizePolicy=RESTARTS)
    await run_pod(node, pod("web", main_of("100m", "64Mi"), anew))
    wanted = asking("100m", "96Mi")
    await node.api.resize_containers("web", {"main": wanted, "anew": wanted})
    await node.run_until(
        lambda: node.count("CreateContainer", container="anew") == 2,
        within_s=RESIZE_S + limits.STOP_S,
        what="anew is made again",
    )
    expect_equal(node, len(updates(node)), 1, "updates of main")
    update = node.calls("UpdateContainerResources", container="main")[0]
    made = node.calls("CreateContainer", container="anew")[1]
    expect(node, update.ended_s <= made.started_s, "main is updated before anew is made")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops of main")


@conformance(
    id="resize-memory-refused-whole", rules=["CG-066.2", "CG-066.1"],
    needs=[*NEEDS, Feature.NODE_RESOURCES], since="1.35",
)  # fmt: skip
async def a_resize_that_is_refused_changes_nothing(node: Node) -> None:
    """Where one of several containers uses more memory than its new limit, nothing of the resize is
    done: neither the other container nor any CPU; it is tried again, and done as soon as less is
    used."""
    work = runs(uses(memory_bytes=100 * MI))
    used = container("used", work, resources=asking("100m", "256Mi"))
    await run_pod(node, pod("web", used, main_of("100m", "64Mi")))
    await node.run_for(limits.NOTICE_S)
    await node.api.resize_containers(
        "web", {"used": asking("200m", "64Mi"), "main": asking("200m", "96Mi")}
    )
    await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
    await node.run_for(2 * limits.SYNC_ERROR_S)
    expect_equal(node, node.count("UpdateContainerResources"), 0, "updates of containers")
    expect_equal(node, node.count("UpdatePodSandboxResources"), 0, "updates of the sandbox")
    group = node.cgroups.of_pod("web")
    actual = node.cgroups.memory_limit_bytes(*group), node.cgroups.cpu_quota_us(*group)
    expect_equal(node, actual, (320 * MI, 20_000), "memory limit and CPU quota of the pod")
