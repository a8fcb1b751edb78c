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

    def active_pods(self) -> tuple[Pod, ...]:
        """All pods except those that have ended (LIFE-012)."""
        return tuple(pod for pod in self._pods.pods() if not self._is_inactive(pod))

    def _is_inactive(self, pod: Pod) -> bool:
        if self._workers.is_pod_known_terminated(uid(pod)):
            return True
        over = has_terminal_phase(pod) or is_terminal(self._statuses.get(uid(pod)))
        return over and not self._workers.is_pod_termination_requested(uid(pod))

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
