"""Thresholds and times of evictions, as a kubelet's configuration gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from refkubelet.eviction.grammar import parse_thresholds
from refkubelet.eviction.thresholds import Threshold


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
    def from_settings(
        cls,
        *,
        hard: Mapping[str, str],
        soft: Mapping[str, str],
        soft_grace_period: Mapping[str, str],
        minimum_reclaim: Mapping[str, str],
        enforced: Collection[str] = (),
        pressure_transition_s: float = 300.0,
        max_pod_grace_s: int = 0,
        local_storage_isolation: bool = True,
        memcg_notification: bool = False,
    ) -> EvictionConfig:
        """From the maps of a KubeletConfiguration, defaults already applied (EVIC-006);
        `enforced`: enforceNodeAllocatable (EVIC-008).

        Raises `ThresholdError`.
        """
        thresholds = parse_thresholds(hard, soft, soft_grace_period, minimum_reclaim, enforced)
        return cls(
            thresholds,
            pressure_transition_s or 300.0,
            max_pod_grace_s,
            local_storage_isolation,
            memcg_notification,
        )
