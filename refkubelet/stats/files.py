"""Measures a pod's files, logs, /etc/hosts and volumes, as `du` does.

Logs are measured on request: for pods with storage limits, for ranking and for the summary. Volumes
can be large, and are measured beside the loop. Files that vanish meanwhile are skipped.
Upstream: pkg/kubelet/stats/host_stats_provider.go, pkg/volume/metrics_du.go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Final

from lightkube.models.core_v1 import Volume
from msgspec import Struct

from refkubelet.failures import Complaints
from refkubelet.host.disk_use import NOTHING, DiskUse, VolumeSize, added
from refkubelet.host.untrusted_files import entry_status, looked_at, opened_directory, walked
from refkubelet.model.names import UnsafeNameError, pod_dir, pod_log_dir, pod_volume_dir, safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers, name_and_namespace, pod_ref, uid
from refkubelet.stats.usage import PodFiles
from simclock import aside

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
MOST_LINKED: Final = 1_000_000
"""Of so many files with several names it is remembered that they were counted."""


class PodFilesReader(Struct, frozen=True):
    """Measures below the kubelet's directory and the directory of pod logs."""

    root_dir: str
    logs_dir: str
    timed: Callable[[], AbstractContextManager[None]] = nullcontext
    """A context for each measurement of a volume."""

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

    async def volumes(self, pod: Pod, now_ns: int, complaints: Complaints) -> dict[str, VolumeSize]:
        """The sizes of the volumes that the kubelet made, by name, without those that do not exist
        yet. hostPath volumes are not measured. `complaints` logs what cannot be counted."""
        sizes: dict[str, VolumeSize] = {}
        for volume in measured_volumes(pod):
            used = await self._counted(pod, volume, complaints)
            if used.inodes:
                sizes[volume.name] = VolumeSize(used, now_ns, _is_local(volume))
        return sizes

    async def _counted(self, pod: Pod, volume: Volume, complaints: Complaints) -> DiskUse:
        """The size of a volume as far as it can be counted."""
        errors: list[OSError] = []
        used = NOTHING
        try:
            with self.timed():
                used = await measure(volume_dir(self.root_dir, pod, volume), errors.append)
        except OSError as failure:
            errors.append(failure)
        complaint = f"not all of volume {volume.name} of {pod_ref(pod)} can be counted"
        for error in errors:
            complaints.failed(complaint, error, OSError)
        if not errors:
            complaints.over(complaint)
        return used


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
        return added(_use(met.status) for met in looked_at(directory) if not met.is_directory)
    except OSError:
        return NOTHING


def _ignored(error: OSError) -> None:
    """What was counted is good enough."""


async def measure(path: str, incomplete: Callable[[OSError], None] = _ignored) -> DiskUse:
    """The size of a directory and all below it on the same filesystem; hard links count once.
    `incomplete`: is told, maybe in another thread, why the size is larger than what was counted.
    Raises OSError when nothing is answered."""
    return await aside(f"the size of {path}", _measured(path, incomplete))


def _measured(path: str, incomplete: Callable[[OSError], None]) -> Generator[None, None, DiskUse]:
    """The size of what is at `path`, an entry at each step."""
    with ExitStack() as stack:
        try:
            top = stack.enter_context(opened_directory(path))
        except OSError:  # it is not made yet, or removed
            return NOTHING
        status = os.fstat(top)
        total = _use(status)
        try:
            for use in _below(top, status.st_dev):
                total += use
                yield
        except OSError as error:
            incomplete(error)
        return total


def _below(top: int, device: int) -> Iterator[DiskUse]:
    """The size of each file and directory below `top` on its filesystem. Raises OSError."""
    linked: set[int] = set()
    for met in walked(top, enters=lambda status: status.st_dev == device):
        status = met.status
        if status.st_dev != device or status.st_ino in linked:
            continue
        if status.st_nlink > 1 and not met.is_directory and len(linked) < MOST_LINKED:
            linked.add(status.st_ino)
        yield _use(status)


def _use(status: os.stat_result) -> DiskUse:
    return DiskUse(status.st_blocks * BLOCK_BYTES, 1)


def _entry(path: str) -> DiskUse:
    status = entry_status(path)
    return NOTHING if status is None else _use(status)
