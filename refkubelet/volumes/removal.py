"""Removes what pods leave in the kubelet's directory, whatever containers have put there.

What must never happen here: data of a volume that is not the kubelet's own goes; anything waits for
a large tree but who wants it gone.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from refkubelet.host.untrusted_files import directories_in, removed
from simclock import aside


async def remove_tree(path: str) -> None:
    """Remove a file, or a directory and all below it. The directories above must be the kubelet's
    own, and nothing may be mounted at `path`. Raises OSError, also if there is a mount below, and
    when nothing is answered."""
    await aside(f"what is in {path}", removed(path))


def remove_empty_volumes(pod_directory: str, own: Collection[str]) -> None:
    """Remove the directories of volumes below that of a pod, but for plugins whose directories are
    in `own` (`volumes/kubernetes.io~empty-dir`). Raises OSError at one with something in it: that
    may be somebody's data (NODE-208).

    Upstream: pkg/kubelet/kubelet_volumes.go: removeOrphanedPodVolumeDirs.
    """
    for plugin in directories_in(os.path.join(pod_directory, "volumes")):
        if f"volumes/{os.path.basename(plugin)}" not in own:
            for volume in directories_in(plugin):
                os.rmdir(volume)
