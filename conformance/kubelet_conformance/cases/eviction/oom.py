"""Which containers the kernel's OOM killer takes first, and what the kubelet reports about its
victims."""

from typing import Any

from fakecri import uses
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Container, PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, Level, conformance
from kubeobjects.quantity import NANO, parse_nano

API, STATUS, NODE = Feature.API, Feature.STATUS, Feature.NODE_RESOURCES
MI = 1024 * 1024
NODE_CRITICAL: dict[str, Any] = {
    "priority": 2000001000,
    "priorityClassName": "system-node-critical",
}
CRITICAL: dict[str, Any] = {"priority": 2000000000, "priorityClassName": "system-cluster-critical"}


def asks(name: str, memory: str = "", cpu: str = "", *, limited: bool = False) -> Container:
    """A container with requests, and with `limited` the same limits."""
    amounts = {key: text for key, text in (("memory", memory), ("cpu", cpu)) if text}
    resources = {"requests": amounts} | ({"limits": amounts} if limited else {})
    return container(name, runs(), resources=resources)


async def oom_killed(node: Node, name: str) -> None:
    """Expect that the kernel kills that container of the pod `web`, and that it is started
    again."""
    await node.run_until(
        lambda: node.container("web", name).get("restartCount", 0) >= 1,
        within_s=2 * limits.START_S,
        what=f"a restart of {name}",
    )
    last = node.container("web", name)["lastState"]["terminated"]
    expect_equal(node, (last["exitCode"], last["reason"]), (137, "OOMKilled"), "last state")


async def scores(node: Node, plan: PodPlan) -> dict[str, int]:
    """The oom_score_adj that the runtime was given for the pod's containers, by name."""
    await node.api.create_pod(plan)
    name = plan.name
    await node.run_until(lambda: node.api.phase(name) == "Running", within_s=limits.START_S)
    configs = [call.request.config for call in node.calls("CreateContainer", pod=name)]
    return {config.metadata.name: config.linux.resources.oom_score_adj for config in configs}


async def memory_bytes(node: Node) -> int:
    """The memory of the node."""
    await node.run_until(lambda: node.api.capacity("memory"), within_s=limits.START_S)
    return parse_nano(node.api.capacity("memory")) // NANO


@conformance(id="oom-score-classes", rules=["EVIC-120", "LIFE-140"], needs=[API], alone=True)
async def the_class_of_a_pod_decides_which_one_is_killed(node: Node) -> None:
    """When memory runs out, containers of BestEffort pods are killed first, Burstable ones next,
    Guaranteed and node-critical ones last."""
    plans = {
        "sure": (pod("sure", asks("main", "8Mi", "10m", limited=True)), -997),
        "besteffort": (pod("besteffort"), 1000),
        "cpu-only": (pod("cpu-only", asks("main", cpu="10m")), 999),
        "node-critical": (pod("node-critical", **NODE_CRITICAL), -997),
        "cluster-critical": (pod("cluster-critical", **CRITICAL), 1000),
        "only-named": (pod("only-named", priorityClassName="system-node-critical"), 1000),
    }
    actual = {name: (await scores(node, plan))["main"] for name, (plan, _) in plans.items()}
    expect_equal(node, actual, {name: score for name, (_, score) in plans.items()}, "oom_score_adj")


