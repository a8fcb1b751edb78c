"""What containers have to themselves, and what pods were allocated of the node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from refkubelet.admission.features import INIT_RESIZES, POD_LEVEL_RESIZES
from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.allocation.manager import AllocationDeps, AllocationManager
from refkubelet.allocation.state import ACTUATED_FILE, ALLOCATED_FILE, ResourceState
from refkubelet.checkpoints.content import StateFileError
from refkubelet.config import ConfigError
from refkubelet.container_manager.devices.allocator import DeviceDeps
from refkubelet.container_manager.devices.health import GATE as DEVICE_HEALTH
from refkubelet.container_manager.devices.manager import DeviceManager
from refkubelet.container_manager.providers.active import ActiveContainers, running_containers
from refkubelet.container_manager.providers.hints import Affinities
from refkubelet.container_manager.resource_managers import ResourceDeps, ResourceManagers
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.server.pod_resources.answers import PodResourcesLister
from refkubelet.wiring.base import Base
from refkubelet.wiring.sources import Sources


class Allocation(Struct, frozen=True):
    """`manager`: what pods were allocated, which is kept in `allocated`; `actuated`: what their
    containers were given; `conditions`: how their resizes are."""

    manager: AllocationManager
    allocated: ResourceState
    actuated: ResourceState
    conditions: ResizeConditions

    def save_at_end(self) -> None:
        """Write what the checkpoints lack (CG-060); a failure is logged."""
        for state in (self.allocated, self.actuated):
            state.save_at_end()


class Resources(Struct, frozen=True):
    """`devices` None: no plugin can register; `pod_resources`: which pod has what, for monitors."""

    devices: DeviceManager | None
    managers: ResourceManagers
    pod_resources: PodResourcesLister
    allocation: Allocation


def build_resources(base: Base, sources: Sources) -> Resources:
    """Raises `ConfigError`: policies that cannot be, or state files that cannot be used."""
    deps, later = base.deps, base.later
    still_runs = _still_runs(base, sources)
    devices = _devices(base, sources, still_runs, affinities=lambda: managers.topology)
    active = ActiveContainers(later.allocated_pods, sources.seen.ready, still_runs)
    managers = ResourceManagers(
        base.config,
        ResourceDeps(
            clock=deps.clock,
            machine=deps.machine,
            root_dir=deps.directories.root,
            runtime=base.client,
            active=active,
            status=later.status,
            metrics=base.metrics.exclusive,
        ),
        devices,
    )
    pod_resources = PodResourcesLister(
        active_pods=later.active_pods,
        pods=sources.pods.pods,
        devices=devices,
        cpus=managers.cpus,
        memory=managers.memory,
    )
    return Resources(devices, managers, pod_resources, _allocation(base, sources))


def _still_runs(base: Base, sources: Sources) -> Callable[[str], bool]:
    """Whether something of the pod with that UID may still run, although no source has it any more,
    or it was refused after a restart of the kubelet: what it has alone is not free yet (CG-080.3).
    Not where a static pod of the same name, which waits for its end, may take it over."""

    def still_runs(pod_uid: str) -> bool:
        record = base.later.workers().record(pod_uid)
        if record is None:
            entry = base.later.cache().known(pod_uid)
            return entry is not None and bool(entry.status.running())
        name, _, namespace = record.full_name.rpartition("_")
        waiting = record.static and sources.pods.by_name(namespace, name) is not None
        return not record.terminated and not waiting

    return still_runs


def _devices(
    base: Base,
    sources: Sources,
    still_runs: Callable[[str], bool],
    *,
    affinities: Callable[[], Affinities | None],
) -> DeviceManager | None:
    deps, later = base.deps, base.later
    if deps.plugins.devices is None:
        return None
    return DeviceManager(
        DeviceDeps(
            deps.clock,
            deps.plugins.devices,
            deps.directories.root,
            active_pods=later.active_pods,
            sources_ready=sources.seen.ready,
            running=lambda: running_containers(later.runtime()),
            affinities=affinities,
            still_runs=still_runs,
            health_changed=later.sync_by_uid,
            numa_nodes=lambda: tuple(node.id for node in deps.machine.topology().nodes),
        )
    )


def device_health(base: Base, resources: Resources) -> Callable[[Pod, PodStatus], PodStatus]:
    """What puts the health of a pod's devices into its status, where it is shown (CG-084)."""
    shows_health = base.gate(DEVICE_HEALTH, default=True)
    devices = resources.devices
    return devices.with_health if devices and shows_health else lambda pod, status: status


def _allocation(base: Base, sources: Sources) -> Allocation:
    deps, later = base.deps, base.later
    conditions = ResizeConditions(deps.clock)
    actuated = _resource_state(deps.directories.root / ACTUATED_FILE)
    allocated = _resource_state(deps.directories.root / ALLOCATED_FILE)
    manager = AllocationManager(
        allocated,
        AllocationDeps(
            deps.clock,
            base.recorder,
            conditions,
            pod=sources.pods.get,
            admit=lambda pod: later.handlers().new_pods.admission.resize(pod),
            sync=lambda pod: later.handlers().handle_pod_syncs([pod]),
            sources_ready=sources.seen.ready,
            metrics=base.metrics.resizes,
            pod_level_resizes=base.gate(POD_LEVEL_RESIZES, default=True),
            init_resizes=base.gate(INIT_RESIZES, default=True),
        ),
    )
    return Allocation(manager, allocated, actuated, conditions)


def _resource_state(path: Path) -> ResourceState:
    """Raises `ConfigError`: the kubelet does not start with a file that it cannot use."""
    try:
        return ResourceState(path)
    except StateFileError as error:
        raise ConfigError(str(error)) from None
