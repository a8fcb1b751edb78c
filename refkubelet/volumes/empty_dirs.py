"""emptyDir volumes: made once per pod, owned by its fsGroup, removed with the pod (NODE-203).

What must never happen here: a half-made directory counts as ready; a removal follows a mount, or
blocks the event loop for a large tree.
Upstream: pkg/volume/emptydir/empty_dir.go, pkg/volume/volume_linux.go.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from lightkube.models.core_v1 import Volume
from msgspec import Struct

from kubeobjects.quantity import parse_integer
from refkubelet.host.directories import make_directory
from refkubelet.model.cgroups.values import resource_config_for_pod
from refkubelet.model.names import pod_dir, pod_volume_dir, safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref, uid
from refkubelet.volumes.huge_pages import huge_page_bytes, is_huge_pages
from refkubelet.volumes.mounting import Mounts
from refkubelet.volumes.ownership import fs_group, give_to_group
from refkubelet.volumes.plan import EMPTY_DIR_PLUGIN, IN_MEMORY, OWN_MOUNTS
from refkubelet.volumes.removal import remove_tree

log = logging.getLogger(__name__)

MODE: Final = 0o777


class EmptyDirs(Struct, frozen=True):
    """Makes and removes emptyDir volumes below the kubelet's directory `root_dir`."""

    root_dir: str
    mounts: Mounts

    def path(self, pod: Pod, volume: str) -> str:
        """The path of the volume on the node."""
        return pod_volume_dir(self.root_dir, uid(pod), EMPTY_DIR_PLUGIN, volume)

    async def set_up(self, pod: Pod, volume: Volume, size_bytes: int) -> None:
        """Make the volume, if it is not ready yet. `size_bytes`: for one in memory. Raises
        OSError, ValueError."""
        medium = (volume.emptyDir.medium if volume.emptyDir is not None else None) or ""
        pages = huge_page_bytes(medium, pod) if is_huge_pages(medium) else 0
        if medium not in ("", IN_MEMORY) and not pages:
            raise ValueError(f'unknown storage medium "{medium}"')
        path = self.path(pod, volume.name)
        marker = self._marker(pod, volume.name)
        if os.path.isdir(path) and os.path.exists(marker) and not medium:
            return
        is_new = self._make(path, is_new=not os.path.exists(marker))
        if medium == IN_MEMORY:
            is_new |= self.mounts.tmpfs(path, size_bytes)
        elif pages:
            is_new |= self.mounts.huge_pages(path, pages)
        if is_new:
            await give_to_group(path, fs_group(pod), read_only=False)
        self._mark(marker)

    async def set_up_wrapped(
        self, pod: Pod, path: str, volume: str, *, in_memory: bool, size_bytes: int
    ) -> None:
        """Make the directory `path` that another kind of volume fills. Where nothing can be
        mounted, one in memory is on the disk (NODE-205). Raises OSError."""
        marker = self._marker(pod, f"wrapped_{volume}")
        if os.path.isdir(path) and os.path.exists(marker) and not in_memory:
            return
        is_new = self._make(path, is_new=not os.path.exists(marker))
        if in_memory:
            try:
                is_new |= self.mounts.tmpfs(path, size_bytes)
            except PermissionError as error:
                log.warning("volume %s of %s is on the disk: %s", volume, pod_ref(pod), error)
        if is_new:
            await give_to_group(path, fs_group(pod), read_only=False)
        self._mark(marker)

    def _make(self, path: str, *, is_new: bool) -> bool:
        """Make the directory, with its mode if it is new; returns `is_new`."""
        make_directory(os.path.dirname(path))
        os.makedirs(path, mode=MODE, exist_ok=True)
        if is_new:
            os.chmod(path, MODE)  # makedirs applies the umask
        return is_new

    def _mark(self, marker: str) -> None:
        make_directory(os.path.dirname(marker))
        os.close(os.open(marker, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o640))

    async def tear_down(self, pod: Pod) -> None:
        """Unmount and remove all volumes of the pod that the kubelet made, and its subpath mounts.
        Raises OSError."""
        directory = pod_dir(self.root_dir, uid(pod))
        own = [os.path.join(directory, below) for below in OWN_MOUNTS]
        for path in (*own, self._marker_dir(pod)):
            if os.path.lexists(path):
                self.mounts.unmount_below(path)
                await remove_tree(path)

    def _marker_dir(self, pod: Pod) -> str:
        above = os.path.join(pod_dir(self.root_dir, uid(pod)), "plugins")
        return os.path.join(above, EMPTY_DIR_PLUGIN.replace("/", "~"))

    def _marker(self, pod: Pod, volume: str) -> str:
        return safe_join(self._marker_dir(pod), volume, "ready")


def memory_bytes(pod: Pod, volume: Volume, allocatable_bytes: int) -> int:
    """The size of a volume in memory: the smallest of the node's allocatable memory, the pod's
    memory limit and the volume's sizeLimit (NODE-203); 0: none is known."""
    source = volume.emptyDir
    own = parse_integer(source.sizeLimit) if source and source.sizeLimit else 0
    of_pod = resource_config_for_pod(pod).memory_limit_bytes or 0
    return min((n for n in (allocatable_bytes, of_pod, own) if n > 0), default=0)
