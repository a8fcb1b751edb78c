"""What runs at a worker of a Dask cluster. It does tasks in processes of its own.

A worker runs what it is given in threads beside its own loop. A world, or a case, wants a whole
process: its time, its signals, its mounts are those of a process, and it begins kubelets. So each
thread hands its task to a process that is idle, or to a new one: there come to be as many as the
worker has threads. They are plain programs, not children of `multiprocessing`: most workers are
daemons, which that gives no children; and what is begun as a program has no lock of a thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe  # noqa: TID251  # to a process with a time of its own
from typing import Any, Final

from kubelet_conformance.cluster.likeness import Package
from kubelet_conformance.cluster.process import Done, Task

Begin = Callable[[], object]
PROGRAM: Final = "from kubelet_conformance.cluster.process import main; main"
END_WITHIN_S: Final = 60.0


class ClusterProblem(Exception):
    """A cluster cannot do what it is asked for; the text says why. Exit code 2."""


class TaskLost(Exception):
    """What has done a task has ended, again and again perhaps; the text says what."""


class WorkerProcess:
    """One process of this worker."""

    def __init__(self) -> None:
        self._tasks, other = Pipe()
        path = os.pathsep.join(place for place in sys.path if place)
        self._program = subprocess.Popen(
            [sys.executable, "-P", "-c", f"{PROGRAM}({other.fileno()})"],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        other.close()
        self.package: Package = self._received()

    def do(self, task: Task) -> Any:
        """What the task returns. Raises ClusterProblem where the kubelet cannot be used, TaskLost
        when the process ends, and RuntimeError for what the task raises."""
        self._tasks.send(task)
        done: Done = self._received()
        if done.how == "cannot":
            raise ClusterProblem(done.what)
        if done.how == "raised":
            raise RuntimeError(done.what)
        return done.what

    def _received(self) -> Any:
        try:
            return self._tasks.recv()
        except (EOFError, ConnectionError):
            code = self._program.wait()
            raise TaskLost(f"the process that did it has ended, with {code}") from None

    def end(self) -> None:
        """Let it end: it does when its task is done."""
        self._tasks.close()
        with suppress(subprocess.TimeoutExpired):
            self._program.wait(END_WITHIN_S)


_IDLE: dict[Begin | None, list[WorkerProcess]] = {}
"""What they have begun with -> processes without a task. Lists give and take one at a time, also
to threads."""


def do(package: Package, begin: Begin | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Do that in a process, which has done `begin` before all. `package`: the one of the client.
    Raises like `WorkerProcess.do`, and ClusterProblem for another package here."""
    idle = _IDLE.setdefault(begin, [])
    try:
        process = idle.pop()
    except IndexError:
        process = WorkerProcess()
        if begin is not None:
            process.do(Task(begin))
    try:
        if process.package != package:
            raise ClusterProblem(
                f"it has refkubelet {process.package}, the client {package}: install the same"
            )
        result = process.do(Task(function, arguments))
    except BaseException:
        process.end()
        raise
    idle.append(process)
    return result


def do_here(*work: Any) -> Any:
    """`do`, in a thread of a worker, which is named in what it cannot do."""
    from distributed import get_worker  # the extra's

    try:
        return do(*work)
    except ClusterProblem as problem:
        raise ClusterProblem(f"worker {get_worker().address}: {problem}") from None


def leave() -> None:
    """End the processes without a task: no more is to come."""
    for idle in _IDLE.values():
        while idle:
            idle.pop().end()
