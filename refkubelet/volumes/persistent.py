"""Sets up persistent volumes: directories (`local`), paths (`hostPath`), and those of CSI drivers.

A local volume is bound to a directory of the pod, a hostPath volume is used where it is, a driver's
is its matter (`drivers`). Which pods use which volume is kept in memory: a new kubelet learns
it when it sets the volumes up again.

What must never happen here: data of a volume is deleted. What is in a local volume is the user's,
so a pod's directory of it is only unmounted, and removed when it is empty then.
Upstream: pkg/volume/local, pkg/volume/hostpath.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from msgspec import Struct

from refkubelet.events.recorder import EventRecorder
from refkubelet.host.directories import make_directory
from refkubelet.host.untrusted_files import opened_below
from refkubelet.model.names import pod_dir, pod_volume_dir
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.volumes.claims import ClaimedVolume, VolumeOnNode, no_driver
from refkubelet.volumes.drivers import DriverVolumes
from refkubelet.volumes.host_paths import check_host_path
from refkubelet.volumes.mount_errors import (
    AFFINITY,
    NEW_MOUNTER,
    OPTIONS,
    SET_UP,
    WHILE_EXPANDING,
    MountFailed,
)
from refkubelet.volumes.mounting import Mounts
from refkubelet.volumes.ownership import ON_ROOT_MISMATCH, change_policy, fs_group, give_to_group
from refkubelet.volumes.plan import LOCAL_MOUNTS, LOCAL_PLUGIN
from simclock import call_aside

ALREADY_MOUNTED: Final = "AlreadyMountedVolume"


class PersistentVolumes:
    """The persistent volumes that pods of this node use. `fits`: whether the node has the labels
    that the terms of a node selector want; `drivers` None: no drivers are known."""

    def __init__(
        self,
        root_dir: str,
        mounts: Mounts,
        *,
        recorder: EventRecorder,
        fits: Callable[[list[Any]], bool],
        drivers: DriverVolumes | None = None,
    ) -> None:
        self._root_dir = root_dir
        self._mounts = mounts
        self._recorder = recorder
        self._fits = fits
        self._drivers = drivers
        self._used: dict[str, dict[str, ClaimedVolume]] = {}

    async def set_up(self, pod: Pod, claimed: ClaimedVolume) -> VolumeOnNode:
        """Make the volume ready for the pod's containers; returns where it is. Raises
        `MountFailed`, `NotAttached`, `ApiError`, OSError."""
        spec = claimed.persistent.spec
        if spec is not None and spec.csi is not None:
            if self._drivers is None:
                raise MountFailed(SET_UP, no_driver(spec.csi.driver))
            place = await self._of_driver(pod, claimed, self._drivers)
        elif spec is not None and spec.hostPath is not None:
            self._check(pod, claimed)
            check = partial(check_host_path, spec.hostPath)
            with self._taken(pod, claimed):
                await call_aside(f"the type of {spec.hostPath.path}", check)
            place = VolumeOnNode(spec.hostPath.path, claimed.read_only, claimed.name)
        else:
            self._check(pod, claimed)
            with self._taken(pod, claimed):
                path = await self._set_up_local(pod, claimed)
            place = VolumeOnNode(path, claimed.read_only, claimed.name, is_local=True)
        self._used.setdefault(uid(pod), {})[claimed.volume.name] = claimed
        return place

    @contextmanager
    def _taken(self, pod: Pod, claimed: ClaimedVolume) -> Iterator[None]:
        """The pod has the volume from now on; not if that fails, and it had not before."""
        used, name = self._used.setdefault(uid(pod), {}), claimed.volume.name
        is_new = name not in used
        used.setdefault(name, claimed)
        try:
            yield
        except BaseException:
            if is_new:
                used.pop(name, None)
            raise

    async def _of_driver(
        self, pod: Pod, claimed: ClaimedVolume, drivers: DriverVolumes
    ) -> VolumeOnNode:
        """Make a driver's volume ready. The pod has it as soon as it is published, also while it
        still has to be made larger. Raises as `set_up`."""
        try:
            return await drivers.set_up(pod, claimed, lambda: self._check(pod, claimed))
        except MountFailed as error:
            if error.step == WHILE_EXPANDING:
                self._used.setdefault(uid(pod), {})[claimed.volume.name] = claimed
            raise

    def _check(self, pod: Pod, claimed: ClaimedVolume) -> None:
        """Raises `MountFailed` for a volume that this pod may not have on this node."""
        spec = claimed.persistent.spec
        assert spec is not None
        affinity = spec.nodeAffinity
        required = affinity.required if affinity is not None else None
        if required is not None and not self._fits(required.nodeSelectorTerms):
            raise MountFailed(AFFINITY, "no matching NodeSelectorTerms")
        if spec.hostPath is not None and spec.mountOptions:
            raise MountFailed(OPTIONS, "mount options are not supported for this volume type")
        if claimed.only_for_one_pod and self._others(pod, claimed):
            raise MountFailed(
                SET_UP,
                "volume uses the ReadWriteOncePod access mode and is already in use by another pod",
            )

    def tear_down(self, pod: Pod) -> None:
        """Unmount the pod's local volumes; those of CSI drivers are ended elsewhere. Raises
        OSError, also where a directory still has something in it."""
        self._used.pop(uid(pod), None)
        directory = os.path.join(pod_dir(self._root_dir, uid(pod)), LOCAL_MOUNTS)
        if os.path.lexists(directory):
            self._mounts.unmount_below(directory)
            for name in os.listdir(directory):
                os.rmdir(os.path.join(directory, name))
            os.rmdir(directory)

    def _others(self, pod: Pod, claimed: ClaimedVolume) -> bool:
        """Whether other pods use the same persistent volume."""
        return any(
            pod_uid != uid(pod) and any(c.name == claimed.name for c in used.values())
            for pod_uid, used in self._used.items()
        )

    async def _set_up_local(self, pod: Pod, claimed: ClaimedVolume) -> str:
        """Bind the directory to the pod's; returns where the containers find it."""
        path = claimed.path or ""
        target = pod_volume_dir(self._root_dir, uid(pod), LOCAL_PLUGIN, claimed.name)
        shared, group = self._others(pod, claimed), fs_group(pod)
        bind = partial(_bound, path, target, self._mounts)
        bound = await call_aside(f"the local volume {path}", bind)
        if bound is None:
            # What an earlier set-up began may not have come to its end: the top lacks the group.
            policy: str | None = ON_ROOT_MISMATCH
            place = target
        else:
            place, policy = bound.path, change_policy(pod)
            if group is not None and shared and bound.group != group:
                self._tell_shared(pod, claimed, group, has=bound.group)
        if not claimed.read_only and not shared:
            await give_to_group(place, group, read_only=False, policy=policy)
        return place

    def _tell_shared(self, pod: Pod, claimed: ClaimedVolume, group: int, *, has: int) -> None:
        """Other pods use the volume with another group, which it keeps."""
        text = (
            f"The requested fsGroup is {group}, but the volume {claimed.name} has GID {has}. "
            "The volume may not be shareable."
        )
        self._recorder.pod_event(pod, "Warning", ALREADY_MOUNTED, text)


