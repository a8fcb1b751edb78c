"""How long pods of the API server take to start, as the API server's clients see it (SRV-038.3).

A pod is followed from when it is first seen, if it has not begun by then and can be scheduled. Its
start is over when the API server tells that each of its containers runs; that has to be after the
kubelet has written it. Pulls (several at a time count once) and init containers are not the node's
fault and do not count for the indicator of the service level.
Upstream: pkg/kubelet/util/pod_startup_latency_tracker.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import has_terminal_phase, uid, uses_host_network
from refkubelet.telemetry.pod_metrics import StartMetrics
from simclock import Clock

STATELESS: Final = ("secret", "configMap", "downwardAPI", "emptyDir", "projected")
NANO: Final = 10**9


@dataclass(slots=True)
class _Start:
    """The start of one pod; times in ns since 1970."""

    pulls_begun_ns: list[int] = field(default_factory=list)
    pulls_ns: list[tuple[int, int]] = field(default_factory=list)
    init_since_ns: int | None = None
    inits_ns: int = 0
    told_running: bool = False
    over: bool = False


class PodStartupLatency:
    """Told of the steps of starts; each method may be called about any pod."""

    def __init__(self, metrics: StartMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._starts: dict[str, _Start] = {}
        self._unschedulable: set[str] = set()
        self._first_network_pod_seen = False

    def observed(self, pod: Pod) -> None:
        """The pod as the API server has it now; mirrors of static pods count, too."""
        pod_uid = uid(pod)
        if has_terminal_phase(pod):
            self._starts.pop(pod_uid, None)
            return
        start = self._starts.get(pod_uid)
        if is_unschedulable(pod):
            self._starts.pop(pod_uid, None)
            if start is not None or not _has_begun(pod):
                self._unschedulable.add(pod_uid)
        elif start is None:
            if not _has_begun(pod) and pod_uid not in self._unschedulable:
                self._starts[pod_uid] = _Start()
        elif start.told_running and not start.over and all_run(pod.status):
            self._observe(pod, start)

    def may_end(self, pod_uid: str) -> bool:
        """Whether the start of the pod with that UID would be over, were its pod `observed`."""
        start = self._starts.get(pod_uid)
        return start is not None and start.told_running and not start.over

    def written(self, pod: Pod) -> None:
        """The pod's status was written, and the API server has it like this."""
        start = self._starts.get(uid(pod))
        if start is not None and all_run(pod.status):
            start.told_running = True

    def pull_began(self, pod_uid: str) -> None:
        """A pull for the pod has begun."""
        if (start := self._starts.get(pod_uid)) is not None:
            start.pulls_begun_ns.append(self._clock.wall_ns())

    def pull_ended(self, pod_uid: str) -> None:
        """The oldest pull for the pod that is under way is over, if there is one."""
        start = self._starts.get(pod_uid)
        if start is not None and start.pulls_begun_ns:
            start.pulls_ns.append((start.pulls_begun_ns.pop(0), self._clock.wall_ns()))

    def init_began(self, pod_uid: str) -> None:
        """An init container that ends has started."""
        if (start := self._starts.get(pod_uid)) is not None:
            start.init_since_ns = self._clock.wall_ns()

    def init_ended(self, pod_uid: str, finished_ns: int) -> None:
        """It has ended."""
        start = self._starts.get(pod_uid)
        if start is not None and start.init_since_ns is not None:
            start.inits_ns += max(0, finished_ns - start.init_since_ns)
            start.init_since_ns = None

    def forget(self, pod_uid: str) -> None:
        """The pod is gone."""
        self._starts.pop(pod_uid, None)
        self._unschedulable.discard(pod_uid)

    def _observe(self, pod: Pod, start: _Start) -> None:
        start.over = True
        created = pod.metadata.creationTimestamp
        if created is None:
            return
        total_s = self._clock.wall_ns() / NANO - created.timestamp()
        self._metrics.total.observe(total_s)
        if is_stateful(pod):
            return
        sli_s = total_s - (together_ns(start.pulls_ns) + start.inits_ns) / NANO
        self._metrics.sli.observe(sli_s)
        if not uses_host_network(pod) and not self._first_network_pod_seen:
            self._first_network_pod_seen = True
            self._metrics.first_network_pod.set(sli_s)


def together_ns(spans_ns: list[tuple[int, int]]) -> int:
    """How long at least one of them lasted; by the order of their ends.

    >>> together_ns([(0, 5), (3, 7), (9, 10), (9, 10)])
    8
    """
    total, end = 0, 0
    for number, (begun, ended) in enumerate(spans_ns):
        if number == 0 or begun > end:
            total, end = total + ended - begun, ended
        elif ended > end:
            total, end = total + ended - end, ended
    return total


def all_run(status: PodStatus | None) -> bool:
    """Whether every regular container that the status tells of runs."""
    states = [s.state for s in (status.containerStatuses if status is not None else None) or ()]
    return all(state and state.running and state.running.startedAt for state in states)


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler has found no node for it yet."""
    conditions = (pod.status.conditions if pod.status is not None else None) or ()
    return any(c.type == "PodScheduled" and c.status == "False" for c in conditions)


def is_stateful(pod: Pod) -> bool:
    """Whether a volume of it holds more than the node makes."""
    return any(
        all(getattr(volume, kind, None) is None for kind in STATELESS)
        for volume in pod.spec.volumes or ()
    )


def _has_begun(pod: Pod) -> bool:
    return pod.status is not None and pod.status.startTime is not None
