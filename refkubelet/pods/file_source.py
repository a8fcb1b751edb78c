"""The static pods of a directory (or of one file): read at start, on changes, and every period.

How it works. One task alternates between reading everything (at start, every `period_s`, and
whenever the watch had to be made anew) and waiting for inotify, whose descriptor the loop itself
watches. An event re-reads its file only. The watch is made before the reading that follows it, so
no change falls between. Without a watch the periodic reading goes on.

What must never happen here: one bad file hides or removes another file's pod; a reading that failed
counts as "no pods". Rules: SRC-001..011. Different from upstream on purpose: pods are kept by file
name, so a renamed pod's old form leaves at once (SRC-011) and removed pods never come back with an
event (SRC-012); an event counts when the writer closed the file, so half-written files are not
read. Upstream: pkg/kubelet/config/file.go, file_linux.go.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Final

from refkubelet.model.objects import Pod, full_name
from refkubelet.model.yaml import MAX_BYTES
from refkubelet.pods.config import Deliver
from refkubelet.pods.manifest import ManifestError, read_manifest
from refkubelet.pods.updates import PodSource
from refkubelet.pods.watch import DirectoryWatch, WatchFailed
from simtime import Clock

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0  # SRC-007, SRC-009
RETRY_MAX_S: Final = 20.0
LONGEST_REASON: Final = 500  # characters of an error that may cite the file


def is_manifest_name(name: str) -> bool:
    """Whether a directory entry's name is looked at: dot files never are (SRC-003)."""
    return not name.startswith(".")


def collapse(pods: Mapping[str, Pod]) -> tuple[Pod, ...]:
    """One pod per full name: the one whose file comes last (SRC-010)."""
    by_name: dict[str, Pod] = {}
    for pod in pods.values():
        by_name[full_name(pod)] = pod
    return tuple(by_name.values())


