"""One run of a kubelet in this process: from its start until it is stopped, killed, or ends."""

from __future__ import annotations

import asyncio
from typing import Protocol

from kubenodes.wire import RuntimeWire
from refkubelet.kubelet import Kubelet


class Closed(Protocol):
    """A client that is closed with the kubelet."""

    async def aclose(self) -> None: ...


class RunningKubelet:
    """Runs `kubelet` on the running loop from now on. `wire` is its way to the runtime, `api` its
    client of the API server; None: it has none.

    Stopping and killing differ as they do for a process: after a kill no task can finish anything.
    """

    def __init__(self, kubelet: Kubelet, wire: RuntimeWire, api: Closed | None, name: str) -> None:
        self.inner = kubelet
        self._wire = wire
        self._api = api
        self._task = asyncio.create_task(kubelet.run(), name=name)

    @property
    def ended(self) -> bool:
        """Whether it does not run any more."""
        return self._task.done()

    @property
    def problem(self) -> BaseException | None:
        """What it ended with, once it has ended; None: nothing."""
        return self._task.exception()

    async def stop(self) -> None:
        """As SIGTERM; returns when it has ended. Raises what it ended with, unless it was cut off
        before."""
        await self.inner.stop()
        try:
            await asyncio.gather(self._task, return_exceptions=self._wire.is_cut)
        finally:
            await self._disconnect()

    async def kill(self) -> None:
        """As SIGKILL; returns when it has ended: nothing that it still wanted to send is sent."""
        self.cut()
        self._task.cancel()  # first: no part of it shall still hear that its ways are gone
        await self._disconnect()
        await asyncio.gather(self._task, return_exceptions=True)

    def cut(self) -> None:
        """Let nothing of it pass to the runtime any more."""
        self._wire.is_cut = True

    async def wait(self) -> None:
        """Wait until it has ended by itself. Raises what ended it."""
        await self._task

    async def _disconnect(self) -> None:
        if self._api is not None:
            await self._api.aclose()
