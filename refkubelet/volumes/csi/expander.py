"""Has volumes of CSI drivers made larger on this node (NODE-222).

`look` sees at each sync of a pod whether the persistent volume has outgrown what the volume has
here, and starts a task for it; `during_mount` does the same for a volume that is just published,
and the pod waits for it. Which part is the node's, and what the claim is told, is decided in
`expansion`.
What must never happen here: two calls for one volume at a time; a pod that runs is disturbed.
Upstream: pkg/volume/util/operationexecutor/node_expander.go, pkg/volume/csi/expander.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from lightkube.models.core_v1 import PersistentVolumeClaim, PersistentVolumeSpec

from refkubelet.api.client import ApiError
from refkubelet.events.recorder import ClaimRecorder, EventType
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.operation_backoff import Retry, failed
from refkubelet.volumes.claims import ClaimedVolume
from refkubelet.volumes.csi.expand_calls import (
    INFEASIBLE,
    CannotExpand,
    ExpandCalls,
    ExpandFailed,
)
from refkubelet.volumes.csi.expansion import (
    STORAGE,
    Expansion,
    Patch,
    Report,
    Turn,
    expansion,
    is_larger,
    marked_failed,
    marked_finished,
    marked_in_progress,
    size_of,
    wish_of,
)
from refkubelet.volumes.csi.mounts import CsiMount, csi_mount_of_claim
from refkubelet.volumes.mount_errors import WHILE_EXPANDING, MountFailed
from simclock import Clock, format_rfc3339

log = logging.getLogger(__name__)

SUCCEEDED: Final = "FileSystemResizeSuccessful"
FAILED: Final = "VolumeResizeFailed"
NOT_RESIZED: Final = "FileSystemResizeFailed"


class ClaimWriter(Protocol):
    """The part of the API client about claims. Its methods raise `ApiError`."""

    async def get_claim(self, namespace: str, name: str) -> PersistentVolumeClaim: ...

    async def patch_claim_status(
        self, namespace: str, name: str, patch: Patch
    ) -> PersistentVolumeClaim: ...


@dataclass(slots=True, eq=False)
class _Volume:
    """A volume that pods have. `size`: what it has on this node; `capacity`: what its persistent
    volume has. `has_failed`: the driver has; `in_use`: it wants the volume to be free first.
    `task` makes it larger, for the pod `pod_uid`, "" when that has ended; `is_asked`: it holds the
    volume's lock, or waits for it."""

    size: str
    capacity: str = "0"
    has_failed: bool = False
    in_use: bool = False
    pod_uid: str = ""
    task: asyncio.Task[None] | None = None
    is_asked: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """A volume of a pod that shall be larger."""

    pod: Pod
    claimed: ClaimedVolume
    mount: CsiMount
    known: _Volume


