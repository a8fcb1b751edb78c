"""The device manager: plugins come and go, pods get devices, a file remembers (CG-084).

How it works. A plugin registers; the manager connects to it, asks its options, and then follows its
list of devices in a task of its own. `Inventory` holds what the plugins offer, `Ledger` who has
what, `Allocator` gives. The books are written after every change, so that the next kubelet knows
what the running containers have. Without a plugin there is no task but the one that listens.
What must never happen here: a plugin's end or a broken file touches a running pod.
Upstream: pkg/kubelet/cm/devicemanager/manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.checkpoints.errors import CheckpointError
from refkubelet.container_manager.devices import checkpoint, convert
from refkubelet.container_manager.devices.allocator import Allocator, AllocatorDeps
from refkubelet.container_manager.devices.health import with_device_health
from refkubelet.container_manager.devices.hints import device_hints, is_aligned
from refkubelet.container_manager.devices.inventory import Amounts, Inventory
from refkubelet.container_manager.devices.ledger import Ledger
from refkubelet.container_manager.devices.plugins import Plugin, PluginDirectory, PluginError
from refkubelet.container_manager.devices.registration import refusal
from refkubelet.container_manager.devices.types import (
    HEALTHY,
    NO_NODE,
    ContainerSettings,
    Device,
)
from refkubelet.container_manager.providers.hints import Affinities, Hints, TopologyHint
from refkubelet.failures import log_failure
from refkubelet.model.objects import Container, Pod, PodStatus
from refkubelet.model.pod import uid
from refkubelet.model.quantity import NANO
from refkubelet.model.resources import pod_limits
from simtime import Clock

log = logging.getLogger(__name__)

DIRECTORY: Final = "device-plugins"
DIRECTORY_MODE: Final = 0o750
GivenDevice = tuple[str, str, int | None]
"""Resource, device ID, NUMA node (None: none)."""


@dataclass(frozen=True, slots=True)
class DeviceDeps:
    """What the device manager works with. `root_dir`: the kubelet's directory; `running`: the
    containers that run, as (pod UID, container name); `health_changed`: called with the UID of a
    pod whose devices have another health now; `numa_nodes`: the machine's. The rest as in
    `AllocatorDeps`."""

    clock: Clock
    plugins: PluginDirectory
    root_dir: Path
    active_pods: Callable[[], tuple[Pod, ...]]
    sources_ready: Callable[[], bool]
    running: Callable[[], Awaitable[Iterable[tuple[str, str]]]]
    affinities: Callable[[], Affinities | None] = lambda: None
    numa_nodes: Callable[[], tuple[int, ...]] = lambda: (0,)
    health_changed: Callable[[str], None] = lambda pod_uid: None


class DeviceManager:
    """A `HintProvider`; `run` until cancelled."""

    def __init__(self, deps: DeviceDeps) -> None:
        self._deps = deps
        self._file = deps.root_dir / DIRECTORY / checkpoint.FILE_NAME
        self._inventory = Inventory()
        self._ledger = Ledger()
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._turns = count(1)
        self._turn_of: dict[str, int] = {}  # of the registration that has the resource
        self._ran_before: frozenset[tuple[str, str]] | None = None
        self._allocator = Allocator(
            self._inventory,
            self._ledger,
            AllocatorDeps(
                deps.clock,
                deps.active_pods,
                deps.sources_ready,
                self._was_running,
                self._save,
                deps.affinities,
            ),
        )
        self.metrics = self._allocator.metrics
        self.node_is_new = not self._load()

    # Life

    async def run(self) -> None:
        """Take registrations until cancelled; a directory that cannot be used is told, and the
        kubelet goes on without plugins."""
        try:
            await self._deps.plugins.open(self.register)
        except OSError as error:
            log.error("device plugins cannot register: %s: %s", error.filename or "", error)
            await asyncio.Event().wait()
        try:
            await asyncio.Event().wait()
        finally:
            await self._deps.plugins.close()
            watches = list(self._watches.values())
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)
            for plugin in self._inventory.plugins():
                await plugin.close()

    async def register(self, request: Any) -> None:
        """Registration.Register: check, connect, follow. Raises `PluginError`.

        Of two at a time for one resource the one that was asked for later stays, whichever answers
        first; the other is taken as one that was replaced at once.
        """
        resource, turn = request.resource_name, next(self._turns)
        self.metrics.registrations[resource] += 1
        if (why := refusal(request.version, resource)) is not None:
            log.error("bad registration of the device plugin at %s: %s", request.endpoint, why)
            raise PluginError(why)
        try:
            connection = await self._deps.plugins.connect(request.endpoint)
        except OSError as error:
            log.error("cannot reach the device plugin of %s: %s", resource, error)
            raise PluginError(f"failed to dial device plugin: {error}") from None
        try:
            plugin = await Plugin.connected(resource, connection)
        except PluginError as error:
            await connection.close()
            raise PluginError(f"failed to get device plugin options: {error}") from None
        if turn < self._turn_of.get(resource, 0):
            log.info("a newer device plugin of %s than %s has come", resource, request.endpoint)
            await plugin.close()
            return
        self._turn_of[resource] = turn
        log.info("device plugin of %s registered, at %s", resource, request.endpoint)
        await self._replace(plugin)

    async def _replace(self, plugin: Plugin) -> None:
        """The books change at once; then the end of the one before is waited for."""
        before = self._inventory.connect(plugin)
        watch = self._watches.pop(plugin.resource, None)
        if watch is not None:
            watch.cancel()
        name = f"device plugin {plugin.resource}"
        self._watches[plugin.resource] = asyncio.create_task(self._follow(plugin), name=name)
        if watch is not None:
            await asyncio.gather(watch, return_exceptions=True)
        if before is not None:
            await before.close()

    async def _follow(self, plugin: Plugin) -> None:
        """Every list of the plugin, until its stream ends: then its devices are unhealthy."""
        try:
            async for devices in plugin.devices():
                self._update(plugin.resource, devices)
        except PluginError as error:
            log.error("ListAndWatch of device plugin %s ended: %s", plugin.resource, error)
        except Exception as error:
            log_failure(log, f"following device plugin {plugin.resource} ended", error)
        if self._inventory.disconnect(plugin, self._deps.clock.monotonic_s()):
            await plugin.close()

    def _update(self, resource: str, devices: dict[str, Device]) -> None:
        changed = self._inventory.update(resource, devices)
        try:
            self._save()
        except OSError as error:
            log.error("cannot write %s: %s", self._file, error)
        holders = (pod for one in changed for pod in self._ledger.holders(resource, one))
        for pod_uid in dict.fromkeys(holders):
            self._deps.health_changed(pod_uid)

    # The file

    def _load(self) -> bool:
        """Whether there is a checkpoint; one that cannot be used is told and left behind."""
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            return False
        except (OSError, UnicodeError) as error:
            log.error("cannot read %s: %s; who has which device is not known", self._file, error)
            return True
        try:
            found = checkpoint.read(text)
        except CheckpointError as error:
            log.error("%s: %s; who has which device is not known", self._file, error)
            return True
        for entry in found.entries:
            try:
                convert.settings(entry[3].answer)
            except ValueError as error:
                log.error("%s: row of %s: %s; it is left out", self._file, entry[:3], error)
                continue
            self._ledger.insert(*entry)
        self._inventory.restore(found.registered or (), self._deps.clock.monotonic_s())
        self._allocator.restored()
        return True

    def _save(self) -> None:
        text = checkpoint.write(self._ledger.entries(), self._inventory.healthy())
        write_whole(self._file, text.encode(), directory_mode=DIRECTORY_MODE)

    async def _was_running(self, pod_uid: str, container: str) -> bool:
        if self._ran_before is None:
            self._ran_before = frozenset(await self._deps.running())
        return (pod_uid, container) in self._ran_before

    # What the Node shows

    def amounts(self) -> Amounts:
        """How many devices there are now; what is gone for good is dropped first."""
        dropped = self._inventory.drop_expired(self._deps.clock.monotonic_s())
        if dropped:
            log.info("no plugin for %s any more: dropped", ", ".join(dropped))
            try:
                self._save()
            except OSError as error:
                log.error("cannot write %s: %s", self._file, error)
        return self._inventory.amounts()

    def allocatable(self) -> dict[str, int]:
        """What admission counts with: of each resource at least as much as is given away, so that
        a pod that has its devices is not refused while its plugin is gone (upstream:
        sanitizeNodeAllocatable)."""
        given = {name: len(ids) for name, ids in self._ledger.in_use().items()}
        healthy = self.amounts().allocatable
        return {
            name: max(healthy.get(name, 0), given.get(name, 0))
            for name in dict.fromkeys((*healthy, *given))
        }

    # A hint provider

    def topology_hints(self, pod: Pod, container: Container) -> Hints:
        """Hints for one container; None for resources without NUMA nodes."""
        self._allocator.release()
        return {
            resource: self._hints(
                resource,
                count,
                self._ledger.ids(uid(pod), container.name, resource) or frozenset(),
                self._allocator.reusable(uid(pod), resource),
            )
            for resource, count in self._allocator.wanted(container)
        }

    def pod_topology_hints(self, pod: Pod) -> Hints:
        """Hints for all of a pod's devices together."""
        self._allocator.release()
        limits = pod_limits(pod, with_overhead=False)
        return {
            resource: self._hints(
                resource, -(-amount // NANO), self._ledger.pod_ids(uid(pod), resource), frozenset()
            )
            for resource, amount in limits.items()
            if self._allocator.is_device(resource)
        }

    def _hints(
        self, resource: str, count: int, had: frozenset[str], reusable: frozenset[str]
    ) -> tuple[TopologyHint, ...] | None:
        known = self._inventory.devices(resource)
        if not is_aligned(known.values()):
            return None
        if had:
            possible, reusable = had, frozenset[str]()
        else:
            possible = self._allocator.available(resource)
        if len(possible | reusable) < count or (had and len(had) != count):
            return ()
        return device_hints(known, possible, reusable, count, self._deps.numa_nodes())

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Raises `AllocationError`."""
        await self._allocator.allocate(pod, container)

    # What containers get and monitors see

    async def settings(self, pod: Pod, container: Container) -> ContainerSettings:
        """What the container's devices add to its configuration; called before each start. Raises
        `AllocationError`."""
        return await self._allocator.settings(pod, container)

    def given(self, pod_uid: str, container: str) -> tuple[GivenDevice, ...]:
        """The devices of a container, one row per device and NUMA node."""
        self._allocator.release()
        return tuple(
            (resource, one, None if node == NO_NODE else node)
            for resource, allotment in self._ledger.of_container(pod_uid, container).items()
            for node, ids in allotment.devices.items()
            for one in ids
        )

    def healthy_devices(self) -> tuple[GivenDevice, ...]:
        """All healthy devices, given or not."""
        return tuple(
            (resource, one, node)
            for resource, ids in self._inventory.healthy().items()
            for one in sorted(ids)
            for node in self._inventory.devices(resource)[one].nodes or (None,)
        )

    def with_health(self, pod: Pod, status: PodStatus) -> PodStatus:
        """The pod's status with the last known health of its devices; of which nothing is known,
        those are healthy."""
        if uid(pod) not in self._ledger.pods:
            return status
        return with_device_health(status, partial(self._health, uid(pod)))

    def _health(self, pod_uid: str, container: str) -> dict[str, dict[str, str]]:
        return {
            resource: {one: self._health_of(resource, one) for one in allotment.ids}
            for resource, allotment in self._ledger.of_container(pod_uid, container).items()
        }

    def _health_of(self, resource: str, device_id: str) -> str:
        device = self._inventory.devices(resource).get(device_id)
        return device.health if device is not None else HEALTHY