class _Bound(Struct, frozen=True):
    """A local volume that was made ready: where containers find it, and its group."""

    path: str
    group: int


def _bound(path: str, target: str, mounts: Mounts) -> _Bound | None:
    """Bind the directory to `target`; None: it is bound already. Raises `MountFailed`, OSError."""
    _check_directory(path)
    if ".." in path.split("/"):
        raise MountFailed(SET_UP, f"invalid path: {path} must not contain '..'")
    if _is_same(path, target):
        return None
    make_directory(os.path.dirname(target))
    with opened_below(path, "") as place:
        group = os.fstat(place.descriptor).st_gid
        return _Bound(mounts.bind(place, target), group)


def _check_directory(path: str) -> None:
    """Raises `MountFailed` where there is no directory. A block device would have to be formatted,
    which this kubelet does not do."""
    if not path:
        raise MountFailed(NEW_MOUNTER, "local volume source is nil or local path is not set")
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise MountFailed(NEW_MOUNTER, f'path "{path}" does not exist') from None
    if stat.S_ISBLK(mode):
        text = f"{path} is a block device: this kubelet mounts local volumes that are directories"
        raise MountFailed(NEW_MOUNTER, text)
    if not stat.S_ISDIR(mode):
        raise MountFailed(NEW_MOUNTER, "only directory and block device are supported")


def _is_same(path: str, target: str) -> bool:
    """Whether the directory is mounted at the target already."""
    with suppress(OSError):
        return os.path.samefile(path, target)
    return False
