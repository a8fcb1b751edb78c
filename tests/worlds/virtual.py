"""The virtual loop on which a test runs."""

from __future__ import annotations

import asyncio

from simtime import VirtualLoop


def virtual_loop() -> VirtualLoop:
    """The running loop; its `clock` is the clock to hand out."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop
