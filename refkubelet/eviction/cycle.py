"""Decides which thresholds act now: the seven steps of a cycle (EVIC-053). Pure.

`evaluate` takes the observations and the memory of the last cycle; it returns the acting
thresholds, the node conditions and the memory for the next cycle. What must never happen: the grace
period of a threshold goes on after its signal has recovered (a threshold not met is forgotten), or
two pods are evicted for the same measurement (EVIC-054).
Upstream: pkg/kubelet/eviction/eviction_manager.go: synchronize.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.config.eviction_thresholds import MEMORY, Threshold
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.model.objects import Pod

HARD_GRACE_S: Final = 1  # EVIC-087
DEFAULT_GRACE_S: Final = 30  # of pods whose spec says nothing


class EvictionConfig(Struct, frozen=True):
    """Thresholds and times of one kubelet (EVIC-007)."""

    thresholds: tuple[Threshold, ...] = ()
    pressure_transition_s: float = 300.0
    max_pod_grace_s: int = 0
    local_storage_isolation: bool = True
    """Pods above their own storage limits are evicted (EVIC-100..102)."""
    memcg_notification: bool = False
    """With cgroup v1 the kernel notifies when memory passes a threshold (EVIC-058)."""

    @classmethod
    def of(cls, config: KubeletConfiguration) -> EvictionConfig:
        """From a configuration with its defaults applied (EVIC-006, EVIC-008).

        Raises `ThresholdError` for invalid thresholds.
        """
        thresholds = parse_thresholds(
            hard=config.eviction_hard or {},
            soft=config.eviction_soft,
            soft_grace_period=config.eviction_soft_grace_period,
            minimum_reclaim=config.eviction_minimum_reclaim,
            enforced=config.enforce_node_allocatable,
        )
        return cls(
            thresholds=thresholds,
            pressure_transition_s=config.eviction_pressure_transition_period_s,
            max_pod_grace_s=config.eviction_max_pod_grace_period,
            local_storage_isolation=config.local_storage_capacity_isolation,
            memcg_notification=config.kernel_memcg_notification,
        )


class Observation(Struct, frozen=True):
    """One measured signal. A signal without observation is never pressure (EVIC-027)."""

    available: int
    """The free amount: bytes, inodes or pids."""
    capacity: int
    """The whole amount, in the same unit."""
    time_ns: int = 0
    """When it was measured, nanoseconds since 1970 (EVIC-053 step 7); 0: unknown."""


def _nothing() -> Mapping[str, float]:
    return MappingProxyType({})


class CycleMemory(Struct, frozen=True):
    """What a cycle keeps for the next one: since when each threshold is active, the met thresholds,
    when each condition was last seen, the observations. Times: monotonic seconds."""

    first_seen_s: Mapping[Threshold, float] = field(default_factory=lambda: MappingProxyType({}))
    met: tuple[Threshold, ...] = ()
    condition_seen_s: Mapping[str, float] = field(default_factory=_nothing)
    observations: Mapping[str, Observation] = field(default_factory=lambda: MappingProxyType({}))


class CycleResult(Struct, frozen=True):
    """`conditions`: the pressure conditions that are True, sorted. `acting`: the thresholds for
    which the node must reclaim, most urgent first (EVIC-055)."""

    memory: CycleMemory
    conditions: tuple[str, ...]
    acting: tuple[Threshold, ...]


def evaluate(
    thresholds: Iterable[Threshold],
    observations: Mapping[str, Observation],
    memory: CycleMemory,
    now_s: float,
    transition_s: float,
) -> CycleResult:
    """Do steps 1 to 7 of EVIC-053, and order the result by EVIC-055 (c). `transition_s`: how long a
    condition stays True after its last threshold was met."""
    thresholds = tuple(thresholds)
    below = thresholds_met(thresholds, observations, enforce_min_reclaim=False)  # step 1
    unresolved = thresholds_met(memory.met, observations, enforce_min_reclaim=True)  # step 2
    active = (*below, *(t for t in unresolved if t not in below))
    first_seen = {t: memory.first_seen_s.get(t, now_s) for t in active}  # step 3
    seen_s_now = {t.condition: now_s for t in active}  # step 4
    condition_seen = {**memory.condition_seen_s, **seen_s_now}
    conditions = sorted(c for c, s in condition_seen.items() if now_s - s < transition_s)  # step 5
    met = tuple(t for t in active if now_s - first_seen[t] >= t.grace_s)  # step 6
    acting = [t for t in met if _is_fresh(t.signal, observations, memory.observations)]  # step 7
    new_memory = CycleMemory(first_seen, met, condition_seen, observations)
    urgent_first = sorted(acting, key=lambda t: t.resource != MEMORY)
    return CycleResult(new_memory, tuple(conditions), tuple(urgent_first))


def thresholds_met(
    thresholds: Iterable[Threshold],
    observations: Mapping[str, Observation],
    *,
    enforce_min_reclaim: bool,
) -> tuple[Threshold, ...]:
    """The thresholds above their signal's available amount; with `enforce_min_reclaim` after adding
    the minimum reclaim. Comparisons are strict; a signal without an observation meets none
    (EVIC-027)."""
    return tuple(
        t
        for t in thresholds
        if t.signal in observations
        and observations[t.signal].available
        < _limit(t, observations[t.signal].capacity, enforce_min_reclaim=enforce_min_reclaim)
    )


def _limit(threshold: Threshold, capacity: int, *, enforce_min_reclaim: bool) -> int:
    limit = threshold.value.amount(capacity)
    if enforce_min_reclaim and threshold.min_reclaim is not None:
        limit += threshold.min_reclaim.amount(capacity)
    return limit


def _is_fresh(
    signal: str, now: Mapping[str, Observation], before: Mapping[str, Observation]
) -> bool:
    observation, last = now.get(signal), before.get(signal)
    if observation is None:
        return False
    return observation.time_ns == 0 or last is None or observation.time_ns > last.time_ns


def grace_override_s(threshold: Threshold, pod: Pod, max_pod_grace_s: int) -> int:
    """The grace period of an eviction in seconds: 1 for a hard threshold, else the pod's own, at
    most `max_pod_grace_s` unless that is negative (EVIC-087)."""
    if threshold.hard:
        return HARD_GRACE_S
    own = pod.spec.terminationGracePeriodSeconds
    if max_pod_grace_s < 0:
        return DEFAULT_GRACE_S if own is None else own
    return max_pod_grace_s if own is None else min(max_pod_grace_s, own)
