"""Chooses the pods to kill so that a critical pod fits (PREE-001..006). Pure.

Of the Guaranteed pods only as many are chosen as are needed if all preemptable pods of the lower
classes are killed, too; likewise of the Burstable pods, then of the BestEffort pods.
Upstream: pkg/kubelet/preemption/preemption.go: getPodsToPreempt and below;
pkg/kubelet/types/pod_update.go: Preemptable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct, field

from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from refkubelet.model.objects import Pod
from refkubelet.model.pod import is_critical
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import resource_request

PODS: Final = "pods"
CPU: Final = "cpu"
MEMORY: Final = "memory"
_NANO_PER_MILLI: Final = NANO // 1000


class Requirement(Struct, frozen=True):
    """A missing amount of a resource: millicores, bytes or a count, above 0 (PREE-002)."""

    resource: str
    amount: int


Requirements = tuple[Requirement, ...]


class NoVictims(Exception):
    """Killing all preemptable pods would not be enough; the text names what would still be missing
    (PREE-004)."""

    def __init__(self, left: Requirements) -> None:
        super().__init__(f"no set of running pods found to reclaim resources: {listed(left)}")


def listed(requirements: Requirements) -> str:
    """The requirements as upstream's messages print them.

    >>> listed((Requirement("memory", 123),))
    '[(res: memory, q: 123), ]'
    """
    return f"[{''.join(f'(res: {r.resource}, q: {r.amount}), ' for r in requirements)}]"


def preemptable(preemptor: Pod, pod: Pod) -> bool:
    """Whether `pod` may be killed so that `preemptor` can run (PREE-003). A pod without a priority
    is not compared: that is not the same as priority 0."""
    if is_critical(preemptor) and not is_critical(pod):
        return True
    own_priority, other = preemptor.spec.priority, pod.spec.priority
    return own_priority is not None and other is not None and own_priority > other


def pods_to_preempt(
    preemptor: Pod, pods: Sequence[Pod], requirements: Requirements
) -> tuple[Pod, ...]:
    """The pods to kill, in this order (PREE-005). Raises `NoVictims` if all of them would not be
    enough.
    """
    candidates = [pod for pod in pods if preemptable(preemptor, pod)]
    still_missing = without(requirements, candidates)
    if still_missing:
        raise NoVictims(still_missing)
    best_effort, burstable, guaranteed = (
        [pod for pod in candidates if qos_class(pod) == name]
        for name in ("BestEffort", "Burstable", "Guaranteed")
    )
    last = closest_pods(guaranteed, without(requirements, [*best_effort, *burstable]))
    then = closest_pods(burstable, without(requirements, [*best_effort, *last]))
    first = closest_pods(best_effort, without(requirements, [*then, *last]))
    return first + then + last


def closest_pods(pods: Sequence[Pod], requirements: Requirements) -> tuple[Pod, ...]:
    """A selection of `pods` that is enough: again and again the pod that comes closest to what is
    still missing (PREE-006). Raises `NoVictims` if all of them are not enough.
    """
    alike: dict[tuple[int, ...], _Alike] = {}
    candidates: list[tuple[Pod, _Alike]] = []
    for index, pod in enumerate(pods):
        amounts = (
            request(pod, name) for name in (*(r.resource for r in requirements), MEMORY, CPU)
        )
        group = alike.setdefault(tuple(amounts), _Alike(pod))
        heappush(group.places, -index)
        candidates.append((pod, group))
    chosen = []
    while requirements:
        if not candidates:
            raise NoVictims(requirements)
        best = _closest(alike.values(), requirements, len(candidates))
        pod, group = candidates[best]
        heappop(group.places)
        chosen.append(pod)
        requirements = without(requirements, [pod])
        last = candidates.pop()
        if best < len(candidates):  # as in upstream; this order decides later ties
            candidates[best] = last
            heappush(last[1].places, -best)
    return tuple(chosen)


class _Alike(Struct, frozen=True, eq=False):
    """Pods whose requests are those of one of them, so that none is closer than another. `places`:
    where they are among the candidates, negative, the last one first; those behind the end of the
    candidates do not count."""

    pod: Pod
    places: list[int] = field(default_factory=list)

    def last(self, end: int) -> int:
        """The place of the last one; -1: there is none."""
        while self.places and -self.places[0] >= end:
            heappop(self.places)
        return -self.places[0] if self.places else -1


def _closest(groups: Iterable[_Alike], requirements: Requirements, end: int) -> int:
    """The index of the closest pod; of equally close pods the one with the smaller request, then
    the later one."""
    ranks = ((_rank(g.pod, requirements), -last) for g in groups if (last := g.last(end)) >= 0)
    return -min(ranks)[1]


def _rank(pod: Pod, requirements: Requirements) -> tuple[float, int, int]:
    return distance(pod, requirements), request(pod, MEMORY), request(pod, CPU)


def distance(pod: Pod, requirements: Requirements) -> float:
    """How much killing the pod would leave missing: 0 is nothing; each requirement adds at most
    1."""
    missing = ((r.amount - request(pod, r.resource), r.amount) for r in requirements)
    return sum(((lack / amount) ** 2 for lack, amount in missing if lack > 0), 0.0)


def without(requirements: Requirements, pods: Sequence[Pod]) -> Requirements:
    """The requirements that remain when `pods` are gone."""
    rest = (
        replace(r, amount=r.amount - sum(request(pod, r.resource) for pod in pods))
        for r in requirements
    )
    return tuple(r for r in rest if r.amount > 0)


def request(pod: Pod, resource: str) -> int:
    """How much killing the pod frees: millicores, bytes or a count; 1 of `pods` (PREE-002)."""
    if resource == PODS:
        return 1
    unit = _NANO_PER_MILLI if resource == CPU else NANO
    return -(-resource_request(pod, resource) // unit)
