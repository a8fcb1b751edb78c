"""emptyDir volumes: made once per pod, owned by its fsGroup, removed with the pod (NODE-203).

What must never happen here: a half-made directory counts as ready; a removal follows a mount, or
blocks the event loop for a large tree.
Upstream: pkg/volume/emptydir/empty_dir.go, pkg/volume/volume_linux.go.
"""

from __future__ import annotations

import logging
import os
import stat
from dataclasses import dataclass
from typing import Final

from lightkube.models.core_v1 import Volume

from refkubelet.host.directories import make_directory
from refkubelet.model.names import pod_dir, pod_volume_dir, safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.volumes.mounting import Mounts
from refkubelet.volumes.plan import EMPTY_DIR_PLUGIN, IN_MEMORY
from refkubelet.volumes.removal import remove_tree
from refkubelet.volumes.sub_paths import DIRECTORY as SUB_PATHS

log = logging.getLogger(__name__)

MODE: Final = 0o777
GROUP_DIRECTORY_BITS: Final = 0o2770


@dataclass(frozen=True, slots=True)
class EmptyDirs:
    """Makes and removes emptyDir volumes below the kubelet's directory `root_dir`."""

    root_dir: str
    mounts: Mounts

    def path(self, pod: Pod, volume: str) -> str:
        """The path of the volume on the node."""
        return pod_volume_dir(self.root_dir, uid(pod), EMPTY_DIR_PLUGIN, volume)

    def set_up(self, pod: Pod, volume: Volume, size_bytes: int) -> None:
        """Make the volume, if it is not ready yet. `size_bytes`: for one in memory. Raises
        OSError."""
        path = self.path(pod, volume.name)
        in_memory = volume.emptyDir is not None and volume.emptyDir.medium == IN_MEMORY
        marker = self._marker(pod, volume.name)
        if os.path.isdir(path) and os.path.exists(marker) and not in_memory:
            return
        make_directory(os.path.dirname(path))
        os.makedirs(path, mode=MODE, exist_ok=True)
        is_new = not os.path.exists(marker)
        if is_new:
            os.chmod(path, MODE)  # makedirs applies the umask
        if in_memory:
            is_new |= self.mounts.tmpfs(path, size_bytes)
        group = _fs_group(pod)
        if group is not None and is_new:
            give_to_group(path, group)
        make_directory(os.path.dirname(marker))
        os.close(os.open(marker, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o640))

    async def tear_down(self, pod: Pod) -> None:
        """Unmount and remove all emptyDir volumes of the pod, and its subpath mounts. Raises
        OSError."""
        directory = pod_dir(self.root_dir, uid(pod))
        above = os.path.dirname(self.path(pod, "any"))
        subpaths = os.path.join(directory, SUB_PATHS)
        for path in (subpaths, above, self._marker_dir(pod)):
            if os.path.lexists(path):
                self.mounts.unmount_below(path)
                await remove_tree(path)

    def _marker_dir(self, pod: Pod) -> str:
        above = os.path.join(pod_dir(self.root_dir, uid(pod)), "plugins")
        return os.path.join(above, EMPTY_DIR_PLUGIN.replace("/", "~"))

    def _marker(self, pod: Pod, volume: str) -> str:
        return safe_join(self._marker_dir(pod), volume, "ready")


def _fs_group(pod: Pod) -> int | None:
    context = pod.spec.securityContext
    return context.fsGroup if context is not None else None


def give_to_group(directory: str, group: int) -> None:
    """Make the group the owner of a new volume, with write permission and setgid, so that new files
    belong to it, too. A failure is only logged."""
    try:
        os.chown(directory, -1, group)
        mode = stat.S_IMODE(os.stat(directory).st_mode)
        os.chmod(directory, mode | GROUP_DIRECTORY_BITS)
    except OSError as error:
        log.warning("cannot make group %d the owner of volume %s: %s", group, directory, error)
