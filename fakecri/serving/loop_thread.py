"""An event loop in a background thread, and objects that are used from outside but live on it.

This module is the one place with a thread: whoever blocks here waits in real time anyway. What must
never happen here: an object is touched from another thread than its own.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable
from functools import wraps
from types import GeneratorType, TracebackType
from typing import Any, Final

from fakecri.core.images import ImageStore
from fakecri.core.objects import Container, Sandbox
from fakecri.machine.kernel_log import KernelLog
from fakecri.machine.logind import FakeLogind
from fakecri.machine.node import FakeNode
from fakecri.recording.call import Call
from fakecri.rules.faults import Rule
from fakecri.rules.on import On
from fakecri.streaming.stream_rules import Programs

_STOP_S: Final = 10.0
_LIVING: Final = (Rule, On, ImageStore, Programs, FakeNode, KernelLog, FakeLogind)
_LIVING_CGROUPS: Final = ("CgroupFS", "CgroupPath", "OpenFile", "Process")
"""By name: their modules are imported by those who use them."""


class LoopThread:
    """An event loop that runs in a daemon thread until `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._thread = threading.Thread(target=self._run, name="fakecri", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Callable[[], Any]) -> Any:
        """The result of `work()`, called on the loop; an awaitable is awaited there.

        From the loop itself (a predicate or handler of a test) it is called directly.
        Raises: RuntimeError when the loop has ended.
        """
        if threading.current_thread() is self._thread:
            return work()
        if self.loop.is_closed():
            raise RuntimeError("this fake has ended with its `with fakecri.serve()` block")

        async def body() -> Any:
            found = work()
            return await found if asyncio.iscoroutine(found) else found

        return asyncio.run_coroutine_threadsafe(body(), self.loop).result()

    def stop(self) -> None:
        """Cancel what still runs there, then end loop and thread."""

        async def cancel_all() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(cancel_all)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_S)
        self.loop.close()


class _Handed:
    """An object that lives on the loop; its attributes and methods are used there."""

    def __init__(self, thread: LoopThread, target: Any) -> None:
        object.__setattr__(self, "_thread", thread)
        object.__setattr__(self, "_target", target)

    def __getattr__(self, name: str) -> Any:
        if name in ("_thread", "_target"):
            raise AttributeError(name)  # a copy in the making
        found = self._thread.run(lambda: getattr(self._target, name))
        if not callable(found):
            return _outside(self._thread, found)

        @wraps(found)
        def on_loop(*args: Any, **kwargs: Any) -> Any:
            return hand_over(self._thread, lambda: found(*args, **kwargs))

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
    """The result of `work()` on the loop: what lives there stays there behind a handle, what there
    is in the world is copied."""
    __tracebackhide__ = True
    return thread.run(lambda: _outside(thread, work()))


def _outside(thread: LoopThread, found: Any) -> Any:
    if isinstance(found, _LIVING) or type(found).__name__ in _LIVING_CGROUPS:
        return _Handed(thread, found)
    if isinstance(found, Container | Sandbox | Call):
        return copy.copy(found)
    if isinstance(found, list | GeneratorType):
        return [_outside(thread, one) for one in found]
    return found


def pause(duration_s: float) -> None:
    """Block the calling thread for so many real seconds."""
    threading.Event().wait(duration_s)
