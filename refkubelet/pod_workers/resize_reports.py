"""Conditions and events about a pod's resize: in progress, completed, failed (CG-063, LIFE-186).

What must never happen: a completion that is reported twice, or before every running container has
its allocated resources.
Upstream: pkg/kubelet/kubelet.go: SyncPod; kubelet_pods.go: determinePodResizeStatus.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from lightkube.models.core_v1 import ResourceRequirements
from msgspec import Struct

from refkubelet.allocation import messages
from refkubelet.allocation.conditions import ERROR, ResizeConditions
from refkubelet.cri.records import RuntimePodStatus
from refkubelet.events.recorder import EventRecorder
from refkubelet.kuberuntime.decisions.pod_resize import merged
from refkubelet.kuberuntime.decisions.resize_actions import CPU, MEMORY
from refkubelet.kuberuntime.results import PodSyncResult
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.objects import Pod, PodCondition
from refkubelet.model.pod import pod_ref, uid

log = logging.getLogger(__name__)


class ResizingRuntime(Protocol):
    """What the reports ask of the runtime manager."""

    def resize_in_progress(self, pod: Pod, status: RuntimePodStatus) -> bool: ...

    def actuated(self, pod_uid: str, container: str) -> ResourceRequirements | None: ...

    def note_pod_level(self, pod: Pod) -> None: ...


class ReadableCgroups(Protocol):
    """What the reports ask of the container manager."""

    def read_config(self, pod: Pod, resource: str) -> ResourceConfig:
        """The limits of the pod's cgroup for `resource`, "cpu" or "memory". Raises OSError."""


class ResizeReports(Struct, frozen=True):
    """Reports resizes; called by the steps of the pod workers."""

    conditions: ResizeConditions
    recorder: EventRecorder
    runtime: ResizingRuntime
    cgroups: ReadableCgroups | None
    """None: pods have no cgroups (cgroupsPerQOS false)."""
    reinspect: Callable[[str], None]
    """Called with a pod's UID: the next relist reads its status even if no state has changed."""

    def cgroup_made(self, pod: Pod) -> None:
        """Record that the pod's cgroup has the pod-level resources of the spec, with which it was
        just made: they are no resize (CG-064)."""
        self.runtime.note_pod_level(pod)

    def before_sync(self, pod: Pod, status: RuntimePodStatus) -> None:
        """Set the condition "in progress", or report the completion. Called with the allocated pod
        before its status is generated."""
        if self.runtime.resize_in_progress(pod, status):
            self.conditions.set_in_progress(uid(pod), _generation(pod))
            return
        generation = self.conditions.finish(uid(pod), _generation(pod))
        if generation is not None:
            text = messages.completed(pod, generation)
            self.recorder.pod_event(pod, "Normal", messages.COMPLETED, text)

    def after_sync(self, pod: Pod, result: PodSyncResult) -> None:
        """Have the pod's status read again if containers were resized, and report a failed resize;
        a failed one may have changed something, too."""
        if result.resized:
            self.reinspect(uid(pod))
        if result.resize_error is None:
            return
        generation, changed = self.conditions.set_in_progress(
            uid(pod), _generation(pod), ERROR, result.resize_error
        )
        if changed:
            text = messages.failed(pod, generation, result.resize_error)
            self.recorder.pod_event(pod, "Warning", messages.ERROR, text)

    def of(self, pod: Pod) -> tuple[PodCondition, ...]:
        """The conditions for the pod's status."""
        return self.conditions.of(uid(pod))

    def at_end(self, pod: Pod) -> None:
        """Drop the conditions of a pod that starts no more containers."""
        self.conditions.clear(uid(pod))

    def cgroup_config(self, pod: Pod) -> ResourceConfig | None:
        """The current limits of the pod's cgroup; None without a cgroup, or if reading it fails."""
        if self.cgroups is None:
            return None
        try:
            memory = self.cgroups.read_config(pod, MEMORY)
            return merged(memory, self.cgroups.read_config(pod, CPU))
        except (OSError, ValueError) as error:
            log.debug("cannot read the cgroup of %s: %s", pod_ref(pod), error)  # the pod has ended
            return None

    def actuated(self, pod: Pod) -> Callable[[str], ResourceRequirements | None]:
        """The actuated resources of the pod's containers, as a function of the container's name."""
        return lambda name: self.runtime.actuated(uid(pod), name)


def _generation(pod: Pod) -> int:
    return pod.metadata.generation or 0
