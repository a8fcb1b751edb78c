"""User namespaces of pods: each gets its own range of user and group ids of the node.

A range is chosen when the sandbox is first made, and written to `<root>/pods/<uid>/userns`, the
only record of it. It is free again when the pod's directory is removed. What must never happen
here: two pods with ids in common.
Upstream: pkg/kubelet/userns/userns_manager.go.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec

from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.cri.records import PodRuntimeError, UserNamespace
from refkubelet.model.names import safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

FILE: Final = "userns"
ALL_IDS: Final = 1 << 32


class UserNamespaceError(PodRuntimeError):
    """The pod cannot get a range of ids; the text says why."""


@dataclass(frozen=True, slots=True)
class IdMapping:
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

    def __init__(self, root_dir: Path, ids_per_pod: int) -> None:
        self._pods = root_dir / "pods"
        self._length = ids_per_pod

    def of(self, pod: Pod) -> UserNamespace:
        """The pod's range; a new one if it has none. Raises `UserNamespaceError` for an invalid
        file, and if no range is free or the file cannot be written."""
        try:
            users = self._read(uid(pod))
        except (OSError, ValueError) as error:
            raise UserNamespaceError(f"user namespace: {error}") from error
        if users is not None:
            return users
        try:
            made = UserNamespace(self._first_free(), self._length)
            self._write(uid(pod), made)
        except (OSError, ValueError) as error:
            raise UserNamespaceError(f"create user namespace: {error}") from error
        return made

    def _first_free(self) -> int:
        names = os.listdir(self._pods) if self._pods.is_dir() else ()
        taken = set()
        for name in names:
            try:
                users = self._read(name)
            except (OSError, ValueError):  # that pod gets the error at its own sync
                continue
            if users is not None:
                taken.add(users.first)
        for first in range(self._length, ALL_IDS - self._length + 1, self._length):
            if first not in taken:
                return first
        raise ValueError(f"all {len(taken)} ranges of {self._length} ids are taken")

    def _read(self, pod_uid: str) -> UserNamespace | None:
        """The pod's range in its file; None without a file. Raises ValueError for an invalid
        one."""
        try:
            data = Path(safe_join(str(self._pods), pod_uid, FILE)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
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
        return UserNamespace(mapping.hostId, mapping.length)

    def _write(self, pod_uid: str, users: UserNamespace) -> None:
        path = Path(safe_join(str(self._pods), pod_uid, FILE))
        mapping = asdict(IdMapping(users.first, 0, users.length))
        data = msgspec.json.encode({"uidMappings": [mapping], "gidMappings": [mapping]})
        write_whole(path, data, directory_mode=0o750)
