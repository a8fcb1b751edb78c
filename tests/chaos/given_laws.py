"""No user ID, CPU, device, port or memory is given twice: what the runtime says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations
from typing import Any

from crash_runs import is_running
from given_plan import Asking
from node_world import Node, Tap

from kubeobjects.quantity import NANO, parse_integer
from refkubelet.model.cpuset import parse_cpuset

GIVING = ("RunPodSandbox", "StartContainer", "UpdateContainerResources")
MIB = 1 << 20


class GivenOnce(Tap):
    """Looks after every call that gives something, and notes what two have; `Tracebacks` tell it of
    unexpected errors."""

    def __init__(self, node: Node, pods: Iterable[Asking]) -> None:
        self._node = node
        self._pods = {pod.name: pod for pod in pods}
        self.wrong: list[str] = []

    async def after(self, method: str) -> None:
        if method in GIVING:
            self.look()

    def look(self) -> None:
        """Note what is given twice now, each thing once."""
        for text in doubles(self._node, self._pods):
            self.tell(text)

    def tell(self, text: str) -> None:
        """Note that something is wrong, each thing once."""
        if not any(said.endswith(text) for said in self.wrong):
            self.wrong.append(f"{self._node.clock.monotonic_s():.3f}: {text}")


def doubles(node: Node, pods: Mapping[str, Asking]) -> Iterator[str]:
    """What two pods that live have at once."""
    running = [c for c in node.cri.containers() if is_running(c)]
    used = {c.sandbox.id for c in running}
    live = [box for box in node.cri.sandboxes() if box.ready or box.id in used]
    yield from _users(live)
    yield from _twice("cgroup", ((s.config.linux.cgroup_parent, _uid(s)) for s in live))
    active = _active_uids(node)  # the port of one that ends meanwhile, nobody waits for
    yield from _twice(
        "port",
        (
            (str(port.host_port), _uid(box))
            for box in live
            if box.ready and _uid(box) in active
            for port in box.config.port_mappings
            if port.host_port
        ),
    )
    yield from _twice("device", ((d, c.id) for c in running for d in _devices(c)))
    alone = [c for c in running if pods[c.pod.name].cpus]
    yield from _twice("CPU", ((str(cpu), c.id) for c in alone for cpu in cpus_of(c)))
    yield from _memory(node, running, pods)


def _active_uids(node: Node) -> set[str]:
    """The pods that the kubelet counts when it admits others (LIFE-012)."""
    pods = node.kubelet.loop.handlers.new_pods.active_pods()
    return {str(pod.metadata.uid) for pod in pods if pod.metadata is not None}


def _uid(sandbox: Any) -> str:
    return str(sandbox.config.metadata.uid)


def _users(live: Iterable[Any]) -> Iterator[str]:
    """Pods whose ranges of user IDs overlap."""
    ranges = [
        (ids.host_id, ids.host_id + ids.length, _uid(box), box.config.metadata.name)
        for box in live
        for ids in box.config.linux.security_context.namespace_options.userns_options.uids
    ]
    for one, other in combinations(sorted(ranges), 2):
        if one[2] != other[2] and other[0] < one[1]:
            yield f"user IDs of {one[3]} and {other[3]}: {one[:2]}, {other[:2]}"


def _twice(what: str, given: Iterable[tuple[str, str]]) -> Iterator[str]:
    """`given`: a thing, and who has it."""
    for thing, count in Counter(thing for thing, _ in {*given}).items():
        if thing and count > 1:
            yield f"{what} {thing} is given {count} times"


def _devices(container: Any) -> list[str]:
    told = [bytes(e.value).decode() for e in container.config.envs if e.key.startswith("DEVICES_")]
    return [device for text in told for device in text.split(",")]


def cpus_of(container: Any) -> frozenset[int]:
    """The CPUs that the runtime lets it use; none: all."""
    return frozenset(parse_cpuset(container.resources.cpuset_cpus))


def _memory(node: Node, running: Iterable[Any], pods: Mapping[str, Asking]) -> Iterator[str]:
    """Groups of NUMA nodes that have less memory, or fewer huge pages, than those ask for that may
    use no other."""
    asked = []
    for container in running:
        plan, nodes = pods[container.pod.name], parse_cpuset(container.resources.cpuset_mems)
        if plan.cpus and nodes:
            asked.append((frozenset(nodes), plan))
    there = {n.id: n for n in node.cri.node.topology().nodes}
    for group in chain.from_iterable(combinations(sorted(there), n) for n in range(1, 3)):
        mine = [plan for nodes, plan in asked if nodes <= {*group}]
        memory = sum(_bytes(plan.memory) for plan in mine)
        pages = sum(_bytes(plan.hugepages) for plan in mine if plan.hugepages)
        if memory > sum(there[n].memory_bytes for n in group):
            yield f"memory of nodes {group}: {memory >> 20} MiB"
        if pages > sum(p.pages * p.page_bytes for n in group for p in there[n].hugepages):
            yield f"huge pages of nodes {group}: {pages >> 20} MiB"


def _bytes(text: str) -> int:
    return parse_integer(text)


def left_shared(node: Node, pods: Mapping[str, Asking]) -> Iterator[str]:
    """Containers that, although nothing happens, share the CPUs that another has alone."""
    running = [c for c in node.cri.containers() if is_running(c)]
    for one in running:
        for other in running:
            if pods[one.pod.name].cpus and one is not other and cpus_of(one) & cpus_of(other):
                yield f"{other.pod.name} may use CPUs of {one.pod.name}"


def too_much(node: Node, pods: Mapping[str, Asking]) -> Iterator[str]:
    """What all that runs asks for, where the node has less of it."""
    plans = {c.pod.uid: pods[c.pod.name] for c in node.cri.containers() if is_running(c)}
    facts = node.kubelet.deps.node.facts
    assert facts is not None
    cpu = sum(4 * plan.cpus or 1 for plan in plans.values()) * NANO // 4
    memory = sum(_bytes(plan.memory) for plan in plans.values()) * NANO
    for name, sum_ in (("cpu", cpu), ("memory", memory)):
        if sum_ > facts.allocatable[name]:
            yield f"{name}: {sum_ / NANO} of {facts.allocatable[name] / NANO}"
    if len(plans) > node.kubelet.config.max_pods:
        yield f"{len(plans)} pods run"
