"""Measures a pod's files, logs, /etc/hosts and volumes, as `du` does.

Logs are measured on request: for pods with storage limits, for ranking and for the summary. Volumes
can be large, so `measure` pauses and lets other tasks run. Files that vanish meanwhile are skipped.
Upstream:
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

from refkubelet.host.disk_use import NOTHING, DiskUse, VolumeSize, added
from refkubelet.model.names import UnsafeNameError, pod_dir, pod_log_dir, pod_volume_dir, safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers, name_and_namespace, uid
from refkubelet.stats.usage import PodFiles

PLUGINS: Final[Mapping[str, str]] = {
    "emptyDir": "kubernetes.io/empty-dir",
    "configMap": "kubernetes.io/configmap",
    "gitRepo": "kubernetes.io/git-repo",
    "secret": "kubernetes.io/secret",
    "projected": "kubernetes.io/projected",
    "downwardAPI": "kubernetes.io/downward-api",
}
"""The kinds of volumes that the kubelet makes and can measure, and their plugins."""
LOCAL: Final = frozenset({"emptyDir", "configMap", "gitRepo"})
"""The kinds that count as ephemeral storage of the pod; the others are only in the summary."""
BLOCK_BYTES: Final = 512  # the unit of st_blocks, whatever the filesystem
PIECE: Final = 500
"""The number of files that are measured before other tasks run."""


@dataclass(frozen=True, slots=True)
class PodFilesReader:
    """Measures below the kubelet's directory and the directory of pod logs."""

    root_dir: str
    logs_dir: str

    def files(self, pod: Pod) -> PodFiles:
        """The pod's logs and /etc/hosts, without volumes (EVIC-029, EVIC-101)."""
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

    async def volumes(self, pod: Pod, now_ns: int) -> dict[str, VolumeSize]:
        """The sizes of the volumes that the kubelet made, by name, without those that do not exist
        yet. hostPath volumes are not measured."""
        sizes: dict[str, VolumeSize] = {}
        for volume in measured_volumes(pod):
            used = await measure(volume_dir(self.root_dir, pod, volume))
            if used.inodes:
                sizes[volume.name] = VolumeSize(used, now_ns, _is_local(volume))
        return sizes


def measured_volumes(pod: Pod) -> list[Volume]:
    """The volumes that `PodFilesReader.volumes` measures."""
    volumes = pod.spec.volumes or ()
    return [volume for volume in volumes if _kind(volume) is not None]


def has_claims(pod: Pod) -> bool:
    """Whether the pod has volumes of claims or drivers, which something else measures."""
    volumes = pod.spec.volumes or ()
    return any(v.persistentVolumeClaim or v.ephemeral or v.csi for v in volumes)


def volume_dir(root_dir: str, pod: Pod, volume: Volume) -> str:
    """The path of a measured volume."""
    return pod_volume_dir(root_dir, uid(pod), PLUGINS[_kind(volume) or "emptyDir"], volume.name)


def _kind(volume: Volume) -> str | None:
    return next((kind for kind in PLUGINS if getattr(volume, kind) is not None), None)


def _is_local(volume: Volume) -> bool:
    """Whether the volume counts as the pod's ephemeral storage (EVIC-044); an emptyDir in memory or
    huge pages does not."""
    if volume.emptyDir is not None and volume.emptyDir.medium not in (None, ""):
        return False
    return _kind(volume) in LOCAL


def plain_files(directory: str) -> DiskUse:
    """The files directly in a directory, without the directory itself; nothing if it does not
    exist."""
    try:
        with os.scandir(directory) as entries:
            return added(_entry(e.path) for e in entries if not e.is_dir(follow_symlinks=False))
    except OSError:
        return NOTHING


async def measure(path: str) -> DiskUse:
    """The size of a directory and all below it on the same filesystem; hard links count once."""
    total = NOTHING
    for number, use in enumerate(_walk(path), start=1):
        total += use
        if number % PIECE == 0:
            await asyncio.sleep(0)
    return total


def _walk(top: str) -> Iterator[DiskUse]:
    """The size of each file and directory at and below `top` on its filesystem."""
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
