"""The size of a pod's files: logs and emptyDir volumes, measured by walking them.

Walking blocks the loop for as long as the disk takes, so the eviction manager asks for it only
when the answer can matter: for pods with storage limits, and to rank pods when the disk is short.
What must never happen: a file that vanishes meanwhile breaks the cycle.
Upstream: pkg/kubelet/stats (log metrics), pkg/volume/emptydir (du).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from refkubelet.eviction.local_storage import empty_dirs
from refkubelet.eviction.usage import PodFiles
from refkubelet.model.names import pod_log_dir, pod_volume_dir
from refkubelet.model.objects import Pod, uid

EMPTY_DIR: Final = "kubernetes.io/empty-dir"
BLOCK_BYTES: Final = 512  # the unit of st_blocks, whatever the filesystem
ReadFiles = Callable[[Pod], PodFiles]


@dataclass(frozen=True, slots=True)
class PodFilesReader:
    """Measures below the kubelet's directory and the directory of pod logs. Callable."""

    root_dir: str
    logs_dir: str

    def __call__(self, pod: Pod) -> PodFiles:
        """Bytes on disk; a directory that is not there has 0."""
        meta, spec = pod.metadata, pod.spec
        if meta is None or spec is None:
            return PodFiles()
        logs = pod_log_dir(self.logs_dir, meta.namespace or "", meta.name or "", uid(pod))
        containers = (*(spec.initContainers or ()), *spec.containers)
        return PodFiles(
            {c.name: directory_bytes(os.path.join(logs, c.name)) for c in containers},
            {name: directory_bytes(self._empty_dir(pod, name)) for name in empty_dirs(pod)},
        )

    def _empty_dir(self, pod: Pod, volume: str) -> str:
        return pod_volume_dir(self.root_dir, uid(pod), EMPTY_DIR, volume)


def directory_bytes(path: str) -> int:
    """Disk space of everything below `path`, as `du` counts it; hard links count each time."""
    total = 0
    for directory, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(directory, name)).st_blocks * BLOCK_BYTES
            except OSError:  # removed meanwhile
                continue
    return total
