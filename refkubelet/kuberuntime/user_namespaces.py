"""User and group ids of pods that do not share the node's: a range of their own for each.

A range is taken when the sandbox is first made, and written to `<root>/pods/<uid>/userns`, so that
a new kubelet gives the pod the same one. It is free again when the pod's directory is gone: there
is no other record. What must never happen here: two pods with ids in common.
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
    """The pod gets no ids of its own."""


@dataclass(frozen=True, slots=True)
class IdMapping:
    """`length` ids from `containerId` on are those from `hostId` on outside. The names are those
    of the file."""

    hostId: int
    containerId: int
    length: int


class _File(msgspec.Struct):
    uidMappings: list[IdMapping]
    gidMappings: list[IdMapping]


class UserNamespaces:
    """Gives each pod a range of `ids_per_pod` ids. The first range of the machine is the node's
    own, so pods get those after it."""

    def __init__(self, root_dir: Path, ids_per_pod: int) -> None:
        self._pods = root_dir / "pods"
        self._length = ids_per_pod

    def of(self, pod: Pod) -> UserNamespace:
        """The pod's range, a new one if it has none. Raises `UserNamespaceError` for a file that
        cannot be used, and when no range or no room on the disk is left."""
        try:
            found = self._read(uid(pod))
        except (OSError, ValueError) as error:
            raise UserNamespaceError(f"user namespace: {error}") from error
        if found is not None:
            return found
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
                found = self._read(name)
            except (OSError, ValueError):  # that pod gets the error at its own sync
                continue
            if found is not None:
                taken.add(found.first)
        for first in range(self._length, ALL_IDS - self._length + 1, self._length):
            if first not in taken:
                return first
        raise ValueError(f"all {len(taken)} ranges of {self._length} ids are taken")

    def _read(self, pod_uid: str) -> UserNamespace | None:
        """None without a file. Raises ValueError for one that no kubelet has written."""
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
