"""CPU manager policy static: which containers get CPUs of their own, which CPUs, and what the other
containers get."""

import json
from typing import Any

from kubelet_conformance.cases.cgroups.pods import cgroup_of
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.quantity import NANO, parse_nano
from refkubelet.model.cpuset import parse_cpuset

STATUS, NODE = Feature.STATUS, Feature.NODE_RESOURCES
STATIC = {"cpuManagerPolicy": "static", "systemReserved": {"cpu": "500m"}}
RECONCILE_S = 10.0 + limits.NOTICE_S  # CG-081


def guaranteed(name: str, cpus: str, work: Any = None, **fields: Any) -> Container:
    """A container whose limits are its requests."""
    amounts = {"cpu": cpus, "memory": "64Mi"}
    return container(name, work, resources={"requests": amounts, "limits": amounts}, **fields)


def created(node: Node, name: str) -> Any:
    """The resources in the container's last CreateContainer."""
    return node.calls("CreateContainer", container=name)[-1].request.config.linux.resources


def told(node: Node, name: str) -> list[str]:
    """The CPUs in each UpdateContainerResources of the container."""
    return [
        c.request.linux.cpuset_cpus for c in node.calls("UpdateContainerResources", container=name)
    ]


async def told_within(node: Node, name: str, count: int) -> str:
    """Run until the container's CPUs have been updated that often, and return the last ones."""
    await node.run_until(
        lambda: len(told(node, name)) >= count, within_s=RECONCILE_S, what=f"{name} gets its CPUs"
    )
    return told(node, name)[-1]


@conformance(
    id="cpus-own",
    rules=["CG-081", "CG-050", "CG-031.1", "LIFE-139.2"],
    needs=[STATUS],
    node_config=STATIC,
    since="1.33",
)
async def whole_cpus_of_a_guaranteed_pod_are_its_own(node: Node) -> None:
    """A container of a Guaranteed pod that requests one CPU gets a CPU of its own that is not
    reserved, without a quota; at the next reconciliation the others are moved to the remaining
    CPUs."""
    await node.apply_static(pod("other", container("sharing")))
    await node.wait_running("other", "sharing")
    everything = created(node, "sharing").cpuset_cpus
    expect(node, "0" in str(everything)[:1], "CPU 0 is shared")
    await node.apply_static(pod("web", guaranteed("main", "1")))
    await node.wait_running("web")
    own = created(node, "main").cpuset_cpus
    expect_equal(node, len(parse_cpuset(own)), 1, "CPUs of main")
    expect(node, own != "0", "the reserved CPU 0 belongs to no container")
    expect_equal(node, created(node, "main").cpu_quota, -1, "CFS quota of main")
    await node.run_until(
        lambda: (
            told(node, "sharing")
            and parse_cpuset(told(node, "sharing")[-1])
            == parse_cpuset(everything) - parse_cpuset(own)
        ),
        within_s=RECONCILE_S,
        what="the other container no longer runs on that CPU",
    )
    count = node.count("UpdateContainerResources")
    await node.run_for(2 * RECONCILE_S)
    expect_equal(node, node.count("UpdateContainerResources"), count, "updates without a change")


@conformance(id="cpus-shared", rules=["CG-081"], needs=[STATUS], node_config=STATIC)
async def others_share_their_cpus(node: Node) -> None:
    """Containers with parts of a CPU, and those of pods that are not Guaranteed, run on the shared
    CPUs with a quota."""
    burstable = container("burstable", resources={"requests": {"cpu": "1"}})
    await node.apply_static(pod("web", guaranteed("part", "500m")))
    await node.apply_static(pod("other", burstable))
    await node.wait_running("web", "part")
    await node.wait_running("other", "burstable")
    for name in ("part", "burstable"):
        shared = parse_cpuset(created(node, name).cpuset_cpus)
        expect(node, 0 in shared and len(shared) > 1, f"{name} runs on all shared CPUs")
    expect_equal(node, created(node, "part").cpu_quota, 50_000, "CFS quota")


@conformance(id="cpus-noted-at-start", rules=["CG-081"], needs=[STATUS], node_config=STATIC)
async def the_state_file_has_the_shared_cpus_from_the_start(node: Node) -> None:
    """Before any container has a CPU of its own, the state file says which CPUs are shared: those
    that a container gets."""
    state = json.loads(node.machine.read_root_file("cpu_manager_state"))
    await node.apply_static(pod("other", container("sharing")))
    await node.wait_running("other", "sharing")
    shared = parse_cpuset(created(node, "sharing").cpuset_cpus)
    noted = (state.get("policyName"), parse_cpuset(state.get("defaultCpuSet", "")))
    expect_equal(node, noted, ("static", shared), "policy and shared CPUs in the state file")