class Expander:
    """Makes volumes larger. `lock`: held by all that is done with the volume of a unique name."""

    def __init__(
        self,
        node_name: str,
        *,
        calls: ExpandCalls,
        claims: ClaimWriter,
        recorder: ClaimRecorder,
        clock: Clock,
        lock: Callable[[str], asyncio.Lock],
    ) -> None:
        self._node_name = node_name
        self._calls = calls
        self._claims = claims
        self._recorder = recorder
        self._clock = clock
        self._lock = lock
        self._complaints = Complaints(log, clock)
        self._volumes: dict[str, _Volume] = {}

    def look(self, pod: Pod, claimed: ClaimedVolume) -> None:
        """Start to make the mounted volume larger, if it shall be and that is not under way. One
        that the pod only reads stays as it is."""
        if claimed.read_only:
            return
        mount = csi_mount_of_claim(claimed)
        known = self._volumes.setdefault(mount.unique_name, _Volume(size_of(claimed.claim)))
        known.capacity = _capacity(claimed)
        if known.task is None and not known.in_use and is_larger(known.capacity, known.size):
            known.pod_uid = uid(pod)
            name = f"expansion of volume {mount.unique_name}"
            work = _Work(pod, claimed, mount, known)
            known.task = asyncio.create_task(self._until_done(work), name=name)

    async def during_mount(self, pod: Pod, claimed: ClaimedVolume) -> None:
        """Make the volume larger that was just published, if it shall be; the caller has its lock.
        Raises `MountFailed`."""
        capacity = _capacity(claimed)
        if not is_larger(capacity, size_of(claimed.claim)):
            return
        mount = csi_mount_of_claim(claimed)
        known = self._volumes.setdefault(mount.unique_name, _Volume(size_of(claimed.claim)))
        known.capacity = capacity
        try:
            claim = await self._claim(claimed)
            if claimed.read_only and is_larger(capacity, size_of(claim)):
                self._tell_read_only(pod, claimed, claim)
            elif is_larger(capacity, size_of(claim)):
                await self._node_part(_Work(pod, claimed, mount, known), claim)
        except ExpandFailed as error:
            raise MountFailed(WHILE_EXPANDING, str(error)) from None

    def leave(self, pod_uid: str) -> None:
        """The pod ends: a call to its driver is not given up, but none follows."""
        for known in self._volumes.values():
            if known.task is not None and known.pod_uid == pod_uid:
                known.pod_uid = ""
                if not known.is_asked:
                    known.task.cancel()

    def forget(self, is_wanted: Callable[[str], bool]) -> None:
        """Forget the volumes that no pod wants, by their unique names."""
        for name in [n for n in self._volumes if not is_wanted(n)]:
            del self._volumes[name]

    async def stop(self) -> None:
        """End all tasks."""
        tasks = [known.task for known in self._volumes.values() if known.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # One volume

    async def _until_done(self, work: _Work) -> None:
        """Try until it is done, the driver wants the volume to be free, or the pod has ended."""
        known = work.known
        retry: Retry | None = None
        try:
            while not await self._tried(work) and not known.in_use and known.pod_uid:
                retry = failed(retry, self._clock.monotonic_s())
                await self._clock.sleep(retry.delay_s)
        finally:
            known.task = None

    async def _tried(self, work: _Work) -> bool:
        """Try once; whether it is done. A failure is told to the pod."""
        what = f"volume {work.mount.unique_name} is not made larger"
        work.known.is_asked = True
        try:
            async with self._lock(work.mount.unique_name):
                done = await self._node_part(work, await self._claim(work.claimed))
        except Exception as error:
            self._complaints.failed(what, error, ExpandFailed)
            text = f'NodeExpandVolume.NodeExpandVolume failed for volume "{work.mount.name}" : '
            self._recorder.pod_event(work.pod, "Warning", FAILED, f"{text}{error}")
            return False
        finally:
            work.known.is_asked = False
        self._complaints.over(what)
        return done

    async def _node_part(self, work: _Work, claim: PersistentVolumeClaim) -> bool:
        """Do what the claim leaves to the node; whether nothing is left to do. Raises
        `ExpandFailed`."""
        todo = expansion(claim, work.known.capacity)
        if todo.turn is Turn.CONTROLLER:
            return False
        if todo.turn is Turn.NODE:
            if todo.report is Report.ALL:
                claim = await self._patch(claim, marked_in_progress(claim))
            try:
                await self._calls.node_expand(work.pod, work.claimed, todo.size)
            except ExpandFailed as error:
                if isinstance(error, CannotExpand) and todo.report is not Report.ALL:
                    work.known.size = todo.size
                    return True
                await self._has_failed(work.known, claim, todo, error)
                return False
            await self._succeeded(work, claim, todo)
        work.known.size = todo.size
        return True

    async def _succeeded(self, work: _Work, claim: PersistentVolumeClaim, todo: Expansion) -> None:
        """Tell pod and claim. Raises `ExpandFailed`."""
        work.known.has_failed = False
        text = f'MountVolume.NodeExpandVolume succeeded for volume "{work.mount.name}" '
        self._tell(work.pod, claim, "Normal", SUCCEEDED, f"{text}{self._node_name}")
        if todo.report is not Report.FAILURES and is_larger(todo.size, size_of(claim)):
            await self._patch(claim, marked_finished(claim, todo.size))

    async def _has_failed(
        self, known: _Volume, claim: PersistentVolumeClaim, todo: Expansion, error: ExpandFailed
    ) -> None:
        """Tell the claim why. Raises the error, unless the driver wants the volume to be free."""
        if error.is_told and todo.report is not Report.END:
            unwanted = known.has_failed and wish_of(claim) != todo.size
            infeasible = error.code in INFEASIBLE or unwanted
            now = format_rfc3339(self._clock.wall_ns())
            known.has_failed = True
            patch = marked_failed(claim, str(error), now, infeasible=infeasible)
            if patch:
                await self._patch(claim, patch)
        if error.code != "FAILED_PRECONDITION":
            raise error
        known.in_use = True

    # The claim

    async def _claim(self, claimed: ClaimedVolume) -> PersistentVolumeClaim:
        """The claim as it is now. Raises `ExpandFailed`."""
        meta = claimed.claim.metadata
        namespace, name = (meta.namespace or "", meta.name or "") if meta else ("", "")
        try:
            return await self._claims.get_claim(namespace, name)
        except ApiError as error:
            text = f"mountVolume.NodeExpandVolume get PVC failed : {error.message}"
            raise ExpandFailed(text, is_told=False) from None

    async def _patch(self, claim: PersistentVolumeClaim, patch: Patch) -> PersistentVolumeClaim:
        """The claim with its changed status. Raises `ExpandFailed`."""
        meta = claim.metadata
        namespace, name = (meta.namespace or "", meta.name or "") if meta else ("", "")
        try:
            return await self._claims.patch_claim_status(namespace, name, patch)
        except ApiError as error:
            text = f'patchPVCStatus failed to patch PVC "{name}": {error.message}'
            raise ExpandFailed(text, is_told=False) from None

    def _tell_read_only(
        self, pod: Pod, claimed: ClaimedVolume, claim: PersistentVolumeClaim
    ) -> None:
        text = f'MountVolume.NodeExpandVolume failed for volume "{claimed.name}" '
        text += "requested read-only file system"
        self._tell(pod, claim, "Warning", NOT_RESIZED, text)

    def _tell(
        self, pod: Pod, claim: PersistentVolumeClaim, kind: EventType, reason: str, text: str
    ) -> None:
        """An event of the pod, and one of the claim."""
        self._recorder.pod_event(pod, kind, reason, text)
        self._recorder.claim_event(claim, kind, reason, text)


def _capacity(claimed: ClaimedVolume) -> str:
    """What the persistent volume has."""
    spec = claimed.persistent.spec or PersistentVolumeSpec()
    return str((spec.capacity or {}).get(STORAGE, "0"))
