"""A checkpoint file of resources by pod: read once at the start, written when something changed.

The file is small and local, so it is written directly, beside its place and then moved there.
What must never happen: a write that changes nothing (a crash loop must not wear out a disk); a
damaged file taken for an empty one; a removal alone that causes a write (a pod too many in the
file does no harm, and the next write drops it).
Rules: CG-060. Upstream: pkg/kubelet/allocation/state/state_checkpoint.go.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from lightkube.models.core_v1 import ResourceRequirements

from refkubelet.allocation.checkpoint import CheckpointError, decode, encode, encode_data
from refkubelet.allocation.resources import PodResources
from refkubelet.config.errors import ConfigError

ALLOCATED_FILE: Final = "allocated_pods_state"
ACTUATED_FILE: Final = "actuated_pods_state"
FILE_MODE: Final = 0o600
_TEMPORARY: Final = ".tmp"


class StateFileError(ConfigError):
    """A checkpoint file cannot be used: the kubelet must not start."""


class ResourceState:
    """Resources by pod UID, kept in `path`. Raises `StateFileError` for a file that is there and
    cannot be used; methods that write raise OSError, and the change is kept in memory anyway."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pods = _read(path)
        self._written = encode_data(self._pods)
        self._outdated = False  # a pod was removed since the last write

    def pod(self, pod_uid: str) -> PodResources | None:
        return self._pods.get(pod_uid)

    def pod_uids(self) -> tuple[str, ...]:
        return tuple(self._pods)

    def container(self, pod_uid: str, name: str) -> ResourceRequirements | None:
        known = self._pods.get(pod_uid)
        return known.containers.get(name) if known is not None else None

    def set_pod(self, pod_uid: str, resources: PodResources) -> None:
        """All of a pod at once."""
        if self._pods.get(pod_uid) != resources or self._outdated:
            self._pods[pod_uid] = resources
            self._write()

    def set_container(self, pod_uid: str, name: str, resources: ResourceRequirements) -> None:
        known = self._pods.get(pod_uid) or PodResources()
        self.set_pod(pod_uid, replace(known, containers={**known.containers, name: resources}))

    def set_pod_level(self, pod_uid: str, resources: ResourceRequirements) -> None:
        known = self._pods.get(pod_uid) or PodResources()
        self.set_pod(pod_uid, replace(known, pod_level=resources))

    def remove(self, pod_uid: str) -> None:
        """Forget the pod; the file follows with the next write."""
        if self._pods.pop(pod_uid, None) is not None:
            self._outdated = True

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Forget all other pods."""
        if len(self._pods) > len(pod_uids) or not self._pods.keys() <= set(pod_uids):
            for pod_uid in [u for u in self._pods if u not in pod_uids]:
                self.remove(pod_uid)

    def _write(self) -> None:
        data = encode_data(self._pods)
        self._outdated = False
        if data == self._written:
            return
        temporary = self._path.with_name(f".{self._path.name}{_TEMPORARY}")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
        with open(os.open(temporary, flags, FILE_MODE), "w") as out:
            out.write(encode(self._pods))
        temporary.replace(self._path)
        self._written = data


def _read(path: Path) -> dict[str, PodResources]:
    try:
        return decode(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except (CheckpointError, UnicodeError) as error:
        reason = f"checkpoint is corrupted ({error})"
    raise StateFileError(
        f"could not restore state from checkpoint: {reason}, please drain this node and delete pod "
        f'resource information checkpoint file "{path}" before restarting Kubelet'
    )