@conformance(id="cpus-released", rules=["CG-081"], needs=[STATUS], node_config=STATIC)
async def cpus_of_a_pod_that_is_gone_are_shared_again(node: Node) -> None:
    """When a pod with a CPU of its own has ended, that CPU is shared again."""
    await node.apply_static(pod("web", guaranteed("main", "1")))
    await node.wait_running("web")
    await node.apply_static(pod("other", container("sharing")))
    await node.wait_running("other", "sharing")
    own = parse_cpuset(created(node, "main").cpuset_cpus)
    fewer = parse_cpuset(created(node, "sharing").cpuset_cpus)
    expect(node, not own & fewer, "the other container starts on other CPUs")
    await node.remove_static("web")
    await node.run_until(
        lambda: told(node, "sharing") and parse_cpuset(told(node, "sharing")[-1]) == own | fewer,
        within_s=limits.STOP_S + 2 * RECONCILE_S,
        what="the CPU is shared again",
    )
    state = json.loads(node.machine.read_root_file("cpu_manager_state"))
    expect_equal(node, state.get("entries"), None, "entries of the state file")


@conformance(id="cpus-init", rules=["CG-081"], needs=[STATUS], node_config=STATIC)
async def init_containers_leave_their_cpus_to_the_others(node: Node) -> None:
    """The CPU of an init container is given to the regular container afterwards."""
    first = guaranteed("first", "1", exits(0))
    await node.apply_static(pod("web", guaranteed("main", "1"), init=[first]))
    await node.wait_running("web")
    cpus_of_first, other = (created(node, name).cpuset_cpus for name in ("first", "main"))
    expect_equal(node, cpus_of_first, other, "CPUs of the init container and of the regular one")


@conformance(id="cpus-kept", rules=["CG-081"], needs=[STATUS, Feature.RESTART], node_config=STATIC)
async def cpus_are_kept_over_restarts(node: Node) -> None:
    """A restarted kubelet reads from its state file which container has which CPUs, and rejects no
    pod."""
    await node.apply_static(pod("web", guaranteed("main", "1")))
    await node.wait_running("web")
    own = created(node, "main").cpuset_cpus
    before = json.loads(node.machine.read_root_file("cpu_manager_state"))
    await node.kubelet.restart()
    await node.wait_running("web")
    expect_equal(node, await told_within(node, "main", 1), own, "CPUs after the restart")
    expect_equal(
        node, json.loads(node.machine.read_root_file("cpu_manager_state")), before, "state file"
    )
    expect_equal(node, node.count("CreateContainer", container="main"), 1, "containers made")


@conformance(
    id="cpus-before-the-sources", rules=["CG-081.5"], node_config=STATIC,
    needs=[STATUS, Feature.API, Feature.RESTART],
)  # fmt: skip
async def cpus_of_pods_that_are_not_known_yet_are_not_given_away(node: Node) -> None:
    """A kubelet that starts while the API server is away does not know which pods are left: the
    CPUs that its state file gives to a pod of the API are not given to a static pod."""
    await node.run_until(lambda: node.api.allocatable("cpu"), within_s=limits.START_S)
    all_of_them = parse_nano(node.api.allocatable("cpu")) // NANO
    await node.api.create_pod(pod("web", guaranteed("main", str(all_of_them))))
    await node.wait_running("web")
    await node.kubelet.stop()
    await node.apply_static(pod("late", guaranteed("second", "1")))
    with node.api.down():
        await node.kubelet.start()
        await node.run_until(
            lambda: node.phase("late") == "Failed",
            within_s=limits.REGISTER_S,
            what="late is refused",
        )
    status = (node.pod("late") or {})["status"]
    part = "not enough cpus available to satisfy request: requested=1, available=0"
    expect(node, part in status["message"], f"message with {part!r}", status["message"])
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops of main")


@conformance(id="cpus-restarted", rules=["CG-081"], needs=[STATUS], node_config=STATIC)
async def a_restarted_container_keeps_its_cpus(node: Node) -> None:
    """The next instance of a container gets the CPUs of the one before when it is created, without
    an update."""
    await node.apply_static(pod("web", guaranteed("main", "1", exits(1, after_s=1))))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") >= 2,
        within_s=2 * limits.START_S + limits.NOTICE_S,
        what="a second instance of main",
    )
    calls = node.calls("CreateContainer", container="main")
    cpus = [call.request.config.linux.resources.cpuset_cpus for call in calls[:2]]
    expect_equal(node, cpus[0], cpus[1], "CPUs of both instances")
    expect_equal(node, told(node, "main"), [], "CPU sets in updates of the container")


