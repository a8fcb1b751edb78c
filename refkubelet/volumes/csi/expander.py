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
from typing import Final

from lightkube.models.core_v1 import PersistentVolumeClaim
from msgspec import Struct

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import CLAIMS
from refkubelet.events.queued_recorder import QueuedEventRecorder
from refkubelet.events.recorder import EventType
from refkubelet.failures import Complaints, end_tasks
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.operation_backoff import Retry, failed
from refkubelet.volumes.claims import ClaimedVolume
from refkubelet.volumes.csi.expand_calls import (
    INFEASIBLE_CODES,
    CannotExpand,
    ExpandCalls,
    ExpandFailed,
)
from refkubelet.volumes.csi.expansion import (
    Expansion,
    Patch,
    Report,
    Turn,
    capacity_of,
    expansion,
    is_larger,
    is_same,
    marked_failed,
    marked_finished,
    marked_in_progress,
    name_of,
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
READ_ONLY: Final = "requested read-only file system"


@dataclass(slots=True, eq=False)
class _Volume:
    """A volume that pods have. `size`: what it has on this node, "0" while that is not known;
    `capacity`: what its persistent volume has. `has_failed`: the driver has; `in_use`: it wants the
    volume to be free first. `task` makes it larger, for the pod `pod_uid`, "" when that has ended;
    `is_asked`: it has the volume's lock."""

    size: str = "0"
    capacity: str = "0"
    has_failed: bool = False
    in_use: bool = False
    pod_uid: str = ""
    task: asyncio.Task[None] | None = None
    is_asked: bool = False

    def shall_grow(self) -> bool:
        """Whether the persistent volume has outgrown it."""
        return self.size != "0" and is_larger(self.capacity, self.size)

    def is_over(self, task: asyncio.Task[None]) -> None:
        """The task has ended, or was cancelled before it began."""
        if self.task is task:
            self.task = None


class _Work(Struct, frozen=True):
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
        claims: ApiClient,
        recorder: QueuedEventRecorder,
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
        state = self._note(claimed)
        if state.task is None and not state.in_use and state.shall_grow():
            work = _Work(pod, claimed, csi_mount_of_claim(claimed), state)
            name = f"expansion of volume {work.mount.unique_name}"
            state.pod_uid = uid(pod)
            state.task = asyncio.create_task(self._until_done(work), name=name)
            state.task.add_done_callback(state.is_over)

    async def during_mount(self, pod: Pod, claimed: ClaimedVolume) -> None:
        """Make the volume larger that was just published, if it shall be; the caller has its lock.
        Raises `MountFailed`."""
        state = self._note(claimed)
        if not is_larger(state.capacity, size_of(claimed.claim)):
            return
        try:
            claim = await self._claim(claimed)
            if not is_larger(state.capacity, size_of(claim)):
                return
            if claimed.read_only:
                text = (
                    f'MountVolume.NodeExpandVolume failed for volume "{claimed.name}" {READ_ONLY}'
                )
                self._tell(pod, claim, "Warning", NOT_RESIZED, text)
                return
            work = _Work(pod, claimed, csi_mount_of_claim(claimed), state)
            await self._node_part(work, claim)
        except ExpandFailed as error:
            raise MountFailed(WHILE_EXPANDING, str(error)) from None

    def leave(self, pod_uid: str) -> None:
        """The pod ends: a call to its driver is not given up, but none follows."""
        for state in self._volumes.values():
            if state.task is not None and state.pod_uid == pod_uid:
                state.pod_uid = ""
                if not state.is_asked:
                    state.task.cancel()
                    state.task = None

    def forget(self, is_wanted: Callable[[str], bool]) -> None:
        """Forget the volumes that no pod wants, by their unique names."""
        for name in [n for n in self._volumes if not is_wanted(n)]:
            del self._volumes[name]

    async def stop(self) -> None:
        """End all tasks."""
        await end_tasks(v.task for v in self._volumes.values() if v.task is not None)

    # One volume

    def _note(self, claimed: ClaimedVolume) -> _Volume:
        """Remember what the volume has on this node, which is what its claim has when the first pod
        wants it, and what its persistent volume has now."""
        name = csi_mount_of_claim(claimed).unique_name
        state = self._volumes.setdefault(name, _Volume())
        if state.size == "0":
            state.size = size_of(claimed.claim)
        state.capacity = capacity_of(claimed.persistent)
        return state

    async def _until_done(self, work: _Work) -> None:
        """Try until it is done, the driver wants the volume to be free, or the pod has ended."""
        state = work.known
        retry: Retry | None = None
        while not await self._tried(work) and not state.in_use and state.pod_uid:
            retry = failed(retry, self._clock.monotonic_s())
            await self._clock.sleep(retry.delay_s)

    async def _tried(self, work: _Work) -> bool:
        """Try once; whether nothing is left to do. A failure is told to the pod."""
        complaint = f"volume {work.mount.unique_name} is not made larger"
        try:
            async with self._lock(work.mount.unique_name):
                if not work.known.pod_uid or not work.known.shall_grow():
                    return True  # the pod has ended meanwhile, or another one has had it done
                work.known.is_asked = True
                is_done = await self._node_part(work, await self._claim(work.claimed))
        except Exception as error:
            self._complaints.failed(complaint, error, ExpandFailed)
            text = f'NodeExpandVolume.NodeExpandVolume failed for volume "{work.mount.name}" : '
            self._recorder.pod_event(work.pod, "Warning", FAILED, f"{text}{error}")
            return False
        finally:
            work.known.is_asked = False
        self._complaints.over(complaint)
        return is_done

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
        if todo.report is Report.ALL:
            complaint = "mountVolume.NodeExpandVolume update pvc status failed: "
            await self._patch(claim, marked_finished(claim, todo.size), complaint)
        elif todo.report is Report.END and is_larger(todo.size, size_of(claim)):
            complaint = "mountVolume.NodeExpandVolume update PVC status failed : "
            await self._patch(claim, marked_finished(claim, todo.size), complaint)

    async def _has_failed(
        self, known: _Volume, claim: PersistentVolumeClaim, todo: Expansion, error: ExpandFailed
    ) -> None:
        """Tell the claim why. Raises the error, unless the driver wants the volume to be free."""
        if error.is_told and todo.report is not Report.END:
            unwanted = known.has_failed and not is_same(wish_of(claim), todo.size)
            infeasible = error.code in INFEASIBLE_CODES or unwanted
            moment = format_rfc3339(self._clock.wall_ns())
            known.has_failed = True
            patch = marked_failed(claim, str(error), moment, infeasible=infeasible)
            try:
                await self._patch(claim, patch)
            except ExpandFailed as unwritten:  # what the driver said matters more
                log.warning("the claim is not told that %s: %s", error, unwritten)
        if error.code != "FAILED_PRECONDITION":
            raise error
        known.in_use = True

    # The claim

    async def _claim(self, claimed: ClaimedVolume) -> PersistentVolumeClaim:
        """The claim as it is now. Raises `ExpandFailed`."""
        try:
            namespace, name = name_of(claimed.claim)
            return await self._claims.get(CLAIMS, name, namespace)
        except ApiError as error:
            text = f"mountVolume.NodeExpandVolume get PVC failed : {error.message}"
            raise ExpandFailed(text, is_told=False) from None

    async def _patch(
        self, claim: PersistentVolumeClaim, patch: Patch, what: str = ""
    ) -> PersistentVolumeClaim:
        """The claim with its changed status; as it is without a change. Raises `ExpandFailed`,
        whose text begins with `what`."""
        namespace, name = name_of(claim)
        try:
            if not patch:
                return claim
            return await self._claims.patch(CLAIMS, name, patch, namespace, subresource="status")
        except ApiError as error:
            text = f'{what}patchPVCStatus failed to patch PVC "{name}": {error.message}'
            raise ExpandFailed(text, is_told=False) from None

    def _tell(
        self, pod: Pod, claim: PersistentVolumeClaim, kind: EventType, reason: str, text: str
    ) -> None:
        """An event of the pod, and one of the claim."""
        self._recorder.pod_event(pod, kind, reason, text)
        self._recorder.claim_event(claim, kind, reason, text)
