"""Work that may have to wait for the machine, beside the loop: a disk, a server of files.

On a real loop such work runs in a thread of its own, and whoever awaits it hears within a bounded
time that there is no answer: a look at a file whose server is away cannot be broken off, only left
behind. On a `VirtualLoop` or a `ManualLoop`, which cannot see threads, it runs on the loop, and
others have their turn after every `PIECE` steps.

Work is a generator: each step is short where the machine answers, what it yields does not matter,
and what it returns is the result.

What must never happen here: the loop waits for the machine; the process waits at its end for a
thread that waits for ever; a second thread waits where one waits already.
"""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from simclock.manual_loop import ManualLoop
from simclock.virtual_loop import VirtualLoop

T = TypeVar("T")
PIECE: Final = 500
"""The number of steps after which others have their turn, where there are no threads."""
QUIET_S: Final = 30.0
"""How long a single step may take before the work counts as lost."""
POLITE: Final = 200
PAUSE_S: Final = 0.0005
"""After every `POLITE` steps a thread pauses for `PAUSE_S`, and the loop has the interpreter."""
WAITS: Final = 2
"""The number of waits into which `quiet_s` is divided: one of them may end at once, when the host
stood still."""
LEAVE_S: Final = 1.0
"""How long work that was called off may take to finish its step; then nobody waits for it."""

_lost: set[_Work[Any]] = set()  # whose threads still waited when they were left


async def aside(what: str, steps: Generator[object, None, T], *, quiet_s: float = QUIET_S) -> T:
    """Run the work to its end and return its result. `what`: what it works on, a path, say.

    Raises: what the work raises; on real loops also TimeoutError when a step takes longer than
    `quiet_s`, and at once while lost work on the same thing still has no answer, and OSError
    (EAGAIN) when the machine gives no more threads. When the caller is cancelled the work ends
    after its step.

    >>> from simclock import run_virtual
    >>> def count() -> Generator[None, None, str]:
    ...     for _ in range(1200):
    ...         yield
    ...     return "done"
    >>> run_virtual(lambda: aside("numbers", count()))
    'done'
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop | ManualLoop):
        return await _in_pieces(steps)
    if any(lost.what == what and lost.is_alive for lost in _lost):
        steps.close()
        raise TimeoutError(errno.ETIMEDOUT, "Earlier work there still has no answer", what)
    work = _Work(what, steps, loop)
    try:
        return await work.result(quiet_s)
    except asyncio.CancelledError:
        await work.leave()
        raise
    finally:
        if work.is_alive:
            _keep(work)


async def call_aside(what: str, call: Callable[[], T], *, quiet_s: float = QUIET_S) -> T:
    """The same for a single step: call it, and return what it returns."""

    def steps() -> Generator[object, None, T]:
        return call()
        yield

    return await aside(what, steps(), quiet_s=quiet_s)


async def _in_pieces(steps: Generator[object, None, T]) -> T:
    try:
        while True:
            for _ in range(PIECE):
                next(steps)
            await asyncio.sleep(0)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


def _keep(work: _Work[Any]) -> None:
    """Note work that was left behind, and forget what has ended since."""
    _lost.difference_update([lost for lost in _lost if not lost.is_alive])
    _lost.add(work)


class _Work(Generic[T]):
    """One piece of work and its thread. `done`: how many steps it has made."""

    def __init__(
        self, what: str, steps: Generator[object, None, T], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Start it. Raises OSError (EAGAIN) when there is no thread for it; it is closed then."""
        self.what = what
        self._steps = steps
        self._loop = loop
        self._is_called_off = False
        self._value: T
        self._error: BaseException | None = None
        self._ended: asyncio.Future[None] = loop.create_future()
        self.done = 0
        self._has_ended = False
        try:
            threading.Thread(target=self._run, name="aside", daemon=True).start()
        except RuntimeError as error:  # can't start new thread
            steps.close()
            raise OSError(errno.EAGAIN, str(error), what) from error

    @property
    def is_alive(self) -> bool:
        """Whether the thread has not come to the end of the work."""
        return not self._has_ended

    async def result(self, quiet_s: float) -> T:
        """Wait for the end. Raises as `aside`."""
        quiet_waits = 0
        while quiet_waits < WAITS and not self._ended.done():
            before = self.done
            await asyncio.wait({self._ended}, timeout=quiet_s / WAITS)
            quiet_waits = quiet_waits + 1 if self.done == before else 0
        if not self._has_ended:
            self._is_called_off = True
            text = f"No answer within {quiet_s:g} s"
            raise TimeoutError(errno.ETIMEDOUT, text, self.what)
        if self._error is not None:
            raise self._error
        return self._value

    async def leave(self) -> None:
        """Let it end after its step, and wait a moment for that."""
        self._is_called_off = True
        await asyncio.wait({self._ended}, timeout=LEAVE_S)

    def _run(self) -> None:
        """The thread."""
        try:
            while not self._is_called_off:
                next(self._steps)
                self.done += 1
                if self.done % POLITE == 0:
                    time.sleep(PAUSE_S)
            self._steps.close()
            self._error = asyncio.CancelledError()
        except StopIteration as end:
            self._value = end.value
        except BaseException as error:
            self._error = error
        self._has_ended = True
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)
