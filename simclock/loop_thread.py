"""An event loop in a background thread, for code without a loop, which blocks in real time anyway.

Virtual time cannot see threads, so nothing that runs in virtual time may use this. Objects that
belong to the loop are to be used on its thread only, through `LoopThread.run`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

_STOP_S: Final = 10.0


class LoopThread:
    """An event loop that runs in a daemon thread until `stop`. `ended`: the message of the
    RuntimeError that calls after that raise."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, ended: str = "its event loop has ended"
    ) -> None:
        self.loop = loop
        self._ended = ended
        self._thread = threading.Thread(target=self._run, name="fakecri", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Callable[[], Any]) -> Any:
        """Call `work()` on the loop's thread and return its result; a coroutine is awaited there.

        Blocks until then. Called on the loop's own thread (in a callback of a test, say), it calls
        `work()` directly and returns what that returns. Raises: what `work` raises, without the
        frames of the loop's thread unless they lead into code of the caller's; RuntimeError when
        the loop has ended.
        """
        __tracebackhide__ = True
        if threading.current_thread() is self._thread:
            return work()
        if self.loop.is_closed():
            raise RuntimeError(self._ended)

        async def body() -> Any:
            result = work()
            return await result if asyncio.iscoroutine(result) else result

        try:
            return asyncio.run_coroutine_threadsafe(body(), self.loop).result()
        except BaseException as error:
            if _ours(error):
                raise error.with_traceback(None) from error.__cause__
            raise

    def stop(self) -> None:
        """Cancel the tasks that still run there, then end loop and thread. Waits up to 10 s for the
        thread."""

        async def cancel_all() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(cancel_all)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_S)
        self.loop.close()


def _ours(error: BaseException) -> bool:
    """Raised by code of this project, not by a predicate or program that a test has given."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    module = "" if frame is None else str(frame.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in ("fakecri", "simclock")