@conformance(id="cpus-shortage", rules=["CG-081", "CG-080"], needs=[STATUS], node_config=STATIC)
async def too_many_cpus_are_refused(node: Node) -> None:
    """A pod that requests more CPUs than are free is Failed, and the message says so."""
    await node.apply_static(pod("web", guaranteed("main", "1000")))
    await node.run_until(
        lambda: node.phase("web") == "Failed", within_s=limits.START_S, what="web is refused"
    )
    status = (node.pod("web") or {})["status"]
    expect_equal(node, status["reason"], "UnexpectedAdmissionError", "reason")
    start, end = (
        "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: "
        "requested=1000, available=",
        ", which is unexpected",
    )
    message = status["message"]
    expect(node, message.startswith(start) and message.endswith(end), f"message {message!r}")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")


@conformance(
    id="cpus-pod-quota", rules=["CG-031", "CG-081"], needs=[STATUS, Feature.CGROUPS],
    node_config=STATIC, since="1.33",
)  # fmt: skip
async def pods_with_cpus_of_their_own_have_no_quota(node: Node) -> None:
    """If one container has CPUs of its own, the cgroup and the sandbox of its pod have no CPU
    quota; if none has, the quota is the sum of the limits."""
    own = pod("web", guaranteed("main", "1"), guaranteed("part", "200m"))
    group = await cgroup_of(node, own)
    expect_equal(node, node.cgroups.cpu_quota_us(*group), None, "CFS quota of the pod's cgroup")
    sandbox = node.calls("RunPodSandbox", pod="web")[-1].request.config.linux.resources
    expect_equal(node, sandbox.cpu_quota, -1, "CFS quota of the sandbox")
    expect_equal(node, created(node, "part").cpu_quota, 20_000, "CFS quota of the container part")
    group = await cgroup_of(node, pod("other", guaranteed("fifth", "200m")))
    expect_equal(node, node.cgroups.cpu_quota_us(*group), 20_000, "CFS quota of the other cgroup")


@conformance(id="cpus-given-again", rules=["CG-081"], needs=[STATUS, NODE], node_config=STATIC,
    machine={"sockets": 1, "cores": 4, "threads": 1})  # fmt: skip
async def cpus_of_a_pod_that_is_gone_can_be_given_again(node: Node) -> None:
    """CPUs that a pod had, of its own or for an init container, are free for the next one when it
    is gone, however often: of four CPUs one is shared, and pods of three follow each other."""
    for name in ("one", "two", "three"):
        first = guaranteed("first", "3", exits(0, after_s=0.5))
        await node.apply_static(pod(name, guaranteed("main", "3"), init=[first], grace_s=1))
        await node.wait_running(name, "main")
        own = parse_cpuset(
            node.calls("CreateContainer", pod=name)[-1].request.config.linux.resources.cpuset_cpus
        )
        expect_equal(node, len(own), 3, f"CPUs of {name}")
        await node.remove_static(name)
        await node.run_until(
            lambda name=name: node.count("RemovePodSandbox", pod=name) or node.pod(name) is None,  # type: ignore[misc]
            within_s=1 + limits.STOP_S + 2 * limits.HOUSEKEEPING_S,
            what=f"{name} is gone",
        )
        await node.run_for(limits.HOUSEKEEPING_S + limits.NOTICE_S)


@conformance(
    id="cpus-of-unheard-pods", rules=["SRC-071.5", "CG-081"],
    needs=[STATUS, NODE, Feature.API, Feature.RESTART],
    node_config=STATIC, machine={"cores": 4, "memory_bytes": 8 << 30},
)  # fmt: skip
async def cpus_of_pods_that_are_not_known_yet_stay_theirs(node: Node) -> None:
    """A restarted kubelet that cannot ask the API server for its pods gives their CPUs to nobody: a
    static pod that comes meanwhile gets the one that is left, and another one shares what is not
    anybody's own."""
    await node.api.create_pod(pod("job", guaranteed("main", "2")))
    await node.wait_running("job")
    own = parse_cpuset(created(node, "main").cpuset_cpus)
    await node.kubelet.stop()
    with node.api.down():
        await node.kubelet.start()
        await node.apply_static(pod("web", guaranteed("second", "1")))
        await node.wait_running("web", "second")
        await node.apply_static(pod("other", container("sharing")))
        await node.wait_running("other", "sharing")
        for name in ("second", "sharing"):
            given = parse_cpuset(created(node, name).cpuset_cpus)
            expect(node, given and not given & own, f"{name} has none of job's CPUs", sorted(given))
        entries = json.loads(node.machine.read_root_file("cpu_manager_state")).get("entries", {})
        expect_equal(node, len(entries), 2, "entries of the state file")
    expect_equal(node, node.count("StopContainer", pod="job"), 0, "stops of job")
