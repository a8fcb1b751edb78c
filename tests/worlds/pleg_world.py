"""The loop in virtual time, for tests of the PLEG."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from simtime import VirtualLoop


@asynccontextmanager
async def virtual_loop() -> AsyncIterator[VirtualLoop]:
    """The loop that runs; it must be a virtual one."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    yield loop