@conformance(id="oom-score-share", rules=["EVIC-120"], needs=[API], alone=True)
async def a_burstable_pod_is_spared_by_its_share_of_the_memory(node: Node) -> None:
    """The score of a Burstable container is 1000 minus the thousandths of the node's memory that it
    requests, rounded down."""
    total = await memory_bytes(node)
    parts = {"a": total // 4, "b": total // 3, "c": total // 2000, "d": 1}
    plan = pod("web", *(asks(name, str(amount)) for name, amount in parts.items()))
    expected = {name: min(999, 1000 - 1000 * amount // total) for name, amount in parts.items()}
    expect_equal(node, await scores(node, plan), expected, "oom_score_adj")


@conformance(id="oom-score-sidecar", rules=["EVIC-120"], needs=[API], since="1.32", alone=True)
async def a_sidecar_dies_no_earlier_than_the_smallest_regular_container(node: Node) -> None:
    """A sidecar with a small request has the score of the regular container with the smallest
    request, so that it is not killed earlier."""
    total = await memory_bytes(node)
    small, large = total // 20, total // 5
    sidecar: dict[str, Any] = {"restartPolicy": "Always"}
    inits = [
        container(name, runs(), resources={"requests": {"memory": str(amount)}}, **sidecar)
        for name, amount in (("helper", small), ("hungry", total // 4))
    ]
    plan = pod("web", asks("a", str(large)), asks("b", str(2 * large)), init=inits)
    by_name = await scores(node, plan)
    regular = 1000 - 1000 * large // total
    own = 1000 - 1000 * (total // 4) // total
    expect_equal(
        node, (by_name["helper"], by_name["hungry"]), (regular, own), "scores of the sidecars"
    )


# Kubelet 1.36.2 without cgroups of pods dies of pods with resources of their own.
@conformance(
    id="oom-score-pod-level", rules=["EVIC-120"], needs=[API, Feature.CGROUPS], since="1.34"
)
async def what_only_the_pod_requests_is_shared_by_its_containers(node: Node) -> None:
    """Memory that the pod requests beyond its containers counts for each of them in equal parts."""
    total = await memory_bytes(node)
    whole, own = total // 2, total // 10
    amounts = {"requests": {"memory": str(whole), "cpu": "10m"}}
    plan = pod("web", asks("a", str(own)), container("b", runs()), resources=amounts)
    share = (whole - own) // 2
    expected = {"a": 1000 - 1000 * (own + share) // total, "b": 1000 - 1000 * share // total}
    expect_equal(node, await scores(node, plan), expected, "oom_score_adj")


@conformance(id="oom-killed", rules=["EVIC-123"], needs=[STATUS])
async def a_container_above_its_limit_is_restarted_as_after_any_failure(node: Node) -> None:
    """A container that the kernel kills at its memory limit shows exit code 137 and OOMKilled, and
    is started again."""
    limited: dict[str, Any] = {"resources": {"limits": {"memory": "16Mi"}}}
    eater = container("main", runs(uses(memory_bytes=64 * MI)), **limited)
    await node.apply_static(pod("web", eater, container("other", runs())))
    await oom_killed(node, "main")
    expect(node, node.running("web", "other"), "the other container runs on")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


async def whole_group(node: Node) -> str | None:
    """The value of memory.oom.group that the runtime was given; None when it was given none."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    unified = node.calls("CreateContainer", pod="web")[0].request.config.linux.resources.unified
    group: str | None = unified.get("memory.oom.group")
    return group


@conformance(id="oom-group-v1", rules=["EVIC-122"], needs=[STATUS, Feature.CGROUP_V1])
async def on_cgroup_v1_single_processes_are_killed(node: Node) -> None:
    """With cgroup v1 the runtime is not asked to have all processes of a container killed
    together."""
    expect_equal(node, await whole_group(node), None, "memory.oom.group")


@conformance(id="oom-group-v2", rules=["EVIC-122"], needs=[STATUS, Feature.CGROUP_V2])
async def on_cgroup_v2_all_of_a_container_is_killed(node: Node) -> None:
    """With cgroup v2 all processes of a container that reaches its limit are killed together."""
    expect_equal(node, await whole_group(node), "1", "memory.oom.group")


@conformance(
    id="oom-group-single",
    rules=["EVIC-122"],
    needs=[STATUS, Feature.CGROUP_V2],
    node_config={"singleProcessOOMKill": True},
    since="1.32",
)
async def single_processes_can_be_asked_for(node: Node) -> None:
    """With singleProcessOOMKill the kernel kills single processes on cgroup v2, too."""
    expect_equal(node, await whole_group(node), None, "memory.oom.group")


BEGIN = "eater invoked oom-killer: gfp_mask=0x1100cca, order=0, oom_score_adj=1000"
WHERE = "nodemask=(null),cpuset=/,mems_allowed=0"
VICTIM = "task=eater,pid=4711,uid=0"
GLOBAL = (
    BEGIN,
    f"oom-kill:constraint=CONSTRAINT_NONE,{WHERE},global_oom,task_memcg=/kubepods/a,{VICTIM}",
    "Out of memory: Killed process 4711 (eater) total-vm:9kB, anon-rss:8kB, UID:0",
)
AT_LIMIT = (
    BEGIN,
    f"oom-kill:constraint=CONSTRAINT_MEMCG,{WHERE},oom_memcg=/kubepods/a,task_memcg=/kubepods/a/b,"
    f"{VICTIM.replace('4711', '4712')}",
    "Memory cgroup out of memory: Killed process 4712 (eater) total-vm:9kB, anon-rss:8kB",
)


@conformance(id="oom-system", rules=["EVIC-124"], level=Level.SHOULD, needs=[API, NODE])
async def a_machine_out_of_memory_is_an_event_of_the_node(node: Node) -> None:
    """When the whole machine runs out of memory the node gets an event that names the victim."""
    await node.api.create_pod(pod("web"))
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    node.machine.kernel_says(*AT_LIMIT)
    node.machine.kernel_says(*GLOBAL)
    await node.run_until(lambda: node.events("SystemOOM"), within_s=limits.START_S)
    events = node.events("SystemOOM")
    text = "System OOM encountered, victim process: eater, pid: 4711"
    rows = [(event["type"], event["involvedObject"]["kind"], event["message"]) for event in events]
    expect_equal(node, rows, [("Warning", "Node", text)], "events of system OOMs")


@conformance(
    id="oom-system-victim",
    rules=["EVIC-120", "EVIC-123", "EVIC-124"],
    level=Level.SHOULD,
    needs=[API, NODE, STATUS],
)
async def a_machine_out_of_memory_takes_a_besteffort_pod_first(node: Node) -> None:
    """When the machine is out of memory, the container of a BestEffort pod is killed though one of
    a Guaranteed pod uses more; an event names it, and it is started again."""
    sure: dict[str, Any] = {"resources": {"limits": {"memory": "512Mi", "cpu": "100m"}}}
    await node.api.create_pod(
        pod("sure", container("main", runs(uses(memory_bytes=400 * MI)), **sure))
    )
    await node.api.create_pod(pod("web", container("main", runs(uses(memory_bytes=50 * MI)))))
    await node.run_until(
        lambda: node.running("sure", "main") and node.running("web", "main"),
        within_s=limits.START_S,
        what="the containers of both pods run",
    )
    victim = node.machine.run_out_of_memory()
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount", 0) == 1,
        within_s=2 * limits.START_S,
        what="a restart of web",
    )
    last = node.container("web", "main")["lastState"]["terminated"]
    expect_equal(node, (last["exitCode"], last["reason"]), (137, "OOMKilled"), "last state")
    await node.events_arrive()
    texts = [event["message"] for event in node.events("SystemOOM")]
    expect_equal(node, texts, [f"System OOM encountered, victim process: {victim}"], "events")
    expect(node, node.running("sure", "main"), "the other pod runs on")


@conformance(id="oom-pod-limit", rules=["CG-028", "EVIC-123"], needs=[STATUS, NODE], since="1.34")
async def above_the_limit_of_a_pod_its_biggest_container_goes(node: Node) -> None:
    """When two containers together exceed the limit of their pod, the one that uses more memory is
    killed and the other keeps running; no event about the node is recorded, since the machine has
    memory left."""
    together: dict[str, Any] = {"resources": {"limits": {"memory": "64Mi", "cpu": "1"}}}
    big = container("big", runs(uses(memory_bytes=40 * MI)))
    small = container("small", runs(uses(memory_bytes=30 * MI)))
    await node.apply_static(pod("web", big, small, **together))
    await oom_killed(node, "big")
    expect_equal(node, node.container("web", "small").get("restartCount"), 0, "restarts of small")
    expect(node, node.running("web", "small"), "the other container runs on")


@conformance(id="oom-score-of-requests", rules=["EVIC-120"], needs=[API], alone=True)
async def a_limit_spares_nobody(node: Node) -> None:
    """The score of a Burstable container follows what it requests, whatever its limit; a limit
    alone counts as a request of that amount."""
    total = await memory_bytes(node)
    some, more = str(total // 8), str(total // 2)

    def sized(name: str, requests: dict[str, str], limit: str) -> Container:
        return container(
            name, runs(), resources={"requests": requests, "limits": {"memory": limit}}
        )

    plan = pod(
        "web",
        sized("small", {"memory": some}, more),
        sized("none", {"cpu": "10m"}, some),
        sized("tiny", {"memory": "1"}, more),
    )
    expected = {"small": 875, "none": 875, "tiny": 999}
    expect_equal(node, await scores(node, plan), expected, "oom_score_adj")


@conformance(
    id="oom-not-guessed", rules=["EVIC-123.1", "EVIC-123.2"], needs=[STATUS, Feature.FAULTS]
)
async def only_the_runtime_knows_of_an_oom_kill(node: Node) -> None:
    """The reason of an end is the word of the runtime: exit code 137 alone does not make it
    OOMKilled, and OOMKilled needs no such code. Nor does it change the restart policy: containers
    that never restart stay ended."""

    def reason(word: str, code: int) -> Any:
        def change(answer: Any) -> None:
            if answer.status.finished_at:
                answer.status.reason, answer.status.exit_code = word, code

        return change

    rows = {"killed": ("Error", 137), "short": ("OOMKilled", 1), "strange": ("SomethingElse", 3)}
    for name, row in rows.items():
        node.runtime.on("ContainerStatus", pod=name).changes_answer(reason(*row))
        main = container("main", exits(row[1], after_s=1))
        await node.apply_static(pod(name, main, container("other"), restartPolicy="Never"))
    await node.run_until(
        lambda: all("terminated" in node.container(name, "main").get("state", {}) for name in rows),
        within_s=2 * limits.START_S,
        what="all have ended",
    )
    ends = {name: node.container(name, "main")["state"]["terminated"] for name in rows}
    actual = {name: (end["reason"], end["exitCode"]) for name, end in ends.items()}
    expect_equal(node, actual, rows, "reason and exit code")
    await node.run_for(limits.NOTICE_S)
    starts = {name: node.count("StartContainer", pod=name, container="main") for name in rows}
    expect_equal(node, starts, dict.fromkeys(rows, 1), "starts")
