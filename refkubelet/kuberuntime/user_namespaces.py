"""User namespaces of pods: each gets its own range of user and group ids of the node.

A range is chosen when the sandbox is first made, and written to `<root>/pods/<uid>/userns`, from
which the next kubelet knows it. It is free again when the pod is over, or when nothing knows the
pod any more. What must never happen here: two pods with ids in common, also when the configuration
has changed between two kubelets. So a kubelet does not start beside a file that it cannot read, or
that was written with another number of ids (LIFE-147.7).
Upstream: pkg/kubelet/userns/userns_manager.go.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from kubeobjects.golang.strconv import quoted
from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.cri.records import PodRuntimeError, UserNamespace
from refkubelet.model.names import GOING, safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

log = logging.getLogger(__name__)

FILE: Final = "userns"
ALL_IDS: Final = 1 << 32


class UserNamespaceError(PodRuntimeError):
    """The pod cannot get a range of ids; the text says why."""


class IdMapping(Struct, frozen=True):
    """Maps `length` ids: from `containerId` on in the container, from `hostId` on on the node. The
    fields have the names of the file."""

    hostId: int
    containerId: int
    length: int


class _File(msgspec.Struct):
    uidMappings: list[IdMapping]
    gidMappings: list[IdMapping]


class UserNamespaces:
    """Assigns each pod a range of `ids_per_pod` ids; the first range is the node's own."""

    def __init__(self, root_dir: Path, ids_per_pod: int, max_pods: int = 1) -> None:
        """Reads the ranges of the pods that are there. Raises `UserNamespaceError`, with which the
        kubelet must not start: a range could be given twice, or there are fewer than `max_pods`
        (LIFE-147.7, LIFE-147.8)."""
        self._pods = root_dir / "pods"
        self._length = ids_per_pod
        self._firsts: dict[str, int] = {}  # by pod UID
        self._owners: dict[int, str] = {}  # by the first id
        self._told: set[str] = set()  # UIDs of pods whose file could not be removed
        if (ALL_IDS - ids_per_pod) // ids_per_pod < max_pods:
            raise UserNamespaceError(
                "create user namespace manager: kubelet user assigned IDs are not enough to "
                f"support {max_pods} pods: lower userNamespaces.idsPerPod ({ids_per_pod}), or "
                "maxPods"
            )
        self._restore()

    def _restore(self) -> None:
        for pod_uid in sorted(os.listdir(self._pods)) if self._pods.is_dir() else ():
            if pod_uid.startswith(GOING):
                continue  # nothing of that pod runs any more
            try:
                self._read(pod_uid)
            except (OSError, ValueError) as error:
                raise UserNamespaceError(
                    "create user namespace manager: record pod mappings for existing pod "
                    f"{quoted(pod_uid)}: {error}. The pod may run with these IDs: drain this node "
                    "with the userNamespaces.idsPerPod it had, then remove "
                    f"{self._pods / pod_uid / FILE}"
                ) from None

    def of(self, pod: Pod) -> UserNamespace:
        """The pod's range; a new one if it has none. Raises `UserNamespaceError` for an invalid
        file, and if no range is free or the file cannot be written."""
        try:
            users = self._read(uid(pod))
        except (OSError, ValueError) as error:
            raise UserNamespaceError(f"user namespace: {error}") from error
        if users is not None:
            return users
        had = self._firsts.get(uid(pod))  # its file was lost, and its containers may run
        try:
            new_range = UserNamespace(self._first_free() if had is None else had, self._length)
            self._write(uid(pod), new_range)
        except (OSError, ValueError) as error:
            raise UserNamespaceError(f"create user namespace: {error}") from error
        self._firsts[uid(pod)] = new_range.first
        self._owners[new_range.first] = uid(pod)
        return new_range

    def release(self, pod_uid: str) -> None:
        """Take back the range of a pod of which nothing runs any more; without one: do nothing. A
        range whose file stays is kept for the pod until the file can be removed: the next kubelet
        would find it beside that of another pod, and not start (LIFE-147.7)."""
        first = self._firsts.get(pod_uid)
        if first is None:
            return
        path = Path(safe_join(str(self._pods), pod_uid, FILE))
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            pass  # there is no such file
        except OSError as error:
            if pod_uid not in self._told:
                self._told.add(pod_uid)
                log.warning("the user ids of pod %s are not free yet: %s", pod_uid, error)
            return
        self._told.discard(pod_uid)
        del self._firsts[pod_uid], self._owners[first]

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Take back the ranges of all other pods."""
        for pod_uid in self._firsts.keys() - pod_uids:
            self.release(pod_uid)

    def _first_free(self) -> int:
        """The lowest range that nobody has. Not the last one: no kernel maps the id 2^32-1
        (LIFE-147.10)."""
        for first in range(self._length, ALL_IDS - self._length, self._length):
            if first not in self._owners:
                return first
        raise ValueError(f"all {len(self._owners)} ranges of {self._length} ids are taken")

    def _read(self, pod_uid: str) -> UserNamespace | None:
        """The pod's range in its file, which is its own from now on; None without a file. Raises
        ValueError for one that is invalid or has a range that is not the pod's."""
        try:
            data = Path(safe_join(str(self._pods), pod_uid, FILE)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not data:
            return None
        users = self._parsed(data)
        if self._firsts.get(pod_uid, users.first) != users.first:
            text = f"different user namespace range already used by pod {quoted(pod_uid)}"
            raise ValueError(text)
        if self._owners.get(users.first, pod_uid) != pod_uid:
            raise ValueError(f"range picked for pod {quoted(pod_uid)} already taken")
        self._firsts[pod_uid] = users.first
        self._owners[users.first] = pod_uid
        return users

    def _parsed(self, data: bytes) -> UserNamespace:
        """The range in these bytes of a file. Raises ValueError: a kubelet with this number of ids
        writes no such file."""
        try:
            file = msgspec.json.decode(data, type=_File)
        except msgspec.MsgspecError as error:
            raise ValueError(f"invalid user namespace mappings file: {error}") from error
        if len(file.uidMappings) != 1:
            raise ValueError("invalid user namespace configuration: not exactly one mapping")
        if file.uidMappings != file.gidMappings:
            raise ValueError("invalid user namespace configuration: users and groups differ")
        (mapping,) = file.uidMappings
        if mapping.containerId != 0:
            raise ValueError("invalid user namespace configuration: id 0 must be mapped")
        if mapping.length != self._length:
            raise ValueError(f"wrong user namespace length {mapping.length}")
        if mapping.hostId % self._length != 0:
            raise ValueError(f"wrong user namespace offset specified {mapping.hostId}")
        if not self._length <= mapping.hostId <= ALL_IDS - self._length:
            raise ValueError(f"id {mapping.hostId} is out of range")
        return UserNamespace(mapping.hostId, mapping.length)

    def _write(self, pod_uid: str, users: UserNamespace) -> None:
        path = Path(safe_join(str(self._pods), pod_uid, FILE))
        mapping = asdict(IdMapping(users.first, 0, users.length))
        data = msgspec.json.encode({"uidMappings": [mapping], "gidMappings": [mapping]})
        write_whole(path, data, directory_mode=0o750)
