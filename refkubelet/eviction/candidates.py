"""The pods that may be evicted in a cycle, and what they use.

Statistics are asked for only when a pod may have to go: an idle cycle is cheap, because pods
without storage limits of their own are told apart once, by their specs.
Upstream: pkg/kubelet/eviction/eviction_manager.go: synchronize, localStorageEviction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from refkubelet.config.eviction_thresholds import MEMORY, PIDS, Threshold
from refkubelet.eviction.layout import disk_of
from refkubelet.eviction.local_storage import has_storage_limits
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.stats.provider import PodStats
from refkubelet.stats.usage import PodUsage


@dataclass(frozen=True, slots=True)
class Candidates:
    """The pods of one cycle, and their statistics by UID."""

    pods: tuple[Pod, ...]
    """Those that the starved resource may cost."""
    usage: Mapping[str, PodUsage]
    """What `pods` use of that resource; of other resources it says nothing."""
    limited: tuple[Pod, ...]
    """Those with storage limits of their own (EVIC-100..102)."""
    files: Mapping[str, PodUsage]
    """What `limited` have on disks."""


NO_CANDIDATES: Final = Candidates((), {}, (), {})


class CandidateSearch:
    """Finds the candidates of a cycle. `pods`: all there are, in the same tuple as long as they are
    the same; `active_pods`: neither terminal nor fully terminated, with their allocated resources
    (EVIC-052)."""

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
        """`starved`: the threshold that pods may be evicted for, None: there is none.
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
        """Whether any pod can break a limit of its own. A spec is looked at once; while `pods`
        gives the same tuple, none is."""
        pods = self._pods()
        if pods is self._last_pods:
            return any(limited for _, limited in self._limited.values())
        self._last_pods = pods
        known, found = self._limited, {}
        for pod in pods:
            seen = known.get(uid(pod))
            if seen is None or seen[0] is not pod.spec:
                seen = (pod.spec, has_storage_limits(pod))
            found[uid(pod)] = seen
        self._limited = found
        return any(limited for _, limited in found.values())
