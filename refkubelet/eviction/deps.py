"""What the eviction manager needs of its kubelet, and what it finds out about pods in a cycle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from refkubelet.cri.records import ImageFilesystems
from refkubelet.events.recorder import EventRecorder
from refkubelet.eviction.evictor import KillRequest
from refkubelet.eviction.observer import Observer
from refkubelet.model.objects import Pod
from refkubelet.stats.provider import PodStats
from refkubelet.stats.usage import PodUsage
from simtime import Clock

Reclaim = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PressureCondition:
    """One pressure condition of the node; `status` is "True" or "False"."""

    type: str
    status: str


@dataclass(frozen=True, slots=True)
class EvictionDeps:
    """What evictions need of their kubelet.

    `kill_pod` returns when the containers are stopped and raises when that takes too long
    (EVIC-089). `pods`: all there are, in the same tuple as long as they are the same;
    `active_pods`: neither terminal nor fully terminated, with their allocated resources
    (EVIC-052). `reclaim`: how to free disk that no pod needs (EVIC-071, EVIC-072), by the names
    `containers` and `images`.
    """

    clock: Clock
    observer: Observer
    image_fs_info: Callable[[], Awaitable[ImageFilesystems]]
    stats: PodStats
    pods: Callable[[], tuple[Pod, ...]]
    active_pods: Callable[[], tuple[Pod, ...]]
    pod_is_finished: Callable[[Pod], bool]
    kill_pod: Callable[[KillRequest], Awaitable[None]]
    events: EventRecorder
    reclaim: Mapping[str, Reclaim]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Who may be evicted, and what they use. `usage`: of all `pods`, as far as the resource that
    runs short is concerned; `files`: of those with limits of their own, `limited`."""

    pods: tuple[Pod, ...]
    usage: Mapping[str, PodUsage]
    limited: tuple[Pod, ...]
    files: Mapping[str, PodUsage]


NOBODY: Final = Candidates((), {}, (), {})
