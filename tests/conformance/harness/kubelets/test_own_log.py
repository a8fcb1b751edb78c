"""The log of a refkubelet in this process."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kubelet_conformance.harness.kubelets.own_log import PRODUCT, OwnLog
from simclock import VirtualLoop


@pytest.mark.virtual_time
async def test_lines_have_the_seconds_of_the_case_and_tracebacks() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    product, level = logging.getLogger("refkubelet.x"), PRODUCT.level
    own = OwnLog(loop.clock)
    product.error("before")
    own.begin()
    own.begin()
    await asyncio.sleep(12.5)
    product.info("%s of %d", "one", 2)
    product.debug("too much")
    logging.getLogger("fakecri").error("of another")
    try:
        raise KeyError("k")
    except KeyError:
        product.exception("it failed")
    own.end()
    own.end()
    product.error("after")
    assert list(own.lines)[:3] == [
        "    12.500 s  I refkubelet.x: one of 2",
        "    12.500 s  E refkubelet.x: it failed",
        "Traceback (most recent call last):",
    ]
    assert own.lines[-1] == "KeyError: 'k'"
    assert (PRODUCT.level, own in PRODUCT.handlers) == (level, False)