class FileSource:
    """Delivers the pods of `path`. `errors` maps a file to why its pod does not run, as of now."""

    source = PodSource.FILE

    def __init__(self, path: str, *, node_name: str, period_s: float, clock: Clock) -> None:
        self.path = path.rstrip("/") or "/"  # SRC-001
        self.errors: dict[str, str] = {}
        self._node_name = node_name
        self._period_s = period_s
        self._clock = clock
        self._pods: dict[str, Pod] = {}  # by file name, in the order of their reading
        self._read: dict[str, tuple[bytes, Pod]] = {}  # by path: what was in it, and its pod
        self._watch: DirectoryWatch | None = None
        self._retry_s = RETRY_S

    async def run(self, deliver: Deliver) -> None:
        """Deliver whole sets until cancelled."""
        next_read_s = next_watch_s = self._clock.monotonic_s()
        try:
            while True:
                now_s = self._clock.monotonic_s()
                if self._watch is None and now_s >= next_watch_s:
                    self._make_watch()
                    next_watch_s = now_s + self._retry_s
                    next_read_s = now_s
                if now_s >= next_read_s:
                    await self._read_all(deliver)
                    next_read_s = now_s + self._period_s
                due_s = next_read_s if self._watch else min(next_read_s, next_watch_s)
                if not await self._follow(due_s - self._clock.monotonic_s(), deliver):
                    next_watch_s = self._clock.monotonic_s()
        finally:
            self._drop_watch()

    # -- watching ------------------------------------------------------------------------------

    def _make_watch(self) -> None:
        """Watch the directory (or the one of the single file); back off while that fails."""
        try:
            single = stat.S_ISREG(os.stat(self.path).st_mode)
            directory = os.path.dirname(self.path) or "." if single else self.path
            self._watch = DirectoryWatch(directory)
            self._retry_s = RETRY_S
        except FileNotFoundError:
            self._retry_s = RETRY_S  # SRC-007: looked for every second
        except (OSError, WatchFailed) as e:
            log.warning("cannot watch %s, reading it periodically: %s", self.path, e)
            self._retry_s = min(2 * self._retry_s, RETRY_MAX_S)

    def _drop_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    async def _follow(self, timeout_s: float, deliver: Deliver) -> bool:
        """Wait at most `timeout_s` for changes and deliver them; False when the watch is lost."""
        if self._watch is None:
            await self._clock.sleep(timeout_s)
            return True
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                changes = await self._watch.changes()
        except TimeoutError:
            return True
        except WatchFailed as e:
            log.info("watch of %s ended: %s", self.path, e)
            self._drop_watch()
            return False
        if os.path.isdir(self.path):
            self._apply(changes)
            await deliver(collapse(self._pods))
        elif any(name == os.path.basename(self.path) for name, _ in changes):
            await self._read_all(deliver)
        return True

    def _apply(self, changes: Iterable[tuple[str, bool]]) -> None:
        """Take over changed files (SRC-008); what is unreadable keeps its pod until the next
        periodic reading."""
        for name, present in changes:
            if not is_manifest_name(name):
                continue
            if not present:
                self._pods.pop(name, None)
                self.errors.pop(os.path.join(self.path, name), None)
                continue
            pod = self._read_file(os.path.join(self.path, name))
            if pod is not None:
                self._pods.pop(name, None)
                self._pods[name] = pod  # the file just written wins (SRC-010)

    # -- reading -------------------------------------------------------------------------------

    async def _read_all(self, deliver: Deliver) -> None:
        """Read everything and deliver it, or deliver nothing when it cannot be known."""
        try:
            mode = os.stat(self.path).st_mode
            entries = sorted(os.listdir(self.path)) if stat.S_ISDIR(mode) else []
        except FileNotFoundError:
            self._complain(self.path, "no such file or directory")
            self._pods.clear()
            await deliver(())  # SRC-007
            return
        except OSError as e:
            self._complain(self.path, e.strerror or str(e))
            return
        self.errors.pop(self.path, None)
        if stat.S_ISDIR(mode):
            self._read_directory(entries)
        elif stat.S_ISREG(mode):
            pod = self._read_file(self.path)
            if pod is None:
                return  # SRC-006: the last good pod stays
            self._pods = {os.path.basename(self.path): pod}
        else:
            self._complain(self.path, "is neither a directory nor a regular file")
            return
        await deliver(collapse(self._pods))

    def _read_directory(self, entries: Iterable[str]) -> None:
        """All manifests in name order; bad ones are missing from the set (SRC-005)."""
        pods: dict[str, Pod] = {}
        looked_at: set[str] = set()
        for name in filter(is_manifest_name, entries):
            file = os.path.join(self.path, name)
            looked_at.add(file)
            pod = self._read_file(file)
            if pod is not None:
                pods[name] = pod
        self._pods = pods
        self._read = {file: known for file, known in self._read.items() if file in looked_at}
        self.errors = {file: why for file, why in self.errors.items() if file in looked_at}

    def _read_file(self, file: str) -> Pod | None:
        """The pod of one file, or None with the reason in `errors`. Directories and special files
        are passed over silently (SRC-003)."""
        try:
            status = os.stat(file)
            if not stat.S_ISREG(status.st_mode):
                self.errors.pop(file, None)
                return None
            if status.st_size > MAX_BYTES:
                raise ManifestError(f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB")
            with open(file, "rb") as manifest:
                pod = self._pod_of(file, manifest.read())
        except OSError as e:
            self._complain(file, (e.strerror or str(e)).lower())
            return None
        except ManifestError as e:
            self._complain(file, str(e))
            return None
        except Exception as e:  # a file that nobody thought of must not end the others' pods
            self._complain(file, f"unexpected error: {e!r}"[:LONGEST_REASON])
            return None
        self.errors.pop(file, None)
        return pod

    def _pod_of(self, file: str, data: bytes) -> Pod:
        """Parse a manifest; the same bytes give the same pod again without parsing."""
        known = self._read.get(file)
        if known is not None and known[0] == data:
            return known[1]
        pod = read_manifest(data, source=PodSource.FILE, origin=file, node_name=self._node_name)
        self._read[file] = (data, pod)
        return pod

    def _complain(self, file: str, why: str) -> None:
        """Log each reason once, and keep it readable."""
        if self.errors.get(file) != why:
            self.errors[file] = why
            log.error("static pod file %s: %s", file, why)
