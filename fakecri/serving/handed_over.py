"""Objects that live on the loop of a background thread, and are used from outside of it.

What must never happen here: an object is touched from another thread than its own.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import wraps
from types import GeneratorType, TracebackType
from typing import Any, Final

from fakecri.core.image_store.images import ImageStore
from fakecri.core.objects import Container, Sandbox
from fakecri.machine.kernel_log import KernelLog
from fakecri.machine.logind import FakeLogind
from fakecri.machine.node import FakeNode
from fakecri.recording.call import Call
from fakecri.rules.faults import Rule
from fakecri.rules.on import On
from fakecri.streaming.stream_rules import Programs
from simclock.loop_thread import LoopThread

_LIVING: Final = (Rule, On, ImageStore, Programs, FakeNode, KernelLog, FakeLogind)
_LIVING_CGROUPS: Final = ("CgroupFS", "CgroupPath", "OpenFile", "Process")
"""By name: their modules are imported by the code that uses them."""


class _Handed:
    """A handle of an object that lives on the loop: its attributes and methods are used there."""

    def __init__(self, thread: LoopThread, target: Any) -> None:
        object.__setattr__(self, "_thread", thread)
        object.__setattr__(self, "_target", target)

    def __getattr__(self, name: str) -> Any:
        if name in ("_thread", "_target"):
            raise AttributeError(name)  # a copy in the making
        attribute = self._thread.run(lambda: getattr(self._target, name))
        if not callable(attribute):
            return _outside(self._thread, attribute)

        @wraps(attribute)
        def on_loop(*args: Any, **kwargs: Any) -> Any:
            return hand_over(self._thread, lambda: attribute(*args, **kwargs))

        return on_loop

    def __setattr__(self, name: str, value: Any) -> None:
        self._thread.run(lambda: setattr(self._target, name, value))

    def __truediv__(self, part: str) -> Any:
        return hand_over(self._thread, lambda: self._target / part)

    def __iter__(self) -> Any:
        return iter(hand_over(self._thread, lambda: list(self._target)))

    def __eq__(self, other: object) -> bool:
        same = other._target if isinstance(other, _Handed) else other
        return bool(self._thread.run(lambda: self._target == same))

    def __hash__(self) -> int:
        return hash(self._target)

    def __str__(self) -> str:
        return str(self._thread.run(lambda: str(self._target)))

    def __enter__(self) -> Any:
        self._thread.run(self._target.__enter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._thread.run(lambda: self._target.__exit__(kind, error, tb))

    def __repr__(self) -> str:
        return str(self._thread.run(lambda: repr(self._target)))


def hand_over(thread: LoopThread, work: Callable[[], Any]) -> Any:
    """The result of `work()`, which runs on the loop. An object that lives there stays there,
    behind a handle; containers, sandboxes and values are copied."""
    __tracebackhide__ = True
    return thread.run(lambda: _outside(thread, work()))


def _outside(thread: LoopThread, found: Any) -> Any:
    if isinstance(found, _LIVING) or type(found).__name__ in _LIVING_CGROUPS:
        return _Handed(thread, found)
    if isinstance(found, Container | Sandbox | Call):
        return copy.copy(found)
    if isinstance(found, list | GeneratorType):
        return [_outside(thread, item) for item in found]
    return found


def pause(duration_s: float) -> None:
    """Block the calling thread for so many real seconds."""
    threading.Event().wait(duration_s)
