"""The container manager: makes, changes and removes cgroups.

At start the cgroups above the pods are made and limited. Every minute, before a pod's cgroup is
made and after a pod was killed, the CPU shares of the QoS classes are updated (CG-036). A pod's
cgroup is made before its sandbox and removed after its end (CG-040, CG-042). Housekeeping removes
cgroups of unknown pods (CG-043). Files are read and written directly, because the kernel answers in
microseconds, unless it must reclaim memory first. What must never happen here: a pod fails because
a limit could not be written (CG-040).
Upstream: pkg/kubelet/cm/container_manager_linux.go, node_container_manager_linux.go,
qos_container_manager_linux.go, pod_container_manager_linux.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kubeobjects.pods.qos import QosClass
from refkubelet.container_manager.cgroups.allocatable import enforced
from refkubelet.container_manager.cgroups.node_config import NodeCgroups, ReservedCgroup
from refkubelet.container_manager.cgroups.orphans import Orphans
from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.container_manager.cgroups.tree import CgroupTree, shown
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints
from refkubelet.model.cgroups.cpu_shares import shares_of_weight
from refkubelet.model.cgroups.limits import ResourceConfig, parse_cpu_max
from refkubelet.model.cgroups.names import (
    QOS_CGROUPS,
    CgroupName,
    CgroupNameError,
    parse_path,
    pod_cgroup,
)
from refkubelet.model.cgroups.values import (
    PodRequest,
    node_config,
    pod_request,
    qos_configs,
    resource_config_for_pod,
)
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from simclock import Clock

log = logging.getLogger(__name__)

PERIOD_S: Final = 60.0
"""How often the QoS classes are updated, and a refused limit of the node's cgroup is tried again
(CG-035, CG-036)."""
ENFORCED: Final = "NodeAllocatableEnforced"
NOT_ENFORCED: Final = "FailedNodeAllocatableEnforcement"


class ContainerManagerError(Exception):
    """The kubelet cannot start with these cgroups; the text says why."""


class ContainerManagerDeps(Struct, frozen=True):
    """What the container manager works with. `active_pods`: with allocated resources;
    `has_exclusive_cpus`: whether a container of the pod has exclusive CPUs (CG-031)."""

    clock: Clock
    recorder: EventRecorder
    active_pods: Callable[[], tuple[Pod, ...]]
    has_exclusive_cpus: Callable[[Pod], bool] = lambda pod: False


class ContainerManager:
    """The cgroups of the node. Call `start` once, before the first pod; then `run`. `kill`: sends
    SIGKILL to a process."""

    def __init__(
        self,
        node: NodeCgroups,
        tree: CgroupTree,
        kill: Callable[[int], None],
        deps: ContainerManagerDeps,
    ) -> None:
        self.node = node
        self._deps = deps
        self._tree = tree
        self._kill = kill
        self._classes: Mapping[QosClass, CgroupName] = {
            qos: (*node.root, *words) for qos, words in QOS_CGROUPS.items()
        }
        self._requested_by: tuple[Pod, ...] = ()
        self._requests: dict[str, tuple[Pod, PodRequest]] = {}
        self._enforced = False
        self._orphans = Orphans(tree, tuple(self._classes.values()), kill, deps.clock)
        self._complaints = Complaints(log, deps.clock)

    # The node and the classes

    def start(self) -> None:
        """Make the cgroups above the pods and limit them (CG-024..026, CG-035).

        Raises `ContainerManagerError` if that fails, or a configured cgroup is missing.
        """
        tree = self._tree
        try:
            if not tree.exists(self.node.root):
                self._complain(self.node.root, tree.create(self.node.root, self._node_config()))
            problem = tree.problem(self.node.root)
            if problem is not None:
                raise CgroupError(
                    f"error validating root container {shown(self.node.root)} : {problem}"
                )
            self._start_class("Burstable")
            self._start_class("BestEffort")
        except CgroupError as error:
            raise ContainerManagerError(str(error)) from None
        self._enforce_node()
        self.update_qos(hugepages=True)
        for cgroup in self.node.reserved_cgroups:
            self._enforce_reserved(cgroup)

    def _start_class(self, qos: QosClass) -> None:
        name, tree = self._classes[qos], self._tree
        config = qos_configs((), self.node.page_sizes)[qos]
        if not tree.exists(name):
            self._complain(name, tree.create(name, config))

    def _complain(self, name: CgroupName, problem: str | None) -> None:
        if problem is not None:
            log.error("cgroup %s was made without some of its limits: %s", shown(name), problem)

    def _node_config(self) -> ResourceConfig:
        node = self.node
        amounts = enforced(node.capacity, node.reserved) if node.enforce_pods else node.capacity
        return node_config(amounts, node.all_cpus)

    def _enforce_node(self) -> None:
        """Limit the cgroup of all pods. The kernel may refuse a limit below the usage until pods
        are evicted; `run` tries again."""
        recorder = self._deps.recorder
        try:
            self._tree.update(self.node.root, self._node_config())
        except CgroupError as error:
            words = " ".join(f'"{word}"' for word in self.node.root)
            message = f"Failed to update Node Allocatable Limits [{words}]: {error}"
            recorder.node_event("Warning", NOT_ENFORCED, message)
            return
        self._enforced = True
        recorder.node_event("Normal", ENFORCED, "Updated Node Allocatable limit across pods")

    def _enforce_reserved(self, cgroup: ReservedCgroup) -> None:
        """Limit a reserved cgroup (CG-035). Raises `ContainerManagerError` if it is missing."""
        recorder, tree = self._deps.recorder, self._tree
        name = parse_path(cgroup.path, tree.driver)
        config = node_config(cgroup.limits, self.node.all_cpus, cpu_only=cgroup.cpu_only)
        try:
            problem = tree.problem(name)
            if problem is None:
                tree.update(name, config)
        except (CgroupError, CgroupNameError) as error:
            problem = str(error)
        kind = f"{cgroup.title} Compressible" if cgroup.cpu_only else cgroup.title
        if problem is not None:
            message = f'Failed to enforce {kind} Cgroup Limits on "{cgroup.path}": {problem}'
            recorder.node_event("Warning", NOT_ENFORCED, message)
            raise ContainerManagerError(message)
        message = f"Updated limits on {cgroup.title.lower()} cgroup {cgroup.path}"
        recorder.node_event("Normal", ENFORCED, message)

    async def run(self) -> None:
        """Every minute, update the QoS classes and try refused limits of the node again (CG-035,
        CG-036)."""
        while True:
            await self._deps.clock.sleep(PERIOD_S)
            self.update_qos(hugepages=True)
            if not self._enforced:
                self._enforce_node()

    def update_qos(self, *, hugepages: bool = False) -> None:
        """Update the CPU shares and memory protection of the QoS classes; a failure is logged
        (CG-036). `hugepages`: write the limits of huge pages, too, which never change."""
        node = self.node
        configs = qos_configs(
            self._active_requests(),
            node.page_sizes if hugepages else (),
            memory_qos=node.memory_qos,
            reserve_memory=node.pods.reserve_memory,
        )
        complaint = "cannot update the cgroups of the QoS classes"
        for qos, config in configs.items():
            try:
                self._tree.update(self._classes[qos], config)
            except CgroupError as error:
                self._complaints.failed(complaint, error, CgroupError)
                return
        self._complaints.over(complaint)

    def _active_requests(self) -> Sequence[PodRequest]:
        """The requests of the active pods, computed once for each pod object, which never
        changes."""
        pods = self._deps.active_pods()
        if pods is self._requested_by:
            return [request for _, request in self._requests.values()]
        self._requested_by = pods
        before, self._requests = self._requests, {}
        requests = []
        for pod in pods:
            pod_uid = uid(pod)
            row = before.get(pod_uid)
            if row is None or row[0] is not pod:
                row = (pod, pod_request(pod))
            self._requests[pod_uid] = row
            requests.append(row[1])
        return requests

    # Pods

    def exists(self, pod: Pod) -> bool:
        """Whether the pod's cgroup exists in every tree that matters (CG-015)."""
        try:
            return self._tree.exists(self._name(pod))
        except CgroupNameError:
            return False

    def ensure(self, pod: Pod) -> None:
        """Make the cgroup of a pod, with its allocated resources, if it does not exist (CG-040).
        Raises `CgroupError` if it cannot be made; refused limits are only logged."""
        try:
            name = self._name(pod)
            if self._tree.exists(name):
                return
            self._complain(name, self._tree.create(name, self.config_of(pod)))
        except (CgroupError, CgroupNameError) as error:
            words = shown(name) if isinstance(error, CgroupError) else uid(pod)
            raise CgroupError(f"failed to create container for {words} : {error}") from None

    def config_of(self, pod: Pod) -> ResourceConfig:
        """The limits for the cgroup of a pod, with its allocated resources (CG-027..031)."""
        exclusive = self._deps.has_exclusive_cpus(pod)
        return resource_config_for_pod(pod, self.node.pods, exclusive_cpus=exclusive)

    async def destroy(self, pod: Pod) -> None:
        """Kill all processes in the pod's cgroup and remove it (CG-042). Raises `CgroupError`."""
        try:
            name = self._name(pod)
        except CgroupNameError:  # such a pod cannot have a cgroup
            return
        await self._tree.destroy(name, self._kill, self._deps.clock)

    def _name(self, pod: Pod) -> CgroupName:
        return pod_cgroup(self.node.root, pod)

    # For resizes of running pods (CG-065, CG-066)

    def read_config(self, pod: Pod, resource: str) -> ResourceConfig:
        """The limits of the pod's cgroup for `resource`, "cpu" or "memory"; with v2 the shares are
        computed from the weight (CG-067). Raises OSError."""
        name, read = self._name(pod), self._tree.read
        v1 = self._tree.version == 1
        if resource == "memory":
            file = "memory.limit_in_bytes" if v1 else "memory.max"
            text = read(name, "memory", file).strip()
            return ResourceConfig(memory_limit_bytes=-1 if text == "max" else int(text))
        if v1:
            shares, quota, period = (
                int(read(name, "cpu", f"cpu.{file}"))
                for file in ("shares", "cfs_quota_us", "cfs_period_us")
            )
            return ResourceConfig(shares, quota, period)
        quota, period = parse_cpu_max(read(name, "cpu", "cpu.max"))
        return ResourceConfig(shares_of_weight(int(read(name, "cpu", "cpu.weight"))), quota, period)

    def write_config(self, pod: Pod, config: ResourceConfig) -> None:
        """Write the limits that are set in `config`. Raises `CgroupError`."""
        self._tree.update(self._name(pod), config)

    def memory_usage_bytes(self, pod: Pod) -> int:
        """The memory usage of the pod's cgroup. Raises OSError."""
        return self._tree.memory_usage_bytes(self._name(pod))

    def container_memory_usage_bytes(self, pod: Pod, container_id: str) -> int:
        """The memory usage of the cgroup that the runtime made for the container below the pod's,
        which has the ID in its name (`cri-containerd-<id>.scope`). Raises OSError."""
        return self._tree.child_memory_usage_bytes(self._name(pod), container_id)

    # Cgroups of unknown pods

    def remove_orphans(self, keep: Collection[str], volumes_exist: Callable[[str], bool]) -> None:
        """Remove, in the background, the cgroups of pods whose UID is not in `keep`
        (CG-043)."""
        self._orphans.remove(keep, volumes_exist)

    async def stop(self) -> None:
        """Cancel the removals that run in the background."""
        await self._orphans.stop()
