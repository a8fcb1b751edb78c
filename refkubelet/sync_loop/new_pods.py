"""Whether a new pod may run here: admission is asked, and a pod that is refused fails.

Rules: LIFE-010..012. Upstream: pkg/kubelet/kubelet.go: rejectPod; pkg/kubelet/kubelet_pods.go:
filterOutInactivePods.
"""

from __future__ import annotations

import logging
from collections import Counter

from refkubelet.admission.admit_handler import UNEXPECTED, AdmitHandler, Refusal, Rejection
from refkubelet.admission.manager import Allocations, PodAdmission
from refkubelet.admission.rejection_reasons import reason_label
from refkubelet.events.recorder import EventRecorder
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import has_terminal_phase, is_terminal, pod_ref, uid
from refkubelet.model.qos import qos_class
from refkubelet.pod_workers.transitions import WorkState
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.pods.manager import PodManager
from refkubelet.status.manager import StatusManager

log = logging.getLogger(__name__)


class NewPods:
    """Asks the admission handlers, in their order, about one pod at a time. `allocations`: the
    allocated resources of pods. `rejections`: how many pods were refused, by reason.
    `asked_about`: the UID of the pod that is being admitted; "": none is."""

    def __init__(
        self,
        handlers: tuple[AdmitHandler, ...],
        allocations: Allocations,
        pods: PodManager,
        workers: PodWorkers,
        statuses: StatusManager,
        recorder: EventRecorder,
    ) -> None:
        self._pods = pods
        self._workers = workers
        self._statuses = statuses
        self._recorder = recorder
        self.admission = PodAdmission(handlers, self.active_pods, allocations)
        self.rejections: Counter[str] = Counter()
        self.asked_about = ""
        self._seen_pods: tuple[Pod, ...] = ()
        self._any_over = False  # of `_seen_pods`, by their own statuses

    def active_pods(self) -> tuple[Pod, ...]:
        """All pods except those that have ended (LIFE-012): one that was asked to terminate counts
        until its containers have stopped, any other until its phase is terminal. One that is wanted
        again under its UID keeps its place: it is started without being asked about. As long as no
        pod at all may have ended it is the list of all pods itself: this is asked for each new
        pod."""
        if not self._may_have_ended(pods := self._pods.pods()):
            return pods
        record_of, status_of = self._workers.record, self._statuses.get
        active = []
        for pod in pods:
            pod_uid = uid(pod)
            record = record_of(pod_uid)
            ends = record is not None and record.state is not WorkState.SYNCING
            if record is not None and ends and not (record.terminated and record.restart_requested):
                ended = record.terminated
            else:
                ended = is_terminal(pod.status) or is_terminal(status_of(pod_uid))
            if not ended:
                active.append(pod)
        return tuple(active)

    def _may_have_ended(self, pods: tuple[Pod, ...]) -> bool:
        """False: no pod was asked to terminate, and no phase is terminal."""
        if pods is not self._seen_pods:
            self._seen_pods, self._any_over = pods, any(map(has_terminal_phase, pods))
        return self._any_over or self._workers.any_terminates() or self._statuses.any_over()

    async def may_run(self, pod: Pod) -> bool:
        """Ask admission, and reject the pod if it refuses. Pods that are ending or have ended are
        not asked about (LIFE-010)."""
        if self.ends(pod):
            return True
        self.asked_about = uid(pod)
        try:
            rejection = await self._admit(pod)
        finally:
            self.asked_about = ""
        if rejection is not None:
            self._reject(pod, rejection.reason, rejection.message)
        return rejection is None

    def ends(self, pod: Pod) -> bool:
        """The pod shall end, or is over: there is nothing to admit."""
        return self._workers.is_pod_termination_requested(uid(pod)) or has_terminal_phase(pod)

    async def _admit(self, pod: Pod) -> Refusal | None:
        """The refusal of the pod, or None. An admission handler that raises refuses the pod."""
        try:
            return await self.admission.add(pod)
        except Exception as error:
            log.exception("admission of %s failed", pod_ref(pod))
            return Rejection(UNEXPECTED, f"Unexpected error during admission: {error}")

    def _reject(self, pod: Pod, reason: str, message: str) -> None:
        """Make the pod Failed with that reason and message, and leave an event (LIFE-011)."""
        self.rejections[reason_label(reason)] += 1
        self._recorder.pod_event(pod, "Warning", reason, message)
        status = PodStatus(
            phase="Failed",
            reason=reason,
            message=f"Pod was rejected: {message}",
            qosClass=(pod.status.qosClass if pod.status else None) or qos_class(pod),
        )
        self._statuses.set_pod_status(pod, status)
