"""Sets up the volumes of pods before their containers start, and tears them down (NODE-201,
NODE-202, NODE-208).

A sync sets up the volumes that the pod uses, once. A failure is recorded as an event of the pod and
tried again later; until then no container of the pod starts. What must never happen here: a failure
of one pod's volume delays another pod, or the end of its own pod.
Upstream: pkg/kubelet/volumemanager, pkg/volume/util/operationexecutor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from lightkube.models.core_v1 import Volume

from refkubelet.events.recorder import EventRecorder
from refkubelet.model.cgroups.values import resource_config_for_pod
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.model.quantity import parse_integer
from refkubelet.volumes.empty_dirs import EmptyDirs
from refkubelet.volumes.host_paths import HostPathError, check_host_path
from refkubelet.volumes.plan import EMPTY_DIR, HOST_PATH, kind_of, refusal_message, refusals
from refkubelet.volumes.plan import used_volumes as volumes_of
from simclock import Clock

FAILED_MOUNT: Final = "FailedMount"
FIRST_DELAY_S: Final = 0.5
MAX_DELAY_S: Final = 122.0


class VolumesNotReady(Exception):
    """The pod cannot start yet. `retry_at_s`: when to try again, monotonic; None: as usual."""

    def __init__(self, message: str, retry_at_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_at_s = retry_at_s


@dataclass(frozen=True, slots=True)
class _Failure:
    why: str
    delay_s: float
    retry_at_s: float


@dataclass(slots=True)
class _Pod:
    """The state of one pod's volumes, by name."""

    ready: set[str] = field(default_factory=set)
    failed: dict[str, _Failure] = field(default_factory=dict)


class PodVolumes:
    """The volumes of all pods. `allocatable_bytes`: of the node's memory; 0: unknown."""

    def __init__(
        self,
        empty_dirs: EmptyDirs,
        recorder: EventRecorder,
        clock: Clock,
        allocatable_bytes: int = 0,
    ) -> None:
        self._empty_dirs = empty_dirs
        self._recorder = recorder
        self._clock = clock
        self._allocatable_bytes = allocatable_bytes
        self._pods: dict[str, _Pod] = {}

    def set_up(self, pod: Pod) -> None:
        """Set up all volumes that the pod uses. Raises `VolumesNotReady`."""
        used = volumes_of(pod)
        known = self._pods.get(uid(pod))
        if not used or (known is not None and known.ready >= used.keys()):
            return
        refused = refusals(pod)
        if refused:
            message = refusal_message(pod, refused)
            self._recorder.pod_event(pod, "Warning", FAILED_MOUNT, message)
            raise VolumesNotReady(message)
        known = self._pods.setdefault(uid(pod), _Pod())
        for name, volume in used.items():
            if volume is not None and name not in known.ready:
                self._try(pod, name, volume, known)
        if known.failed:
            self._raise(known)

    async def tear_down(self, pod: Pod) -> None:
        """Remove the volumes of a pod whose containers have stopped. Raises OSError."""
        await self._empty_dirs.tear_down(pod)
        self._pods.pop(uid(pod), None)

    def _try(self, pod: Pod, name: str, volume: Volume, known: _Pod) -> None:
        before, now_s = known.failed.get(name), self._clock.monotonic_s()
        if before is not None and now_s < before.retry_at_s:
            return
        try:
            self._make(pod, volume)
        except (HostPathError, OSError, ValueError) as error:
            delay_s = min(2 * before.delay_s, MAX_DELAY_S) if before else FIRST_DELAY_S
            why = _words(error)
            known.failed[name] = _Failure(why, delay_s, now_s + delay_s)
            message = f'MountVolume.SetUp failed for volume "{name}" : {why}'
            self._recorder.pod_event(pod, "Warning", FAILED_MOUNT, message)
            return
        known.failed.pop(name, None)
        known.ready.add(name)

    def _make(self, pod: Pod, volume: Volume) -> None:
        """Make, or check, one volume. Raises HostPathError, OSError, ValueError (an invalid name or
        size)."""
        kind = kind_of(volume)
        if kind == HOST_PATH and volume.hostPath is not None:
            check_host_path(volume.hostPath)
        elif kind == EMPTY_DIR:
            self._empty_dirs.set_up(pod, volume, self._memory_bytes(pod, volume))

    def _memory_bytes(self, pod: Pod, volume: Volume) -> int:
        """The size of an emptyDir in memory: the smallest of the node's allocatable memory, the
        pod's memory limit and the volume's sizeLimit (NODE-203); 0: none is known."""
        source = volume.emptyDir
        own = parse_integer(source.sizeLimit) if source and source.sizeLimit else 0
        of_pod = resource_config_for_pod(pod).memory_limit_bytes or 0
        return min((n for n in (self._allocatable_bytes, of_pod, own) if n > 0), default=0)

    def _raise(self, known: _Pod) -> None:
        names = " ".join(sorted(known.failed))
        why = ", ".join(failure.why for failure in known.failed.values())
        raise VolumesNotReady(
            f"unmounted volumes=[{names}], unattached volumes=[], failed to process volumes=[]: "
            f"{why}",
            min(failure.retry_at_s for failure in known.failed.values()),
        )


def _words(error: Exception) -> str:
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}"
