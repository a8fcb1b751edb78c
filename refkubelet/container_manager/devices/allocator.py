"""Allocates devices to containers: chooses them, asks the plugin, and records them in the ledger.

`Allocator.allocate` is called at admission for each container, and again at the start of a
container that has nothing in the ledger. What must never happen here: two allocations at a time; a
device stays in use after its plugin refused it.
Upstream: pkg/kubelet/cm/devicemanager/manager.go: Allocate, allocateContainerResources,
GetDeviceRunContainerOptions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from kubeobjects.quantity import NANO
from refkubelet.container_manager.devices import convert
from refkubelet.container_manager.devices.choose import (
    Nearness,
    Pick,
    Unavailable,
    Want,
    by_nearness,
    check_unchanged,
    still_needed,
)
from refkubelet.container_manager.devices.inventory import Inventory
from refkubelet.container_manager.devices.ledger import Ledger
from refkubelet.container_manager.devices.plugins import Plugin, PluginDirectory, PluginError
from refkubelet.container_manager.devices.types import (
    NO_SETTINGS,
    Allotment,
    ContainerSettings,
    by_node,
    combined,
)
from refkubelet.container_manager.providers.hints import Affinities, AllocationError
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers, is_plain_init, uid
from refkubelet.model.resources import container_limits
from refkubelet.telemetry.metrics import Durations
from simclock import Clock

log = logging.getLogger(__name__)


class DeviceDeps(Struct, frozen=True):
    """What the device manager works with."""

    clock: Clock  # for plugins that went, and how long they take
    plugins: PluginDirectory  # where plugins register
    root_dir: Path
    """The kubelet's directory, with the checkpoint."""
    active_pods: Callable[[], tuple[Pod, ...]]
    """The active pods (LIFE-012)."""
    sources_ready: Callable[[], bool]
    """Whether all sources have delivered their pods (SRC-070)."""
    running: Callable[[], Awaitable[Iterable[tuple[str, str]]]]
    """The running containers, as (pod UID, container name)."""
    affinities: Callable[[], Affinities | None] = lambda: None
    """The merged hints; None: nothing is aligned."""
    still_runs: Callable[[str], bool] = lambda pod_uid: False
    """Whether something of the pod with that UID, which is not active any more, may still run; its
    devices are free afterwards."""
    numa_nodes: Callable[[], tuple[int, ...]] = lambda: (0,)
    """The machine's NUMA nodes."""
    health_changed: Callable[[str], None] = lambda pod_uid: None
    """Called with the UID of a pod when the health of its devices changes."""


@dataclass(slots=True)
class DeviceMetrics:
    """The metrics of device plugins, by resource (CG-084): the number of registrations, and the
    durations of Allocate."""

    registrations: Counter[str] = field(default_factory=Counter)
    allocations: dict[str, Durations] = field(default_factory=dict)

    def allocated(self, resource: str, took_s: float) -> None:
        """Count a call of Allocate, successful or not."""
        self.allocations.setdefault(resource, Durations()).add(took_s)


