"""An event loop in a background thread, for callers without a loop, who block in real time anyway.

Virtual time cannot see threads: nothing that runs in virtual time may use this. What must never
happen here: an object that lives on the loop is touched from another thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

_STOP_S: Final = 10.0


class LoopThread:
    """An event loop that runs in a daemon thread until `stop`. `ended`: what a call is told that
    comes later."""

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
        """The result of `work()`, called on the loop; an awaitable is awaited there.

        From the loop itself (a predicate or handler of a test) it is called directly.
        Raises: RuntimeError when the loop has ended.
        """
        if threading.current_thread() is self._thread:
            return work()
        if self.loop.is_closed():
            raise RuntimeError(self._ended)

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
