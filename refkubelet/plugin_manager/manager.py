"""The plug-in manager: what lies in plugins_registry is what shall be registered (CG-086).

Every second the sockets below the directory are looked at, and those that are new, gone or made
anew are acted on, each in a task of its own. A look is as cheap as it would be to be told, and
nothing of it gets lost. What must never happen here: a plug-in that hangs or fails holds up
another one; a file that is no socket is touched.
Upstream: pkg/kubelet/pluginmanager: plugin_manager.go, pluginwatcher, reconciler.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Coroutine, Generator, Mapping
from pathlib import Path
from typing import Any, Final

from refkubelet.failures import Complaints, end_tasks
from refkubelet.host.untrusted_files import Met, looked_at, too_many
from refkubelet.operation_backoff import Retry, failed
from refkubelet.plugin_manager.plan import SocketId, plan
from refkubelet.plugin_manager.registration import (
    PluginEntry,
    PluginHandler,
    RegistrationError,
    RegistrationSockets,
    register_plugin,
)
from simclock import Clock, aside

log = logging.getLogger(__name__)

DIRECTORY: Final = "plugins_registry"
DIRECTORY_MODE: Final = 0o750
PERIOD_S: Final = 1.0
MOST_ENTRIES: Final = 10_000
"""Where there are more, nothing is acted on: what is missing from half a list would pass for gone.
Plug-ins, and whoever else may write there, make a few."""


class PluginManager:
    """Registers what is there, with the handler of its type; `run` until cancelled."""

    def __init__(
        self,
        root_dir: Path,
        sockets: RegistrationSockets,
        handlers: Mapping[str, PluginHandler],
        clock: Clock,
    ) -> None:
        self._directory = root_dir / DIRECTORY
        self._sockets = sockets
        self._handlers = handlers
        self._clock = clock
        self._complaints = Complaints(log, clock)
        self._actual: dict[str, tuple[SocketId, PluginEntry]] = {}
        self._retries: dict[str, Retry] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Look and act every second."""
        try:
            while True:
                try:
                    self._directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
                    # A thread for each look is meant: it costs little, and a directory that
                    # does not answer holds nobody up.
                    look = sockets_below(self._directory)
                    self._reconcile(await aside(f"plug-ins in {self._directory}", look))
                except OSError as error:
                    self._complaints.failed("cannot look for plug-ins", error, OSError)
                else:
                    self._complaints.over("cannot look for plug-ins")
                await self._clock.sleep(PERIOD_S)
        finally:
            await end_tasks(self._busy.values())

    def _reconcile(self, desired: Mapping[str, SocketId]) -> None:
        for path in [p for p in self._retries if p not in desired]:
            del self._retries[path]
        steps = plan(
            desired,
            {path: socket_id for path, (socket_id, _) in self._actual.items()},
            busy=self._busy,
            retries=self._retries,
            now_s=self._clock.monotonic_s(),
        )
        for path in steps.let_go:
            _, entry = self._actual.pop(path)
            self._begin(path, self._let_go(path, entry))
        for path in steps.register:
            self._begin(path, self._register(path, desired[path]))

    def _begin(self, path: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"plug-in at {path}")
        self._busy[path] = task
        task.add_done_callback(lambda _: self._busy.pop(path, None))

    async def _register(self, path: str, socket_id: SocketId) -> None:
        complaint = f"plug-in at {path} is not registered"

        def known(entry: PluginEntry) -> None:
            self._actual[path] = (socket_id, entry)

        try:
            await register_plugin(path, self._sockets, self._handlers, known)
        except Exception as error:
            self._actual.pop(path, None)
            self._complaints.failed(complaint, error, RegistrationError)
            self._retries[path] = failed(self._retries.get(path), self._clock.monotonic_s())
            return
        self._complaints.over(complaint)
        self._retries.pop(path, None)
        entry = self._actual[path][1]
        log.info("registered the %s %s at %s", entry.type, entry.name, path)

    async def _let_go(self, path: str, entry: PluginEntry) -> None:
        log.info("the %s %s at %s is gone, or made anew", entry.type, entry.name, path)
        try:
            await self._handlers[entry.type].let_go(entry)
        except Exception as error:
            self._complaints.failed(f"plug-in at {path} is let go", error)


def sockets_below(directory: Path) -> Generator[None, None, dict[str, SocketId]]:
    """The sockets in the directory and its directories, but for names that begin with a dot, an
    entry at each step. Raises OSError if the directory itself cannot be read, and (EFBIG) where
    there are more than `MOST_ENTRIES`."""
    sockets: dict[str, SocketId] = {}
    top = os.path.realpath(directory)
    unvisited, entry_count = [str(directory)], 0
    while unvisited:
        above = unvisited.pop()
        try:
            for met in looked_at(top if above == str(directory) else above):
                entry_count += 1
                if entry_count > MOST_ENTRIES:
                    break
                _note(met, os.path.join(above, met.name), found=sockets, left=unvisited)
                yield
        except OSError:
            if above == str(directory):
                raise
        if entry_count > MOST_ENTRIES:
            raise too_many(f"more than {MOST_ENTRIES} entries in {directory}")
    return sockets


def _note(met: Met, path: str, *, found: dict[str, SocketId], left: list[str]) -> None:
    if met.name.startswith("."):
        return
    if stat.S_ISSOCK(met.status.st_mode):
        found[path] = (met.status.st_ino, met.status.st_ctime_ns)
    elif met.is_directory:
        left.append(path)
