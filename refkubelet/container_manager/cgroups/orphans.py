"""Removes, in the background, cgroups of pods that the kubelet does not know (CG-043).

What must never happen here: a cgroup of a pod with a worker is removed; directories are listed
while nothing changes.
Upstream: pkg/kubelet/kubelet_pods.go: cleanupOrphanedPodCgroups;
pkg/kubelet/cm/pod_container_manager_linux.go: GetAllPodsFromCgroups.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable

from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.container_manager.cgroups.tree import CgroupTree, link_count, shown
from refkubelet.failures import end_tasks, log_failure
from refkubelet.model.cgroups.cpu_shares import MIN_SHARES
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.cgroups.names import CgroupName, parse_path, pod_uid
from simclock import Clock

log = logging.getLogger(__name__)


class Orphans:
    """Finds and removes these cgroups. `parents`: the cgroups that contain those of pods; `kill`:
    sends SIGKILL to a process."""

    def __init__(
        self,
        tree: CgroupTree,
        parents: tuple[CgroupName, ...],
        kill: Callable[[int], None],
        clock: Clock,
    ) -> None:
        self._tree = tree
        self._parents = parents
        self._kill = kill
        self._clock = clock
        self._directories = [d for name in parents for d in tree.directories(name)]
        self._looked_at: tuple[list[int], frozenset[str]] | None = None
        self._removing: dict[str, asyncio.Task[None]] = {}

    def remove(self, keep: Collection[str], volumes_exist: Callable[[str], bool]) -> None:
        """Remove, in the background, the cgroups of pods whose UID is not in `keep`.

        While volumes of such a pod are mounted, its cgroup stays and gets the least CPU. The
        directories are not listed while they and `keep` are as in a round without orphans.
        """
        look = ([link_count(d) for d in self._directories], frozenset(keep))
        if look == self._looked_at:
            return
        orphans = [(pod, name) for pod, name in self._pod_cgroups() if pod not in keep]
        self._looked_at = None if orphans else look
        for pod, name in orphans:
            if volumes_exist(pod):
                self._slow_down(name)
            elif pod not in self._removing:
                log.info("removing cgroup %s: its pod has ended or is unknown", shown(name))
                task = asyncio.create_task(self._remove_orphan(pod, name), name=f"cgroup {pod}")
                self._removing[pod] = task

    def _pod_cgroups(self) -> Iterable[tuple[str, CgroupName]]:
        for name in self._parents:
            path = self._tree.path(name)
            for child in self._tree.children(name, like="pod"):
                name_words = parse_path(f"{path}/{child}", self._tree.driver)
                pod = pod_uid(name_words[-1])
                if pod is not None:
                    yield pod, (*name, name_words[-1])

    def _slow_down(self, name: CgroupName) -> None:
        try:
            self._tree.update(name, ResourceConfig(cpu_shares=MIN_SHARES))
        except CgroupError as error:
            log.warning("cannot lower the CPU shares of cgroup %s: %s", shown(name), error)

    async def _remove_orphan(self, pod: str, name: CgroupName) -> None:
        try:
            await self._tree.destroy(name, self._kill, self._clock)
        except CgroupError as error:
            log.warning("%s", error)
        except Exception as error:
            log_failure(log, f"cannot remove cgroup {shown(name)}", error)
        finally:
            del self._removing[pod]

    async def stop(self) -> None:
        """Cancel the removals that run."""
        await end_tasks(self._removing.values())
