"""Real processes in a fake cgroup file system: written into cgroup.procs, they become its own.

An adopted process starts in the root of every hierarchy, leaves when the real one ends (seen
through its pidfd), and what kills it in the fake (cgroup.kill, the OOM killer) kills the real one.
What must never happen here: a signal to a process that was never written into the fake.
"""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial

from fakecri.cgroupfs.filesystem import CgroupFS
from fakecri.cgroupfs.interface.values import small, stripped
from fakecri.cgroupfs.processes import Life, Process

_FAKE_IDS_FROM = 1 << 22
"""Above every id that Linux gives, so that fake processes do not take a real one's."""


class Adoption:
    """The real processes in a fake. It needs a running loop that can watch descriptors.

    The ids of fake processes started from now on lie above those of real ones. A 0 that is written
    into cgroup.procs means the real process that writes it.
    """

    def __init__(self, fs: CgroupFS) -> None:
        self._fs = fs
        self._loop = asyncio.get_running_loop()
        self._pidfds: dict[int, int] = {}
        fs.processes.next_id = max(fs.processes.next_id, _FAKE_IDS_FROM)
        if fs.writer.alive:
            fs.writer.exit()
            fs.writer.reap()

    def with_process(self, text: str, caller_pid: int) -> str:
        """The text to write into the fake's file: 0 becomes the id of the caller. The process that
        it names is adopted, if it is not known."""
        try:
            pid = small(stripped(text.split("\0")[0]))
        except OSError:
            return text  # the file will refuse it
        pid = pid or caller_pid
        if pid > 0 and pid not in self._fs.processes.tasks:
            self._adopt(pid)
        return str(pid)

    def close(self) -> None:
        """Forget the processes; they live on."""
        for pid in list(self._pidfds):
            self._forget(pid)

    def _adopt(self, pid: int) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            return  # gone, or a thread: ESRCH says the fake
        process = self._fs.processes.start(None, pid)
        process.on_exit.append(self._killed)
        self._pidfds[pid] = pidfd
        self._loop.add_reader(pidfd, partial(self._ended, process))

    def _killed(self, process: Process) -> None:
        pidfd = self._pidfds.get(process.pid)
        if pidfd is not None:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def _ended(self, process: Process) -> None:
        """Take note of the end of a real process. A zombie cannot be told from one that is gone, so
        it is gone."""
        self._forget(process.pid)
        if process.alive:
            process.exit()
        if process.life is Life.ZOMBIE:
            process.reap()

    def _forget(self, pid: int) -> None:
        pidfd = self._pidfds.pop(pid)
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
