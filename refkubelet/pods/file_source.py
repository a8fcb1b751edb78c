"""The static pods of a directory, or of one file: read at start, on changes, and every period.

How it works. One task alternates between reading everything (at start, every `period_s`, and after
each new watch) and waiting for inotify events. An event re-reads only its file. A removal is
delivered before the change that follows it, because a manifest that is removed and written again
makes a new pod, even with the same bytes (SRC-008). The watch is made before the directory is read,
so that no change is missed; without a watch there is the periodic reading.

What must never happen here: a bad file hides or removes the pod of another file, or blocks the
event loop; a reading that failed counts as "no pods".

Rules: SRC-001..011. Different from upstream on purpose: pods are kept by file name, so that the old
pod of a renamed one ends at once (SRC-011) and removed pods never come back with an event
(SRC-012); a file is read when its writer has closed it, so half-written files are not read.
Upstream: pkg/kubelet/config/file.go, file_linux.go."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Final

from refkubelet.model.objects import Pod
from refkubelet.model.pod import full_name
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.config import Deliver
from refkubelet.pods.manifest_files import ManifestFiles
from refkubelet.pods.watch import DirectoryWatch, WatchFailed
from simclock import Clock

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0  # SRC-007, SRC-009
RETRY_MAX_S: Final = 20.0
COPIES: Final = (
    *("~", ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".tmp"),
    *(".dpkg-dist", ".dpkg-old", ".rpmnew", ".rpmsave"),
)


def is_manifest_name(name: str) -> bool:
    """Whether a directory entry may be a manifest; dot files and the copies that editors, packages
    and operators leave beside a file never are (SRC-003)."""
    return not name.startswith(".") and not name.lower().endswith(COPIES)


def collapse(pods: Mapping[str, Pod]) -> tuple[Pod, ...]:
    """One pod per full name: the one whose file comes last (SRC-010)."""
    by_name: dict[str, Pod] = {}
    for pod in pods.values():
        by_name[full_name(pod)] = pod
    return tuple(by_name.values())


class FileSource:
    """Delivers the pods of `path`, a directory or one file. `period_s`: fileCheckFrequency, in
    seconds. `errors`: file -> why it has no pod now."""

    source = PodSource.FILE

    def __init__(self, path: str, *, node_name: str, period_s: float, clock: Clock) -> None:
        self.path = path.rstrip("/") or "/"  # SRC-001
        self._files = ManifestFiles(node_name)
        self._period_s = period_s
        self._clock = clock
        self._pods: dict[str, Pod] = {}  # by file name, in the order of their reading
        self._watch: DirectoryWatch | None = None
        self._single = False  # `path` is one file; its directory is watched
        self._retry_s = RETRY_S

    @property
    def errors(self) -> dict[str, str]:
        """File -> why it has no pod now."""
        return self._files.errors

    async def run(self, deliver: Deliver) -> None:
        """Deliver complete sets of pods until cancelled."""
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
        """Watch the directory, or that of the single file; the pause before the next try doubles
        while that fails."""
        try:
            self._single = stat.S_ISREG(os.stat(self.path).st_mode)
            directory = os.path.dirname(self.path) or "." if self._single else self.path
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
        """Wait for changes, at most `timeout_s`, and deliver them; False when the watch has
        ended."""
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
        if self._single:
            await self._apply_to_single(changes, deliver)
        else:
            await self._apply(changes, deliver)
        return True

    async def _apply(self, changes: Iterable[tuple[str, bool]], deliver: Deliver) -> None:
        """Read the changed files and deliver the new set (SRC-008). A file that cannot be read now
        keeps its pod until the next periodic reading."""
        removed = changed = False
        for name, present in changes:
            if not is_manifest_name(name):
                continue
            file = os.path.join(self.path, name)
            if not present:
                removed = self._pods.pop(name, None) is not None or removed
                self._files.forget(file)
                continue
            if removed:  # deliver it alone, because the same pod may come back with this change
                await deliver(collapse(self._pods))
                removed = False
            pod = await self._read_file(file)
            if pod is not None:
                self._pods.pop(name, None)
                self._pods[name] = pod  # the file just written wins (SRC-010)
                changed = True
        if removed or changed:
            await deliver(collapse(self._pods))

    async def _apply_to_single(self, changes: Iterable[tuple[str, bool]], deliver: Deliver) -> None:
        for name, present in changes:
            if name != os.path.basename(self.path):
                continue
            if not present:
                self._pods.clear()
                await deliver(())
            else:
                await self._read_all(deliver)

    # -- reading -------------------------------------------------------------------------------

    async def _read_all(self, deliver: Deliver) -> None:
        """Read everything and deliver it; if that fails, deliver nothing."""
        try:
            mode = os.stat(self.path).st_mode
            entries = sorted(os.listdir(self.path)) if stat.S_ISDIR(mode) else []
        except FileNotFoundError:
            self._files.complain(self.path, "no such file or directory")
            self._pods.clear()
            await deliver(())  # SRC-007
            return
        except OSError as e:
            self._files.complain(self.path, e.strerror or str(e))
            return
        if stat.S_ISDIR(mode):
            await self._read_directory(entries)
        elif stat.S_ISREG(mode):
            pod = await self._read_file(self.path)
            if pod is None:
                return  # SRC-006: the last good pod stays
            self._pods = {os.path.basename(self.path): pod}
        else:
            self._files.complain(self.path, "is neither a directory nor a regular file")
            return
        await deliver(collapse(self._pods))

    async def _read_directory(self, entries: Iterable[str]) -> None:
        """Read all manifests in the order of their names; bad ones give no pod (SRC-005)."""
        pods: dict[str, Pod] = {}
        looked_at: set[str] = set()
        for name in filter(is_manifest_name, entries):
            file = os.path.join(self.path, name)
            looked_at.add(file)
            pod = await self._read_file(file)
            if pod is not None:
                pods[name] = pod
        self._pods = pods
        self._files.keep_only(looked_at)

    async def _read_file(self, file: str) -> Pod | None:
        """`ManifestFiles.read`, and a turn for all other tasks after a file was parsed."""
        parsed = self._files.parsed
        pod = self._files.read(file)
        if self._files.parsed != parsed:
            await asyncio.sleep(0)
        return pod
