"""Finds the pods that may be evicted in a cycle, and their statistics.

Statistics are read only when a pod may have to be evicted, which makes an idle cycle cheap.
Upstream: pkg/kubelet/eviction/eviction_manager.go: synchronize, localStorageEviction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from refkubelet.config.eviction_thresholds import MEMORY, PIDS, Threshold
from refkubelet.eviction.layout import disk_of
from refkubelet.eviction.local_storage import has_storage_limits
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.stats.provider import PodStats
from refkubelet.stats.usage import PodUsage


class Candidates(Struct, frozen=True):
    """The pods of one cycle, and their statistics by UID."""

    pods: tuple[Pod, ...]
    """The pods that may be evicted for the starved resource."""
    usage: Mapping[str, PodUsage]
    """How much `pods` use of that resource; other resources are left out."""
    limited: tuple[Pod, ...]
    """The pods with storage limits (EVIC-100..102)."""
    files: Mapping[str, PodUsage]
    """How much disk the `limited` pods use."""


NO_CANDIDATES: Final = Candidates((), {}, (), {})


class CandidateSearch:
    """Finds the candidates of a cycle. `pods`: all pods, in the same tuple object until one
    changes; `active_pods`: those neither terminal nor fully terminated, with their allocated
    resources (EVIC-052)."""

    def __init__(
        self,
        stats: PodStats,
        pods: Callable[[], tuple[Pod, ...]],
        active_pods: Callable[[], tuple[Pod, ...]],
    ) -> None:
        self._stats = stats
        self._pods = pods
        self._active_pods = active_pods
        self._last_pods: tuple[Pod, ...] | None = None
        self._limited: Mapping[str, tuple[object, bool]] = {}

    async def find(self, starved: Threshold | None, *, local_storage: bool) -> Candidates:
        """The candidates. `starved`: the threshold for which pods may be evicted, or None;
        `local_storage`: pods above their own storage limits are evicted, too."""
        limited = local_storage and self._any_limited()
        if starved is None and not limited:
            return NO_CANDIDATES
        pods = self._active_pods()
        offenders = tuple(pod for pod in pods if has_storage_limits(pod)) if limited else ()
        files = await self._stats.of(offenders, files=True) if offenders else {}
        if starved is None:
            return Candidates(pods, {}, offenders, files)
        usage = await self._stats.of(
            pods,
            memory=starved.resource == MEMORY,
            processes=starved.resource == PIDS,
            files=disk_of(starved.signal) is not None,
        )
        return Candidates(pods, usage, offenders, files)

    def _any_limited(self) -> bool:
        """Whether any pod has a storage limit. Each spec is checked once, and none while `pods`
        returns the same tuple."""
        pods = self._pods()
        if pods is self._last_pods:
            return any(limited for _, limited in self._limited.values())
        self._last_pods = pods
        before, checked = self._limited, {}
        for pod in pods:
            entry = before.get(uid(pod))
            if entry is None or entry[0] is not pod.spec:
                entry = (pod.spec, has_storage_limits(pod))
            checked[uid(pod)] = entry
        self._limited = checked
        return any(limited for _, limited in checked.values())
