"""The parts of the kubelet run for ever: one that ends is told, and started again.

A part is a loop with its own guard against what it expects to fail; this is the guard for the rest.
The first restart comes after 1 s, further ones later and later, up to a minute; a part that ran for
two minutes counts as sound again. Some errors end the kubelet, as they end upstream's: those that
a part names as `fatal` (docs/architecture.md, "What ends the kubelet").
What must never happen: a part that ends takes the others with it; one that fails for ever fills the
log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from refkubelet.failures import Complaints
from simtime import Clock

log = logging.getLogger(__name__)

FIRST_RESTART_S: Final = 1.0
LONGEST_RESTART_S: Final = 60.0
SOUND_AFTER_S: Final = 120.0


class PartEnded(Exception):
    """A part came to its end, which none should."""


@dataclass(frozen=True, slots=True)
class Part:
    """`run` runs until it is cancelled, and can be called again after it has failed. `fatal`: the
    errors with which the whole kubelet ends."""

    name: str
    run: Callable[[], Awaitable[None]]
    fatal: tuple[type[Exception], ...] = ()


async def keep_running(part: Part, clock: Clock) -> None:
    """Until cancelled. Raises what is fatal to the part."""
    complaints = Complaints(log, clock)
    what = f"the part '{part.name}' of the kubelet ended and is started again"
    delay_s = FIRST_RESTART_S
    while True:
        began_s = clock.monotonic_s()
        error = await _how_it_ended(part)
        if clock.monotonic_s() - began_s >= SOUND_AFTER_S:
            complaints.over(what)
            delay_s = FIRST_RESTART_S
        complaints.failed(what, error, PartEnded)
        await clock.sleep(delay_s)
        delay_s = min(2 * delay_s, LONGEST_RESTART_S)


async def _how_it_ended(part: Part) -> Exception:
    try:
        await part.run()
    except part.fatal:
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return PartEnded("it was cancelled from inside")
    except Exception as error:
        return error
    return PartEnded("it said nothing")
