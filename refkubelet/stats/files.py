"""The size of a pod's files: logs, /etc/hosts and volumes, as `du` counts them.

Logs are measured on request: for pods with storage limits, for ranking and for the summary. Volumes
can be large: `measure` goes through them piece by piece and lets others run meanwhile. What must
never happen: a file that vanishes meanwhile breaks the measuring. Upstream:
pkg/kubelet/stats/host_stats_provider.go, pkg/volume/metrics_du.go.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lightkube.models.core_v1 import Volume

from refkubelet.model.names import UnsafeNameError, pod_dir, pod_log_dir, pod_volume_dir, safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers, name_and_namespace, uid
from refkubelet.stats.usage import NOTHING, DiskUse, PodFiles, VolumeUse, added

PLUGINS: Final[Mapping[str, str]] = {
    "emptyDir": "kubernetes.io/empty-dir",
    "configMap": "kubernetes.io/configmap",
    "gitRepo": "kubernetes.io/git-repo",
    "secret": "kubernetes.io/secret",
    "projected": "kubernetes.io/projected",
    "downwardAPI": "kubernetes.io/downward-api",
}
"""Kinds of volumes that the kubelet makes itself and can measure, and their plugins."""
LOCAL: Final = frozenset({"emptyDir", "configMap", "gitRepo"})
"""Those that count as ephemeral storage of the pod; of the others the summary tells only."""
BLOCK_BYTES: Final = 512  # the unit of st_blocks, whatever the filesystem
PIECE: Final = 500
"""So many files are looked at before others may run."""


@dataclass(frozen=True, slots=True)
class PodFilesReader:
    """Measures below the kubelet's directory and the directory of pod logs."""

    root_dir: str
    logs_dir: str

    def files(self, pod: Pod) -> PodFiles:
        """Logs and /etc/hosts of the pod, without volumes (EVIC-029, EVIC-101)."""
        name, namespace = name_and_namespace(pod)
        try:
            logs = pod_log_dir(self.logs_dir, namespace, name, uid(pod))
        except UnsafeNameError:  # too long together: such a pod never gets a sandbox
            return PodFiles()
        by_container = {c.name: plain_files(safe_join(logs, c.name)) for c in containers(pod)}
        return PodFiles(
            logs={name: use for name, use in by_container.items() if use.inodes},
            pod_logs=plain_files(logs),
            etc_hosts=_entry(os.path.join(pod_dir(self.root_dir, uid(pod)), "etc-hosts")),
        )

    async def volumes(self, pod: Pod, now_ns: int) -> dict[str, VolumeUse]:
        """The volumes that can be measured: those the kubelet makes itself. hostPath volumes have
        no size of their own. Volumes that are not there yet are left out."""
        found: dict[str, VolumeUse] = {}
        for volume in measured_volumes(pod):
            used = await measure(volume_dir(self.root_dir, pod, volume))
            if used.inodes:
                found[volume.name] = VolumeUse(used, now_ns, _is_local(volume))
        return found


def measured_volumes(pod: Pod) -> list[Volume]:
    """The volumes that `PodFilesReader.volumes` measures."""
    volumes = pod.spec.volumes or ()
    return [volume for volume in volumes if _kind(volume) is not None]


def volume_dir(root_dir: str, pod: Pod, volume: Volume) -> str:
    """Where a measured volume lies."""
    return pod_volume_dir(root_dir, uid(pod), PLUGINS[_kind(volume) or "emptyDir"], volume.name)


def _kind(volume: Volume) -> str | None:
    return next((kind for kind in PLUGINS if getattr(volume, kind) is not None), None)


def _is_local(volume: Volume) -> bool:
    """EVIC-044; an emptyDir in memory or in huge pages is not."""
    if volume.emptyDir is not None and volume.emptyDir.medium not in (None, ""):
        return False
    return _kind(volume) in LOCAL


def plain_files(directory: str) -> DiskUse:
    """The files directly in a directory, without the directory; nothing where there is none."""
    try:
        with os.scandir(directory) as entries:
            return added(_entry(e.path) for e in entries if not e.is_dir(follow_symlinks=False))
    except OSError:
        return NOTHING


async def measure(path: str) -> DiskUse:
    """The directory and all below it on the same filesystem; hard links count once."""
    total = NOTHING
    for seen, use in enumerate(_walk(path), start=1):
        total += use
        if seen % PIECE == 0:
            await asyncio.sleep(0)
    return total


def _walk(top: str) -> Iterator[DiskUse]:
    try:
        device = os.lstat(top).st_dev
    except OSError:
        return
    linked: set[int] = set()
    waiting = [top]
    while waiting:
        path = waiting.pop()
        try:
            found = os.lstat(path)
            is_dir = stat.S_ISDIR(found.st_mode)
            if found.st_dev != device or found.st_ino in linked:
                continue
            below = os.listdir(path) if is_dir else []
        except OSError:  # removed meanwhile
            continue
        if found.st_nlink > 1 and not is_dir:
            linked.add(found.st_ino)
        yield DiskUse(found.st_blocks * BLOCK_BYTES, 1)
        waiting += (os.path.join(path, name) for name in below)


def _entry(path: str) -> DiskUse:
    try:
        return DiskUse(os.lstat(path).st_blocks * BLOCK_BYTES, 1)
    except OSError:
        return NOTHING
