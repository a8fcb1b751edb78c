"""The volumes of CSI drivers that pods have (NODE-217 to NODE-219, NODE-222): `DriverVolumes`.

`set_up` waits until the volume is attached, has it staged and published; `tear_down` has it
unpublished, and unstaged when it was the last pod's. Read the package's text first.
What must never happen here: two calls that change one volume at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final

from lightkube.models.core_v1 import Volume
from lightkube.models.storage_v1 import CSIDriver
from msgspec import Struct

from refkubelet.failures import Complaints, end_tasks
from refkubelet.host.disk_use import VolumeSize
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.object_manager.csi_drivers import CsiDriverObjects
from refkubelet.operation_backoff import Retry, failed
from refkubelet.volumes.claims import ClaimedVolume, VolumeOnNode, no_driver
from refkubelet.volumes.csi.attachments import Attachments, VolumeUse
from refkubelet.volumes.csi.client import CsiClient, CsiError
from refkubelet.volumes.csi.drivers import CsiDrivers, NoDriver
from refkubelet.volumes.csi.expander import Expander
from refkubelet.volumes.csi.metrics import get_metrics
from refkubelet.volumes.csi.mounts import (
    CsiMount,
    csi_mount_of_claim,
    csi_mount_of_volume,
    driver_spec,
    is_attachable,
)
from refkubelet.volumes.csi.names import told
from refkubelet.volumes.csi.publishing import Publishing, Stage
from refkubelet.volumes.csi.records import (
    VolumeRecord,
    has_volumes,
    pod_records,
    remove_leftovers,
)
from refkubelet.volumes.csi.requests import STAGE_UNSTAGE_VOLUME
from refkubelet.volumes.csi.staging import EXPECTED, Staging
from refkubelet.volumes.mount_errors import MOUNT_DEVICE, SET_UP, MountFailed, NotMeasured
from refkubelet.volumes.ownership import fs_group
from simclock import Clock

log = logging.getLogger(__name__)

NO_CLIENT: Final = "attacher.MountDevice failed to create newCsiDriverClient"
STAGE_UNKNOWN: Final = "check for STAGE_UNSTAGE_VOLUME capability"
MOUNT_GROUP_UNKNOWN: Final = "determine if the node service has VOLUME_MOUNT_GROUP capability"
END_S: Final = 123.0
"""The time within which `tear_down` tries."""


class CsiParts(Struct, frozen=True):
    """What works on CSI volumes together."""

    drivers: CsiDrivers
    objects: CsiDriverObjects
    attachments: Attachments
    use: VolumeUse
    staging: Staging
    publishing: Publishing
    expander: Expander


class CsiVolumes:
    """Sets the volumes up, and ends them."""

    def __init__(self, root_dir: str, parts: CsiParts, clock: Clock) -> None:
        self._root_dir = root_dir
        self._parts = parts
        self._clock = clock
        self._complaints = Complaints(log, clock)
        self._orphans: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Go on with what an earlier kubelet left, then wait to be cancelled."""
        self._parts.staging.end_unused()
        try:
            await asyncio.Event().wait()
        finally:
            await self._parts.expander.stop()
            await self._parts.staging.stop()
            await end_tasks(self._orphans.values())

    # The Node's status

    def in_use(self, attached: Collection[str]) -> list[str]:
        """The volumesInUse that are about to be written to the Node, whose volumesAttached are
        `attached`. A volume that is not among them counts as not reported from now on, since a
        controller may detach it as soon as the Node is written."""
        names = self._parts.use.in_use(attached)
        self._parts.attachments.withdrawn(names)
        return names

    def reported(self, names: Iterable[str]) -> None:
        """The Node shows these as volumesInUse."""
        self._parts.attachments.reported(names)

    # Setting up

    def is_republished(self, driver: str) -> bool:
        """Whether volumes of that driver are published again at each sync of the pod."""
        spec = driver_spec(self._parts.objects.known(driver))
        return spec is not None and bool(spec.requiresRepublish)

    async def set_up(
        self, pod: Pod, claimed: ClaimedVolume, check: Callable[[], None]
    ) -> VolumeOnNode:
        """Make the volume of a claim ready; `check` may refuse it, once it is attached. Raises
        `NotAttached`, `MountFailed`, `ApiError`, OSError."""
        parts, mount = self._parts, csi_mount_of_claim(claimed)
        driver = await parts.objects.get(mount.driver)
        attachable = is_attachable(mount, driver)
        parts.use.want(mount.unique_name, uid(pod), attachable=attachable)
        if attachable:
            parts.attachments.check(mount.unique_name)
        async with parts.staging.lock(mount.unique_name):
            check()
            stage, client = await self._stage(pod, mount, driver, attachable=attachable)
            path = await parts.publishing.publish(pod, mount, client, stage)
            await parts.expander.during_mount(pod, claimed)
        return _on_node(mount, path, mount.name)

    async def set_up_inline(self, pod: Pod, volume: Volume) -> VolumeOnNode:
        """Make an inline volume ready. Raises `MountFailed`, `ApiError`, OSError."""
        parts, mount = self._parts, csi_mount_of_volume(pod, volume)
        try:
            client = parts.drivers.client(mount.driver)
        except NoDriver:
            raise MountFailed(SET_UP, no_driver(mount.driver)) from None
        driver = await parts.objects.get(mount.driver)
        async with parts.staging.lock(mount.unique_name):
            stage = Stage(driver, await self._capabilities(client, SET_UP, MOUNT_GROUP_UNKNOWN))
            path = await parts.publishing.publish(pod, mount, client, stage)
        return _on_node(mount, path)

    async def _stage(
        self, pod: Pod, mount: CsiMount, driver: CSIDriver | None, *, attachable: bool
    ) -> tuple[Stage, CsiClient]:
        """Raises `MountFailed`, OSError."""
        parts = self._parts
        context = await parts.attachments.publish_context(mount) if attachable else {}
        is_staged = parts.staging.is_staged(mount.unique_name)
        step = SET_UP if is_staged else MOUNT_DEVICE
        try:
            client = parts.drivers.client(mount.driver)
        except NoDriver as error:
            complaint = "mounter.SetUpAt failed to get CSI client" if is_staged else NO_CLIENT
            raise MountFailed(step, told(f"{complaint}: {error}")) from None
        capabilities = await self._capabilities(client, step, STAGE_UNKNOWN if is_staged else "")
        if STAGE_UNSTAGE_VOLUME not in capabilities:
            return Stage(driver, capabilities, context), client
        secrets = await parts.publishing.secrets(
            mount.stage_secret, "NodeStageSecretRef", MOUNT_DEVICE
        )
        path = await parts.staging.stage(
            mount,
            client,
            capabilities=capabilities,
            group=fs_group(pod),
            publish_context=context,
            secrets=secrets,
        )
        return Stage(driver, capabilities, context, path), client

    async def _capabilities(self, client: CsiClient, step: str, what: str) -> frozenset[str]:
        """What the driver can do. `what`: what has failed then, "": the call. Raises
        `MountFailed`."""
        try:
            return await client.capabilities()
        except CsiError as error:
            text = told(f"mounter.SetUpAt failed to {what}: {error}") if what else str(error)
            raise MountFailed(step, text) from None

    def expand(self, pod: Pod, claimed: ClaimedVolume) -> None:
        """Start to make the mounted volume of a claim larger, if it shall be."""
        self._parts.expander.look(pod, claimed)

    async def measure(self, place: VolumeOnNode) -> VolumeSize | None:
        """What the driver says of the volume's size; None: it cannot tell. Raises
        `NotMeasured`."""
        time_ns = self._clock.wall_ns()
        try:
            client = self._parts.drivers.client(place.driver)
            return await get_metrics(client, place.handle, place.path, time_ns)
        except (NoDriver, CsiError) as error:
            raise NotMeasured(str(error)) from None

    # Tearing down

    async def tear_down(self, pod_uid: str) -> None:
        """End the volumes that the pod has; what fails is tried again, for two minutes. Raises
        OSError."""
        if not self._parts.use.has_pod(pod_uid) and not has_volumes(self._root_dir, pod_uid):
            return
        self._parts.expander.leave(pod_uid)
        retry: Retry | None = None
        until_s = self._clock.monotonic_s() + END_S
        while True:
            problems = [
                await self._try_end(record) for record in pod_records(self._root_dir, pod_uid)
            ]
            unfinished = [problem for problem in problems if problem]
            if not unfinished:
                break
            retry = failed(retry, self._clock.monotonic_s())
            if retry.not_before_s > until_s:
                raise OSError(0, "; ".join(unfinished))
            await self._clock.sleep(retry.delay_s)
        remove_leftovers(self._root_dir, pod_uid)
        self._parts.use.forget_pod(pod_uid)
        self._parts.expander.forget(self._parts.use.is_wanted)
        self._parts.staging.end_unused()

    def is_left(self, pod_uid: str) -> bool:
        """Whether a pod that no one knows any more has volumes; these are ended, in a task."""
        if pod_uid not in self._orphans and pod_records(self._root_dir, pod_uid):
            task = asyncio.create_task(self._end_orphan(pod_uid), name=f"volumes of {pod_uid}")
            self._orphans[pod_uid] = task
            task.add_done_callback(lambda _: self._orphans.pop(pod_uid, None))
        return pod_uid in self._orphans

    async def _end_orphan(self, pod_uid: str) -> None:
        complaint = f"volumes of pod {pod_uid}, which is gone"
        with self._complaints.guarded(complaint, OSError):
            await self.tear_down(pod_uid)

    async def _try_end(self, record: VolumeRecord) -> str | None:
        """Have a volume unpublished; returns why that failed."""
        complaint = f"volume {record.directory} is not unpublished"
        async with self._parts.staging.lock(record.unique_name):
            try:
                client = self._parts.drivers.client(record.driver)
                await self._parts.publishing.unpublish(record, client)
            except Exception as error:
                self._complaints.failed(complaint, error, *EXPECTED)
                return f"{complaint}: {error}"
        self._complaints.over(complaint)
        return None


def _on_node(mount: CsiMount, path: str, name: str = "") -> VolumeOnNode:
    """The volume at its place; `name`: the persistent volume's."""
    return VolumeOnNode(path, mount.read_only, name, driver=mount.driver, handle=mount.handle)
