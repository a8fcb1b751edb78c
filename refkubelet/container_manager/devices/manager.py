"""The device manager: follows device plugins and allocates their devices to containers (CG-084).

How it works. `PluginWatcher` accepts registrations and follows the plugins' lists of devices;
`Inventory` holds these devices, `Ledger` the devices of containers; `Allocator` allocates. The
ledger is written to a file after every change, so that a restarted kubelet knows the devices of
running containers.
What must never happen here: the end of a plugin, or a broken file, affects a running pod.
Upstream: pkg/kubelet/cm/devicemanager/manager.go.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from kubeobjects.quantity import NANO
from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.checkpoints.content import CheckpointError
from refkubelet.container_manager.devices import checkpoint, convert
from refkubelet.container_manager.devices.allocator import Allocator, DeviceDeps
from refkubelet.container_manager.devices.health import with_device_health
from refkubelet.container_manager.devices.hints import device_hints, is_aligned
from refkubelet.container_manager.devices.inventory import Amounts, Inventory
from refkubelet.container_manager.devices.ledger import Ledger
from refkubelet.container_manager.devices.plugin_watcher import PluginWatcher
from refkubelet.container_manager.devices.types import (
    HEALTHY,
    NO_NODE,
    ContainerSettings,
    Device,
)
from refkubelet.container_manager.providers.hints import Hints, TopologyHint
from refkubelet.model.objects import Container, Pod, PodStatus
from refkubelet.model.pod import uid
from refkubelet.model.resources import pod_limits

log = logging.getLogger(__name__)

DIRECTORY: Final = "device-plugins"
DIRECTORY_MODE: Final = 0o750
GivenDevice = tuple[str, str, int | None]
"""Resource, device ID, NUMA node (None: none)."""


class DeviceManager:
    """A `HintProvider`; `run` until cancelled."""

    def __init__(self, deps: DeviceDeps) -> None:
        self._deps = deps
        self._file = deps.root_dir / DIRECTORY / checkpoint.FILE_NAME
        self._checkpoints = checkpoint.Writer()
        self._inventory = Inventory()
        self._ledger = Ledger()
        self._ran_before: frozenset[tuple[str, str]] | None = None
        self._allocator = Allocator(
            self._inventory,
            self._ledger,
            deps,
            was_running=self._was_running,
            save=self._save,
        )
        self.metrics = self._allocator.metrics
        self._watcher = PluginWatcher(
            deps.plugins,
            self._inventory,
            deps.clock,
            updated=self._update,
            registrations=self.metrics.registrations,
        )
        self.register = self._watcher.register
        self.found, self.lost = self._watcher.found, self._watcher.lost
        self.node_is_new = not self._load()

    async def run(self) -> None:
        """Accept registrations of plugins until cancelled."""
        await self._watcher.run()

    def _update(self, resource: str, devices: dict[str, Device]) -> None:
        changed = self._inventory.update(resource, devices)
        try:
            self._save()
        except OSError as error:
            log.error("cannot write %s: %s", self._file, error)
        holders = (pod for device in changed for pod in self._ledger.holders(resource, device))
        for pod_uid in dict.fromkeys(holders):
            self._deps.health_changed(pod_uid)

    # The file

    def _load(self) -> bool:
        """Read the checkpoint; False: it does not exist. An unusable one is logged and ignored."""
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            return False
        except (OSError, UnicodeError) as error:
            log.error(
                "cannot read %s: %s: the devices of running containers are unknown",
                self._file,
                error,
            )
            return True
        try:
            content = checkpoint.read(text)
        except CheckpointError as error:
            log.error("%s: %s: the devices of running containers are unknown", self._file, error)
            return True
        for entry in content.entries:
            try:
                convert.settings(entry[3].answer)
            except ValueError as error:
                log.error("%s: row of %s: %s; it is left out", self._file, entry[:3], error)
                continue
            self._ledger.insert(*entry)
        self._inventory.restore(content.registered or (), self._deps.clock.monotonic_s())
        self._allocator.restored()
        return True

    def _save(self) -> None:
        text = self._checkpoints.write(self._ledger.entries(), self._inventory.healthy())
        write_whole(self._file, text.encode(), directory_mode=DIRECTORY_MODE)

    async def _was_running(self, pod_uid: str, container: str) -> bool:
        if self._ran_before is None:
            self._ran_before = frozenset(await self._deps.running())
        return (pod_uid, container) in self._ran_before

    # What the Node shows

    def amounts(self) -> Amounts:
        """The present number of devices, after dropping expired resources."""
        dropped = self._inventory.drop_expired(self._deps.clock.monotonic_s())
        if dropped:
            log.info("dropped resources without a plugin: %s", ", ".join(dropped))
            try:
                self._save()
            except OSError as error:
                log.error("cannot write %s: %s", self._file, error)
        return self._inventory.amounts()

    def allocatable(self) -> dict[str, int]:
        """The number of devices for admission: at least those in use, so that a pod that has its
        devices is not refused while its plugin is gone (upstream: sanitizeNodeAllocatable)."""
        in_use = {name: len(ids) for name, ids in self._ledger.in_use().items()}
        healthy = self.amounts().allocatable
        return {
            name: max(healthy.get(name, 0), in_use.get(name, 0))
            for name in dict.fromkeys((*healthy, *in_use))
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
        """The hints of one resource; `had`: the devices that were allocated before. None: it has no
        NUMA nodes; empty: there are not enough devices."""
        devices = self._inventory.devices(resource)
        if not is_aligned(devices.values()):
            return None
        if had:
            possible, reusable = had, frozenset[str]()
        else:
            possible = self._allocator.available(resource)
        if len(possible | reusable) < count or (had and len(had) != count):
            return ()
        return device_hints(
            devices,
            available=possible,
            reusable=reusable,
            count=count,
            numa_nodes=self._deps.numa_nodes(),
        )

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Allocate the container's devices. Raises `AllocationError`."""
        await self._allocator.allocate(pod, container)

    # What containers get and monitors see

    async def settings(self, pod: Pod, container: Container) -> ContainerSettings:
        """The settings that the container's devices add to its configuration; called before each
        start. Raises `AllocationError`."""
        return await self._allocator.settings(pod, container)

    def given(self, pod_uid: str, container: str) -> tuple[GivenDevice, ...]:
        """The devices of a container, one row per device and NUMA node."""
        self._allocator.release()
        return tuple(
            (resource, device_id, None if node == NO_NODE else node)
            for resource, allotment in self._ledger.of_container(pod_uid, container).items()
            for node, ids in allotment.devices.items()
            for device_id in ids
        )

    def healthy_devices(self) -> tuple[GivenDevice, ...]:
        """All healthy devices, in use or not, one row per device and NUMA node."""
        return tuple(
            (resource, device_id, node)
            for resource, ids in self._inventory.healthy().items()
            for device_id in sorted(ids)
            for node in self._inventory.devices(resource)[device_id].nodes or (None,)
        )

    def with_health(self, pod: Pod, status: PodStatus) -> PodStatus:
        """The pod's status with the last health of its devices; unknown devices count as
        healthy."""
        if uid(pod) not in self._ledger.pods:
            return status
        return with_device_health(status, partial(self._health, uid(pod)))

    def _health(self, pod_uid: str, container: str) -> dict[str, dict[str, str]]:
        return {
            resource: {
                device_id: self._health_of(resource, device_id) for device_id in allotment.ids
            }
            for resource, allotment in self._ledger.of_container(pod_uid, container).items()
        }

    def _health_of(self, resource: str, device_id: str) -> str:
        device = self._inventory.devices(resource).get(device_id)
        return device.health if device is not None else HEALTHY