class Allocator:
    """Allocates devices of the inventory and records them in the ledger. `was_running`: whether the
    container (pod UID, name) ran when the kubelet started; `save`: writes the ledger to its file;
    raises OSError."""

    def __init__(
        self,
        inventory: Inventory,
        ledger: Ledger,
        deps: DeviceDeps,
        *,
        was_running: Callable[[str, str], Awaitable[bool]],
        save: Callable[[], None],
    ) -> None:
        self._inventory = inventory
        self._ledger = ledger
        self._deps = deps
        self._was_running = was_running
        self._save = save
        self.metrics = DeviceMetrics()
        self._in_use = ledger.in_use()
        self._one_at_a_time = asyncio.Lock()
        self._reusable_of = ""  # the pod to which `_reusable` belongs
        self._reusable: dict[str, frozenset[str]] = {}

    def restored(self) -> None:
        """Note that the ledger has been read from its file."""
        self._in_use = self._ledger.in_use()

    def is_device(self, resource: str) -> bool:
        """Whether a plugin has this resource, or a container still has devices of it."""
        return self._inventory.stock(resource) is not None or resource in self._in_use

    def wanted(self, container: Container) -> Iterator[tuple[str, int]]:
        """The devices that a container requests: resource and number."""
        for resource, amount in container_limits(container).items():
            if self.is_device(resource):
                yield resource, -(-amount // NANO)

    def available(self, resource: str) -> frozenset[str]:
        """The healthy devices that are not in use."""
        stock = self._inventory.stock(resource)
        return stock.healthy - self._in_use.get(resource, set()) if stock else frozenset()

    def reusable(self, pod_uid: str, resource: str) -> frozenset[str]:
        """The devices of the pod's init containers, which its next containers can reuse."""
        return self._reusable.get(resource, frozenset()) if pod_uid == self._reusable_of else _NONE

    def release(self) -> None:
        """Take back the devices of pods that are no longer active and of which nothing runs, if all
        sources are ready."""
        if not self._ledger.pods or not self._deps.sources_ready():
            return
        active = {uid(pod) for pod in self._deps.active_pods()}
        still_runs = self._deps.still_runs
        over = [each for each in self._ledger.pods if each not in active and not still_runs(each)]
        if over:
            log.info("devices of pods that have ended are free again: %s", ", ".join(over))
            self._ledger.remove(over)
            self._in_use = self._ledger.in_use()

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Allocate the container's devices, one call at a time. Raises `AllocationError`."""
        async with self._one_at_a_time:
            if self._reusable_of != uid(pod):
                self._reusable_of, self._reusable = uid(pod), {}
            try:
                await self._allocate(pod, container)
            except (Unavailable, PluginError) as error:
                raise AllocationError(str(error)) from None
            finally:  # devices may have been taken back meanwhile, or the call was cancelled
                self._in_use = self._ledger.in_use()
            self._leave_to_next(pod, container)

    async def _allocate(self, pod: Pod, container: Container) -> None:
        """Pick devices of each wanted resource, ask its plugin, and save the ledger."""
        wishes = list(self.wanted(container))
        if wishes:
            self.release()
        keeps = bool(wishes) and await self._keeps_devices(pod, container)
        changed = False
        for resource, count in wishes:
            had = self._ledger.ids(uid(pod), container.name, resource)
            want = Want(
                pod_uid=uid(pod),
                container=container.name,
                resource=resource,
                count=count,
                had=had,
            )
            check_unchanged(want)
            if not keeps and (ids := await self._pick(want)):
                await self._ask_plugin(want, ids)
                changed = True
        if changed:
            try:
                self._save()
            except OSError as error:
                raise AllocationError(f"failed to write checkpoint file: {error}") from None

    async def _keeps_devices(self, pod: Pod, container: Container) -> bool:
        """Whether this is a restart of the kubelet and the container has its devices already: it
        runs, or it is in the ledger, has ended, and others of its pod run (CG-084.7)."""
        if self._deps.sources_ready():
            return False
        names = [container.name]
        if self._ledger.of_container(uid(pod), container.name):
            names = [each.name for each in containers(pod)]
        return any([await self._was_running(uid(pod), name) for name in names])

    def _leave_to_next(self, pod: Pod, container: Container) -> None:
        """Make the devices of a plain init container reusable; those that another container took
        are no longer reusable."""
        ends = is_plain_init(pod, container.name)
        for resource, allotment in self._ledger.of_container(uid(pod), container.name).items():
            ids = self._reusable.get(resource, frozenset())
            self._reusable[resource] = ids | allotment.ids if ends else ids - allotment.ids

    async def _pick(self, want: Want) -> list[str]:
        """Choose the devices to ask the plugin for; none if the container has them already. Raises
        `Unavailable`."""
        stock = self._inventory.stock(want.resource)
        pick = Pick(still_needed(want, stock.healthy if stock else None))
        reusable = self._reusable.get(want.resource, frozenset())
        if pick.needed == 0 or self._take(want, pick, reusable):
            return pick.taken
        available = self.available(want.resource)
        if len(available) < pick.needed:
            raise Unavailable(
                f"requested number of devices unavailable for {want.resource}. "
                f"Requested: {pick.needed}, Available: {len(available)}"
            )
        await self._pick_near(want, pick, available)
        return pick.taken

    async def _pick_near(self, want: Want, pick: Pick, available: AbstractSet[str]) -> None:
        """Choose the rest: devices near the hint first, and among equals those that the plugin
        prefers. Raises `Unavailable`."""
        near = self._nearness(want, available)
        if pick.needed < len(near.aligned):
            preferred = await self._preferred(want, near.aligned, pick)
            groups = [preferred & near.aligned, near.aligned]
        else:
            if self._take(want, pick, near.aligned):
                return
            preferred = await self._preferred(want, available, pick)
            groups = [preferred & available, near.unaligned, near.no_affinity]
        if not any(self._take(want, pick, group) for group in groups):
            raise Unavailable(
                "unexpectedly allocated less resources than required. "
                f"Requested: {want.count}, Got: {want.count - pick.needed}"
            )

    def _nearness(self, want: Want, available: AbstractSet[str]) -> Nearness:
        affinities = self._deps.affinities()
        hint = affinities.affinity(want.pod_uid, want.container) if affinities else None
        devices = self._inventory.devices(want.resource)
        return by_nearness(available, devices, hint.affinity if hint else None)

    def _take(self, want: Want, pick: Pick, ids: AbstractSet[str]) -> bool:
        enough = pick.take(ids)
        self._in_use.setdefault(want.resource, set()).update(pick.taken)
        return enough

    async def _preferred(self, want: Want, among: AbstractSet[str], pick: Pick) -> frozenset[str]:
        plugin = self._inventory.plugin(want.resource)
        if plugin is None:
            raise Unavailable(
                f"endpoint not found in cache for a registered resource: {want.resource}"
            )
        return await plugin.preferred(among | set(pick.taken), pick.taken, want.count)

    async def _ask_plugin(self, want: Want, ids: list[str]) -> None:
        plugin = self._inventory.plugin(want.resource)
        if plugin is None:
            raise Unavailable(f"unknown Device Plugin {want.resource}")
        began_s = self._deps.clock.monotonic_s()
        try:
            answer = await plugin.allocate(ids)
        finally:
            self.metrics.allocated(want.resource, self._deps.clock.monotonic_s() - began_s)
        devices = by_node(ids, self._inventory.devices(want.resource))
        self._ledger.insert(want.pod_uid, want.container, want.resource, Allotment(devices, answer))

    async def settings(self, pod: Pod, container: Container) -> ContainerSettings:
        """The settings that the container's devices add to its configuration; tells their plugins
        that it is about to start. Raises `AllocationError`."""
        again = False
        for resource, count in self.wanted(container):
            if count == 0:
                continue
            await self._pre_start(pod, container, resource)
            had = self._ledger.ids(uid(pod), container.name, resource)
            again = again or (had is None and self._is_active(pod))
        if again:
            await self.allocate(pod, container)
        allotments = self._ledger.of_container(uid(pod), container.name)
        if not allotments:
            return NO_SETTINGS
        return combined(convert.settings(each.answer) for each in allotments.values())

    async def _pre_start(self, pod: Pod, container: Container, resource: str) -> None:
        plugin = self._inventory.plugin(resource)
        if plugin is None:
            raise AllocationError(
                f"endpoint not found in cache for a registered resource: {resource}"
            )
        if not plugin.options.pre_start_required:
            return
        ids = self._ledger.ids(uid(pod), container.name, resource)
        if ids is None:
            raise AllocationError(
                f"no devices found allocated in local cache for pod {uid(pod)}, "
                f"container {container.name}, resource {resource}"
            )
        await _told(plugin, ids)

    def _is_active(self, pod: Pod) -> bool:
        return any(uid(active) == uid(pod) for active in self._deps.active_pods())


_NONE: frozenset[str] = frozenset()


async def _told(plugin: Plugin, ids: frozenset[str]) -> None:
    try:
        await plugin.pre_start(ids)
    except PluginError as error:
        raise AllocationError(str(error)) from None
