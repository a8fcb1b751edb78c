"""Prepares a subPath of a volume for a container: finds or makes it, and binds it (NODE-211).

Containers write into volumes, so any part of a subPath may be a link, or become one. What must
never happen here: a path leads out of the volume; a directory is made outside of it; an error that
users see reveals files of the host.
Upstream: pkg/volume/util/subpath/subpath_linux.go.
"""

from __future__ import annotations

import logging
import os
import stat

from msgspec import Struct

from refkubelet.host.untrusted_files import OutsideError, opened_below
from refkubelet.model.names import pod_dir, safe_join
from refkubelet.volumes.mounting import Mounts
from refkubelet.volumes.plan import SUB_PATHS, SubPathError, check_sub_path

log = logging.getLogger(__name__)


class SubPathUse(Struct, frozen=True):
    """The use of a subPath: in the container's volumeMount with that index. `directory`: the name
    of the volume on the node; "": `volume`, the pod's."""

    root_dir: str
    pod_uid: str
    volume: str
    container: str
    index: int
    directory: str = ""

    @property
    def target(self) -> str:
        """The path where it is mounted."""
        above = os.path.join(pod_dir(self.root_dir, self.pod_uid), SUB_PATHS)
        return safe_join(above, self.directory or self.volume, self.container, str(self.index))


def prepare(volume_path: str, path: str, use: SubPathUse, mounts: Mounts) -> str:
    """Prepare `path` in the volume; returns its host path. Raises `SubPathError`."""
    check_sub_path(path)
    purpose = f'for volumeMount "{use.volume}" of container "{use.container}"'
    try:
        return _bound(volume_path, path, use, mounts)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        log.warning("subPath %r %s of pod %s: %s", path, purpose, use.pod_uid, error)
        raise SubPathError(f"failed to prepare subPath {purpose}") from None
    try:
        mode = stat.S_IMODE(os.stat(volume_path).st_mode)
        return _bound(volume_path, path, use, mounts, make_mode=mode)
    except (OSError, ValueError) as error:
        log.warning("subPath %r %s of pod %s: %s", path, purpose, use.pod_uid, error)
        verb = "prepare subPath" if isinstance(error, OutsideError) else "create subPath directory"
        raise SubPathError(f"failed to {verb} {purpose}") from None


def _bound(
    volume_path: str, path: str, use: SubPathUse, mounts: Mounts, make_mode: int | None = None
) -> str:
    with opened_below(volume_path, path, make_mode=make_mode) as place:
        return mounts.bind(place, use.target)
