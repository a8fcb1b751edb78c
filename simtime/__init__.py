"""Time, chance and identity: the only package that may read a clock, draw a number or make an id.

Everything else takes a `Clock`, an `Rng` and `Ids` as arguments and waits through the running
asyncio loop. On a `VirtualLoop` the same code needs no real time, and a run is a function of its
seed. What must never happen here: a jump of virtual time while anything can still run.
"""

from simtime.clock import Clock, RealClock, VirtualClock, format_rfc3339
from simtime.dice import Ids, Rng, unguessable
from simtime.manual_loop import ManualLoop
from simtime.virtual_loop import NothingToWaitFor, TimeLimitPassed, VirtualLoop, run_virtual

__all__ = [
    "Clock",
    "Ids",
    "ManualLoop",
    "NothingToWaitFor",
    "RealClock",
    "Rng",
    "TimeLimitPassed",
    "VirtualClock",
    "VirtualLoop",
    "format_rfc3339",
    "run_virtual",
    "unguessable",
]
