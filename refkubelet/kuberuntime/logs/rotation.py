"""Rotates the logs of running containers; checks them every 10 s (GC-201..203).

How it works. The manager takes the running containers and their log paths from the pod cache
(upstream asks the runtime each time) and queues those with a big or missing log. Workers, one by
default, remove and compress old files, rename the log, and let the runtime open a new one.
What must never happen: a big file blocks the event loop (it is compressed in pieces); lines are
lost because the runtime does not reopen its log (the log is renamed back); an error of one
container ends the rotation of others.
Upstream: pkg/kubelet/logs/container_log_manager.go.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct

from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.cri.records import ContainerRecord
from refkubelet.cri.target import CriCallError
from refkubelet.failures import log_failure
from refkubelet.host.untrusted_files import NotRegularError, listed, open_regular
from refkubelet.kuberuntime.logs.files import COMPRESSED, UNFINISHED, rotated_name, rotation_plan
from simclock import Clock

log = logging.getLogger(__name__)

PIECE_BYTES: Final = 64 * 1024  # some 2 ms of compressing


class LogPolicy(Struct, frozen=True):
    """Settings of the rotation; the defaults are those of GC-201."""

    max_size_bytes: int = 10 * 1024 * 1024  # a log of this size or more is rotated; negative: never
    max_files: int = 5  # of a container, the log itself included
    workers: int = 1  # logs that are rotated at the same time
    period_s: float = 10.0

    @classmethod
    def of(cls, config: KubeletConfiguration) -> LogPolicy:
        return cls(
            config.container_log_max_size_bytes,
            config.container_log_max_files,
            config.container_log_max_workers,
            config.container_log_monitor_interval_s,
        )


class LogRuntime(Protocol):
    """What the rotation asks of the CRI client."""

    async def reopen_container_log(self, container_id: str) -> None: ...


class ContainerLogManager:
    """Checks and rotates logs; `running` returns the running containers."""

    def __init__(
        self,
        runtime: LogRuntime,
        running: Callable[[], Iterable[ContainerRecord]],
        policy: LogPolicy,
        clock: Clock,
    ) -> None:
        self._runtime = runtime
        self._running = running
        self._policy = policy
        self._clock = clock
        self._queue: asyncio.Queue[ContainerRecord] = asyncio.Queue()
        self._busy: set[str] = set()  # queued or being rotated
        self._without_log: frozenset[str] = frozenset()  # reopening made no file
        self._has_told = False  # of one of them

    async def run(self) -> None:
        """Check the logs at once and then every `period_s`, for ever; only wait if rotation is
        off."""
        if self._policy.max_size_bytes < 0:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as tasks:
            workers = 0
            while True:
                self.look()
                # Only as many as there is work for: the configuration may allow millions.
                while workers < min(self._policy.workers, len(self._busy)):
                    tasks.create_task(self._work(), name=f"log rotation {workers}")
                    workers += 1
                await self._clock.sleep(self._policy.period_s)

    def look(self) -> None:
        """Queue the running containers with a big or missing log (GC-202)."""
        missing = []
        for container in self._running():
            size_bytes = _size_bytes(container.log_path)
            if size_bytes is None:
                missing.append(container.id)
            is_settled = container.id in self._busy or (
                size_bytes is None and container.id in self._without_log
            )
            if not is_settled and (size_bytes is None or size_bytes >= self._policy.max_size_bytes):
                self._busy.add(container.id)
                self._queue.put_nowait(container)
        self._without_log &= frozenset(missing)

    async def _work(self) -> None:
        while True:
            container = await self._queue.get()
            try:
                await self._handle(container)
            except Exception as error:
                complaint = f"the log of container {container.name} ({container.id}) is not rotated"
                log_failure(log, complaint, error, CriCallError, OSError)
            finally:
                self._busy.discard(container.id)

    async def _handle(self, container: ContainerRecord) -> None:
        """Rotate a big log; reopen a missing one. If the runtime then makes no file, it is not
        asked again."""
        size_bytes = _size_bytes(container.log_path)
        if size_bytes is None:
            await self._runtime.reopen_container_log(container.id)
            size_bytes = _size_bytes(container.log_path)
            if size_bytes is None:
                self._tell_of_no_log(container)
                return
        if size_bytes >= self._policy.max_size_bytes:
            await self.rotate(container.id, container.log_path)

    def _tell_of_no_log(self, container: ContainerRecord) -> None:
        """Remember that the runtime writes no log of this container. That may be its way: it is
        told once, of the first container."""
        level = logging.DEBUG if self._has_told else logging.INFO
        log.log(level, "container %s has no log at %s", container.name, container.log_path)
        self._without_log |= {container.id}
        self._has_told = True

    async def rotate(self, container_id: str, log_path: str) -> None:
        """Rotate a log now (GC-203). Raises `OSError`, and `CriCallError` if the runtime does not
        open a new log; then the log is renamed back."""
        plan = rotation_plan(_rotated(log_path), self._policy.max_files)
        for path in plan.remove:
            os.unlink(path)
        for path in plan.compress:
            try:
                await compress(path)
            except (NotRegularError, IsADirectoryError) as error:
                log.warning("a log that is no file is left alone: %s", error)
        rotated = rotated_name(log_path, self._clock.local())
        os.rename(log_path, rotated)
        try:
            await self._runtime.reopen_container_log(container_id)
        except Exception:
            if not os.path.exists(log_path):  # the runtime still writes to the renamed file
                os.rename(rotated, log_path)
            raise


async def compress(path: str) -> None:
    """Replace the file by its gzip, `<path>.gz`; other tasks run between the pieces.

    The target is written under another name first, so a half-written one is never taken for it.
    """
    unfinished = path + UNFINISHED
    try:
        with (
            open(path, "rb", opener=open_regular) as source,
            open(unfinished, "wb", opener=open_regular) as raw,
        ):
            os.fchmod(raw.fileno(), stat.S_IMODE(os.fstat(source.fileno()).st_mode) & 0o777)
            # Without the time and name that gzip would put in: the same log gives the same file.
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as target:
                while piece := source.read(PIECE_BYTES):
                    target.write(piece)
                    await asyncio.sleep(0)
        os.rename(unfinished, path + COMPRESSED)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
    os.unlink(path)


def _rotated(log_path: str) -> list[str]:
    """The files that begin with the log's name and a dot."""
    directory, name = os.path.split(log_path)
    try:
        names = listed(os.path.realpath(directory))
    except OSError:
        return []
    return [os.path.join(directory, other) for other in names if other.startswith(f"{name}.")]


def _size_bytes(path: str) -> int | None:
    """The size of the file; None: it does not exist; 0 for a container without a log path."""
    if not path:
        return 0
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("cannot read the size of the log %s: %s", path, error)
        return 0
