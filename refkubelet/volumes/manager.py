"""Sets up the volumes of pods before their containers start, keeps their content up to date, and
tears them down (NODE-201, NODE-202, NODE-208).

How it works. A sync of a pod says which volumes there shall be (`wait_for_attach_and_mount`): those
that are not mounted yet, and, again and again, those whose content comes from the API server. A
task of the pod, which exists only while something is to be done, sets them up one after the other.
What fails is recorded as an event of the pod and tried again later, after twice the time each time,
for as long as the pod is there. The sync waits for what was never mounted, for two minutes at most;
for an update of what is mounted it does not wait, and a container runs on with the old content.
Nothing is kept on the disk for a restart, but what drivers have mounted (`csi.records`): what is
mounted already a new kubelet finds when it sets the volumes up again, and directories of pods that
are gone are removed in housekeeping, once drivers have ended what is in them.

What must never happen here: a failure of one pod's volume delays another pod, or the end of its own
pod, but for what a driver is doing at that moment; a container starts without a volume.
Upstream: pkg/kubelet/volumemanager, pkg/volume/util/operationexecutor.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from lightkube.models.core_v1 import Volume

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints, end_tasks
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref, uid
from refkubelet.operation_backoff import FIRST_RETRY_S, Retry, failed
from refkubelet.volumes.claim_reader import claimed_volumes
from refkubelet.volumes.claims import ClaimedVolume, VolumeOnNode, no_driver
from refkubelet.volumes.content import ContentVolumes
from refkubelet.volumes.drivers import DriverVolumes
from refkubelet.volumes.empty_dirs import EmptyDirs, memory_bytes
from refkubelet.volumes.host_paths import HostPathError, check_host_path
from refkubelet.volumes.mount_errors import SET_UP, MountFailed, NotAttached, in_words
from refkubelet.volumes.payload import PayloadError
from refkubelet.volumes.persistent import PersistentVolumes
from refkubelet.volumes.plan import (
    CONTENT,
    CSI,
    EMPTY_DIR,
    HOST_PATH,
    kind_of,
    refusal_message,
    refusals,
    unmounted_message,
    used_volumes,
)
from simclock import Clock, call_aside

log = logging.getLogger(__name__)

FAILED_MOUNT: Final = "FailedMount"
ATTACHED_LOOK_S: Final = 0.1
"""The time between two looks whether a volume is attached."""
WAIT_S: Final = 123.0
EXPECTED: Final = (HostPathError, MountFailed, PayloadError, ApiError, OSError, ValueError)


class VolumesNotReady(Exception):
    """The pod cannot start yet."""


class WaitCancelled(Exception):
    """The pod shall end, and no longer waits for its volumes."""


@dataclass(slots=True, eq=False)
class _Pod:
    """The volumes of one pod, by name. `due`: those to be set up; `mounted`: those that were once;
    `claimed`: what those of claims are bound to; `places`: where those of claims and CSI drivers
    are. `moved` is set when a volume was mounted, `more` when there is more to do; `is_driven`: a
    driver is at work for it."""

    pod: Pod
    due: dict[str, Volume] = field(default_factory=dict)
    mounted: set[str] = field(default_factory=set)
    claimed: dict[str, ClaimedVolume] = field(default_factory=dict)
    places: dict[str, VolumeOnNode] = field(default_factory=dict)
    failures: dict[str, Retry] = field(default_factory=dict)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    is_driven: bool = False


class PodVolumes:
    """The volumes of all pods. `drivers` None: no drivers are known; `claims` None: standalone;
    `allocatable_bytes`: of the node's memory; 0: unknown."""

    def __init__(
        self,
        empty_dirs: EmptyDirs,
        content: ContentVolumes,
        persistent: PersistentVolumes,
        *,
        drivers: DriverVolumes | None = None,
        claims: ObjectReader | None,
        recorder: EventRecorder,
        clock: Clock,
        allocatable_bytes: int = 0,
    ) -> None:
        self._empty_dirs = empty_dirs
        self._content = content
        self._persistent = persistent
        self._drivers = drivers
        self._claims = claims
        self._recorder = recorder
        self._clock = clock
        self._complaints = Complaints(log, clock)
        self._allocatable_bytes = allocatable_bytes
        self._pods: dict[str, _Pod] = {}

    async def wait_for_attach_and_mount(self, pod: Pod, cancelled: asyncio.Event) -> None:
        """Set up the volumes that the pod uses, and update their content. Raises
        `VolumesNotReady`, `WaitCancelled`."""
        used = used_volumes(pod)
        if not used:
            return
        claimed, problems = await claimed_volumes(pod, self._claims)
        refused = refusals(pod) | problems
        if refused:
            message = refusal_message(pod, refused)
            text = f"Unable to attach or mount volumes: {message}"
            self._recorder.pod_event(pod, "Warning", FAILED_MOUNT, text)
            raise VolumesNotReady(message)
        state = self._pods.setdefault(uid(pod), _Pod(pod))
        state.pod, state.claimed = pod, claimed
        for name, volume in used.items():
            if volume is not None and (name not in state.mounted or self._again(volume, claimed)):
                state.due.setdefault(name, volume)
        self._expand(state)
        self._work_on(state)
        await self._until_mounted(state, used.keys(), cancelled)

    async def tear_down(self, pod: Pod) -> None:
        """Remove the volumes of a pod whose containers have stopped. What a driver is doing for it
        is waited for, so that what ends it comes after it. Raises OSError."""
        state = self._pods.pop(uid(pod), None)
        if state is not None and state.task is not None:
            state.due.clear()
            if not state.is_driven:
                state.task.cancel()
            await asyncio.gather(state.task, return_exceptions=True)
        self._persistent.tear_down(pod)
        await self._empty_dirs.tear_down(pod)
        if self._drivers is not None:
            await self._drivers.tear_down(uid(pod))
        self._content.forget(pod)

    def claimed(self, pod_uid: str) -> Mapping[str, VolumeOnNode]:
        """Where the pod's volumes of claims and of CSI drivers are on the node, by the pod's names
        of them."""
        state = self._pods.get(pod_uid)
        return state.places if state is not None else {}

    def is_left(self, pod_uid: str) -> bool:
        """Whether a pod that is gone still has volumes of CSI drivers; these are being ended."""
        return self._drivers is not None and self._drivers.is_left(pod_uid)

    async def stop(self) -> None:
        """End all tasks; nothing is torn down."""
        await end_tasks(s.task for s in self._pods.values() if s.task is not None)

    def _expand(self, known: _Pod) -> None:
        """Have the mounted volumes of claims made larger that shall be (NODE-222)."""
        if self._drivers is not None:
            for name, claimed in known.claimed.items():
                if name in known.mounted and claimed.is_of_csi:
                    self._drivers.expand(known.pod, claimed)

    def _again(self, volume: Volume, claimed: Mapping[str, ClaimedVolume]) -> bool:
        """Whether the volume is set up again at each sync of the pod (NODE-201.3, NODE-218.5)."""
        if volume.name in claimed:
            spec = claimed[volume.name].persistent.spec
            source: Any = spec.csi if spec is not None else None
        else:
            source = volume.csi
        if source is not None:
            return self._drivers is not None and self._drivers.is_republished(source.driver)
        return kind_of(volume) in CONTENT

    async def _until_mounted(
        self, known: _Pod, names: Iterable[str], cancelled: asyncio.Event
    ) -> None:
        """Wait until all of the volumes were mounted once. Raises as
        `wait_for_attach_and_mount`."""
        needed = set(names)
        try:
            async with asyncio.timeout(WAIT_S):
                while not needed <= known.mounted:
                    known.moved.clear()
                    await _either(known.moved, cancelled)
                    if cancelled.is_set():
                        raise WaitCancelled
        except TimeoutError:
            missing = needed - known.mounted
            raise VolumesNotReady(
                unmounted_message(missing, (), "context deadline exceeded")
            ) from None

    def _work_on(self, known: _Pod) -> None:
        """Start the pod's task, unless it runs; it looks at all that is due."""
        known.more.set()
        if known.due and known.task is None:
            known.task = asyncio.create_task(
                self._reconcile(known), name=f"volumes of {pod_ref(known.pod)}"
            )

    async def _reconcile(self, known: _Pod) -> None:
        """Set up what is due, until nothing is."""
        try:
            while known.due:
                now_s = self._clock.monotonic_s()
                for name, volume in tuple(known.due.items()):
                    retry = known.failures.get(name)
                    if name in known.due and (retry is None or retry.not_before_s <= now_s):
                        await self._try(known, name, volume)
                await self._until_next(known)
        finally:
            known.task = None

    async def _until_next(self, known: _Pod) -> None:
        """Sleep until the first of the failed ones may be tried again, or there is more to do."""
        retries = [known.failures[n].not_before_s for n in known.due if n in known.failures]
        if not retries or len(retries) < len(known.due):
            return
        known.more.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(min(retries) - self._clock.monotonic_s(), 0.0)):
                await known.more.wait()

    async def _try(self, known: _Pod, name: str, volume: Volume) -> None:
        """Set up one volume of the pod, as it is now."""
        pod = known.pod
        claimed = known.claimed.get(name)
        known.is_driven = claimed.is_of_csi if claimed is not None else kind_of(volume) == CSI
        try:
            await self._make(known, volume)
        except NotAttached:
            # No failure: it is looked at again soon, and the first failure waits FIRST_RETRY_S.
            look_s = self._clock.monotonic_s() + ATTACHED_LOOK_S
            known.failures[name] = Retry(FIRST_RETRY_S / 2, look_s)
            return
        except Exception as error:
            if not isinstance(error, EXPECTED):
                self._complaints.failed(f"volume {name} of {pod_ref(pod)}", error)
            self._failed(known, name, error)
            return
        finally:
            known.is_driven = False
        known.failures.pop(name, None)
        self._complaints.over(f"volume {name} of {pod_ref(pod)}")
        if pod is known.pod:  # else it changed meanwhile, and is looked at once more
            known.due.pop(name, None)
        known.mounted.add(name)
        known.moved.set()

    def _failed(self, known: _Pod, name: str, error: Exception) -> None:
        known.failures[name] = failed(known.failures.get(name), self._clock.monotonic_s())
        step = error.step if isinstance(error, MountFailed) else SET_UP
        volume_name = known.claimed[name].name if name in known.claimed else name
        message = f'MountVolume.{step} for volume "{volume_name}" : {in_words(error)}'
        self._recorder.pod_event(known.pod, "Warning", FAILED_MOUNT, message)

    async def _make(self, known: _Pod, volume: Volume) -> None:
        """Make, check or update one volume. Raises one of `EXPECTED`."""
        pod, kind = known.pod, kind_of(volume)
        if volume.name in known.claimed:
            place = await self._persistent.set_up(pod, known.claimed[volume.name])
            known.places[volume.name] = place
        elif kind == HOST_PATH and volume.hostPath is not None:
            source = volume.hostPath
            await call_aside(f"the type of {source.path}", partial(check_host_path, source))
        elif kind == EMPTY_DIR:
            size_bytes = memory_bytes(pod, volume, self._allocatable_bytes)
            await self._empty_dirs.set_up(pod, volume, size_bytes)
        elif kind == CSI and volume.csi is not None:
            if self._drivers is None:
                raise ValueError(no_driver(volume.csi.driver))
            known.places[volume.name] = await self._drivers.set_up_inline(pod, volume)
        elif kind in CONTENT:
            size_bytes = memory_bytes(pod, volume, self._allocatable_bytes)
            await self._content.set_up(pod, volume, size_bytes)


async def _either(one: asyncio.Event, other: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in (one, other)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
