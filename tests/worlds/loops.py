"""The loop that a test runs on."""

from __future__ import annotations

import asyncio

from simclock import VirtualLoop


def virtual_loop() -> VirtualLoop:
    """The running loop, with its `clock`; fails unless the test is on virtual time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop
