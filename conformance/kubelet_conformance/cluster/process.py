"""A process that does one task after the other for a worker: `main`, with the number of the file
descriptor over which tasks come and results go.

It says first which package it has. It ends when nobody is at the other end any more.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection  # noqa: TID251  # to a thread of a worker
from typing import Any, Literal

from msgspec import Struct

from kubelet_conformance.cluster.likeness import own_package
from kubelet_conformance.harness.runs.choice import EnvironmentProblem


class Task(Struct, frozen=True):
    """What is to be done."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Done(Struct, frozen=True):
    """What came of a task."""

    how: Literal["returned", "cannot", "raised"]
    """`cannot`: the kubelet cannot be used here."""
    what: Any
    """What it has returned, or a text."""


def serve(tasks: Connection) -> None:
    """Do the tasks that come, until none can come any more."""
    tasks.send(own_package())
    while True:
        try:
            tasks.send_bytes(_done(tasks.recv()))
        except (EOFError, ConnectionError):
            return


def _done(task: Task) -> bytes:
    try:
        return pickle.dumps(Done("returned", task.function(*task.arguments)))
    except EnvironmentProblem as problem:
        return pickle.dumps(Done("cannot", str(problem)))
    except Exception:
        return pickle.dumps(Done("raised", traceback.format_exc()))


def main(descriptor: int) -> None:
    """Be such a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who has begun it
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what a world has made is undone
    serve(Connection(descriptor))
