"""A checkpoint file of the resources of pods: read at start, written when something has changed.

What must never happen: a write that changes nothing (a crash loop must not wear out a disk); a
damaged file taken for an empty one. A removal alone causes no write: a removed pod in the file does
no harm, and the next write drops it.
Rules: CG-060. Upstream: pkg/kubelet/allocation/state/state_checkpoint.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Final

from lightkube.models.core_v1 import ResourceRequirements

from kubeobjects.golang.fnv import Fnv32
from kubeobjects.structs import replace
from refkubelet.allocation.checkpoint import (
    container_text,
    data_of,
    decode,
    pod_text,
    texts_of,
    whole,
)
from refkubelet.allocation.resources import PodResources
from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.checkpoints.content import (
    CORRUPT,
    CheckpointError,
    StateFileError,
    drain_and_delete,
)
from refkubelet.failures import log_failure

log = logging.getLogger(__name__)

ALLOCATED_FILE: Final = "allocated_pods_state"
ACTUATED_FILE: Final = "actuated_pods_state"
LARGE: Final = 1_000_000
"""The characters of a file that is written less often; no ordinary node has so many."""
LARGE_DELAY_S: Final = 1.0
DIRECTORY_MODE: Final = 0o777  # what the umask leaves of it


class ResourceState:
    """The resources by pod UID, kept in `path`; on disk after `save`, `saved` or `save_soon`. The
    constructor raises `StateFileError` if the file exists and cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pods = _read(path)
        self._containers = {pod_uid: texts_of(pod) for pod_uid, pod in self._pods.items()}
        """The texts of containers, by pod UID and name."""
        self._texts: dict[str, str] = {}  # of pods, by UID; none of those that have changed
        self._hash = Fnv32()
        self._written = self._data()
        self._outdated = False  # the file lacks a change
        self.version = 0
        """Another one after each change."""
        self._saving: asyncio.Future[None] | None = None

    def pod(self, pod_uid: str) -> PodResources | None:
        """None: nothing is known of the pod."""
        return self._pods.get(pod_uid)

    def pod_uids(self) -> tuple[str, ...]:
        return tuple(self._pods)

    def container(self, pod_uid: str, name: str) -> ResourceRequirements | None:
        """None: nothing is known of the container."""
        resources = self._pods.get(pod_uid)
        return resources.containers.get(name) if resources is not None else None

    def set_pod(self, pod_uid: str, resources: PodResources) -> None:
        """Set all resources of a pod."""
        if self._pods.get(pod_uid) != resources:
            self._containers[pod_uid] = texts_of(resources)
            self._change(pod_uid, resources)

    def set_container(self, pod_uid: str, name: str, resources: ResourceRequirements) -> None:
        """Note the container's resources; equal ones are not written again."""
        pod_resources = self._pods.get(pod_uid) or PodResources()
        if pod_resources.containers.get(name) != resources:
            self._containers.setdefault(pod_uid, {})[name] = container_text(name, resources)
            containers = {**pod_resources.containers, name: resources}
            self._change(pod_uid, replace(pod_resources, containers=containers))

    def set_pod_level(self, pod_uid: str, resources: ResourceRequirements) -> None:
        """Note those of the pod as a whole; equal ones are not written again."""
        pod_resources = self._pods.get(pod_uid) or PodResources()
        if pod_resources.pod_level != resources:
            self._containers.setdefault(pod_uid, {})
            self._change(pod_uid, replace(pod_resources, pod_level=resources))

    def _change(self, pod_uid: str, resources: PodResources) -> None:
        self._pods[pod_uid] = resources
        self._texts.pop(pod_uid, None)
        self._outdated = True
        self.version += 1

    def remove(self, pod_uid: str) -> None:
        """Forget the pod; the next write drops it from the file."""
        self.version += 1
        for by_uid in (self._pods, self._containers, self._texts):
            by_uid.pop(pod_uid, None)

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Forget all pods but these."""
        if len(self._pods) > len(pod_uids) or not self._pods.keys() <= set(pod_uids):
            for pod_uid in [u for u in self._pods if u not in pod_uids]:
                self.remove(pod_uid)

    # The file

    async def saved(self) -> None:
        """Write the file if it lacks a change, and wait for that. Calls at the same time share one
        write, so that the many pods of a starting node do not write the file once each. Raises
        OSError.

        A file of `LARGE` characters is written a second later, and nobody waits: it is written as a
        whole, and a pod of thousands of containers would write it for each. A crash in that second
        loses the change: for a container that is not in the file, the next kubelet takes what its
        last status shows (`adopted_resources`)."""
        if self._outdated and len(self._written) < LARGE:
            await asyncio.shield(self._next_save())
        elif self._outdated:
            self.save_soon()

    def save_soon(self) -> None:
        """Like `saved`, without waiting; a failure is logged."""
        if self._outdated:
            self._next_save().add_done_callback(self._log_failure)

    def save_at_end(self) -> None:
        """Write the file now if it lacks a change: the kubelet ends, and with it what would write
        it later. A failure is logged."""
        try:
            self.save()
        except Exception as error:  # the other parts must end all the same
            self._log_error(error)

    def _next_save(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        if self._saving is None:
            self._saving = loop.create_future()
            delay_s = LARGE_DELAY_S if len(self._written) >= LARGE else 0.0
            loop.call_later(delay_s, self._finish, self._saving)
        return self._saving

    def _finish(self, waiting: asyncio.Future[None]) -> None:
        self._saving = None
        try:
            self.save()
        except Exception as error:  # no waiting call may wait for ever
            waiting.set_exception(error)
        else:
            waiting.set_result(None)

    def _log_failure(self, saving: asyncio.Future[None]) -> None:
        error = saving.exception()
        if isinstance(error, Exception):
            self._log_error(error)

    def _log_error(self, error: Exception) -> None:
        log_failure(log, f"cannot write {self._path.name}", error, OSError)

    def _data(self) -> str:
        for pod_uid, pod in self._pods.items():
            if pod_uid not in self._texts:
                self._texts[pod_uid] = pod_text(pod_uid, pod, self._containers[pod_uid])
        return data_of(self._texts)

    def save(self) -> None:
        """Write the file now if it lacks a change. Raises OSError."""
        if not self._outdated:
            return
        data = self._data()
        if data != self._written:
            text = whole(data, self._hash.of)
            write_whole(self._path, text.encode(), directory_mode=DIRECTORY_MODE)
        self._written = data
        self._outdated = False


def _read(path: Path) -> dict[str, PodResources]:
    try:
        return decode(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except (CheckpointError, UnicodeError) as error:
        reason = f"{CORRUPT} ({error})"
    problem = f"could not restore state from checkpoint: {reason}"
    raise StateFileError(drain_and_delete(problem, "pod resource information", str(path)))
