"""Thresholds and times of evictions, as a kubelet's configuration gives them."""

from __future__ import annotations

from dataclasses import dataclass

from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.config.eviction_thresholds import Threshold
from refkubelet.config.kubelet_config import KubeletConfiguration


@dataclass(frozen=True, slots=True)
class EvictionConfig:
    """Thresholds and times of one kubelet (EVIC-007). `memcg_notification`: with cgroup v1 the
    kernel tells when memory runs short (EVIC-058)."""

    thresholds: tuple[Threshold, ...] = ()
    pressure_transition_s: float = 300.0
    max_pod_grace_s: int = 0
    local_storage_isolation: bool = True
    memcg_notification: bool = False

    @classmethod
    def of(cls, config: KubeletConfiguration) -> EvictionConfig:
        """From a configuration with its defaults applied (EVIC-006, EVIC-008).

        Raises `ThresholdError`.
        """
        thresholds = parse_thresholds(
            config.eviction_hard or {},
            config.eviction_soft,
            config.eviction_soft_grace_period,
            config.eviction_minimum_reclaim,
            config.enforce_node_allocatable,
        )
        return cls(
            thresholds,
            config.eviction_pressure_transition_period_s or 300.0,
            config.eviction_max_pod_grace_period,
            config.local_storage_capacity_isolation,
            config.kernel_memcg_notification,
        )
