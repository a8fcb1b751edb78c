"""Removes directories of pods that are gone (NODE-208.3), left by a kubelet that ended before.

The sync loop waits for housekeeping, and a directory can hold whatever a pod has put there. So one
that may go gets another name first, which is done at once, also where a pod with the same UID comes
back, and is emptied beside the loop. What is left of it when the kubelet ends is a directory of an
unknown pod for the next one.
Upstream: pkg/kubelet/kubelet_volumes.go: cleanupOrphanedPodDirs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from refkubelet.failures import Complaints, end_tasks
from refkubelet.host.directories import anything_mounted_below
from refkubelet.model.names import GOING, safe_join
from refkubelet.telemetry.volume_metrics import VolumeMetrics
from refkubelet.volumes.manager import PodVolumes
from refkubelet.volumes.mounting import Mounts
from refkubelet.volumes.plan import LOCAL_MOUNTS, OWN_MOUNTS
from refkubelet.volumes.removal import remove_empty_volumes, remove_tree
from simclock import Clock

log = logging.getLogger(__name__)


class OrphanDirectories:
    """The directories below `root_dir/pods`. `volumes` None: no volume is of a driver. `metrics`
    tell how many were found in the last round, and how many of these have to stay."""

    def __init__(
        self,
        root_dir: Path,
        mounts: Mounts,
        volumes: PodVolumes | None,
        clock: Clock,
        metrics: VolumeMetrics,
    ) -> None:
        self._pods_dir = str(root_dir / "pods")
        self._mounts = mounts
        self._volumes = volumes
        self._complaints = Complaints(log, clock)
        self._metrics = metrics
        self._looked_at: tuple[object, ...] = ()
        self._removals: dict[str, asyncio.Task[None]] = {}

    def has_volumes(self, pod_uid: str) -> bool:
        """Whether anything is still mounted below the pod's directory (CG-043): a volume, or a
        subpath of a volume. True if that cannot be read: then the directory stays."""
        try:
            return anything_mounted_below(os.path.join(self._pods_dir, pod_uid))
        except OSError as error:
            log.warning("cannot read what is mounted below %s: %s", self._pods_dir, error)
            return True

    def remove(self, keep: frozenset[str], may_go: Callable[[str], bool], *seen: object) -> None:
        """Begin to remove the directories of pods that are not in `keep` and may go. The directory
        is not listed again while it and `seen` are as they were when nothing was found to remove.
        Raises OSError if it cannot be listed."""
        try:
            look = (os.stat(self._pods_dir).st_mtime_ns, *seen)
            if look == self._looked_at:
                return
            names = sorted(os.listdir(self._pods_dir))
        except (FileNotFoundError, NotADirectoryError):
            return
        self._looked_at = look if keep.issuperset(names) else ()
        orphans = [n for n in names if n not in keep and n not in self._removals and may_go(n)]
        begun = [self._begin(name) for name in orphans]
        self._metrics.orphans_cleaned.set(float(len(begun)))
        self._metrics.orphan_errors.set(float(begun.count(False)))

    def _begin(self, name: str) -> bool:
        """Begin to remove one directory; False: it has to stay."""
        path = safe_join(self._pods_dir, name)
        try:
            # Volumes and mounts are left by a kubelet that ended before the pod did.
            if self._volumes is not None and self._volumes.is_left(name):
                return False
            for own in (*OWN_MOUNTS, LOCAL_MOUNTS):
                self._mounts.unmount_below(os.path.join(path, own))
            if self.has_volumes(name):  # mounts of others: the kubelet must not delete them
                return False
            remove_empty_volumes(path, OWN_MOUNTS)
            going = self._renamed(name)
        except OSError as error:
            self._failed(name, error)
            return False
        task = asyncio.create_task(self._remove(name, going), name=f"removes {path}")
        self._removals[going] = task
        return True

    def _renamed(self, name: str) -> str:
        """Give the directory a name that no pod has; returns that. Raises OSError."""
        if name.startswith(GOING) or not os.path.isdir(safe_join(self._pods_dir, name)):
            return name
        for number in range(len(self._removals) + 1000):
            going = f"{GOING}{number}-{name}"[:255]
            if not os.path.lexists(safe_join(self._pods_dir, going)):
                os.rename(safe_join(self._pods_dir, name), safe_join(self._pods_dir, going))
                return going
        return name

    async def _remove(self, name: str, going: str) -> None:
        try:
            await remove_tree(safe_join(self._pods_dir, going))
        except Exception as error:
            self._failed(name, error)
        finally:
            self._removals.pop(going, None)

    async def stop(self) -> None:
        """Give up what is being removed; the next kubelet goes on with it."""
        await end_tasks(self._removals.values())

    def _failed(self, name: str, error: Exception) -> None:
        path = safe_join(self._pods_dir, name)
        complaint = f"orphaned pod directory {path} is not removed"
        self._complaints.failed(complaint, error, OSError)
