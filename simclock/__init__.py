"""Time, chance and identity: the only package that may read a clock, draw a number or make an id.

Everything else takes a `Clock`, an `Rng` and `Ids` as arguments and waits through the running
asyncio loop. On a `VirtualLoop` the same code waits without real time, and the seed alone decides
how a run goes. On a `ManualLoop` time passes only when a test lets it pass.
"""

from simclock.aside import aside, call_aside
from simclock.clock import Clock, RealClock, VirtualClock, clock_of, format_rfc3339
from simclock.dice import Ids, Rng, unguessable
from simclock.latency import Delay, Latency
from simclock.manual_loop import ManualLoop
from simclock.python_clocks import python_clocks
from simclock.virtual_loop import NothingToWaitFor, TimeLimitPassed, VirtualLoop, run_virtual, sleep

__all__ = [
    "Clock",
    "Delay",
    "Ids",
    "Latency",
    "ManualLoop",
    "NothingToWaitFor",
    "RealClock",
    "Rng",
    "TimeLimitPassed",
    "VirtualClock",
    "VirtualLoop",
    "aside",
    "call_aside",
    "clock_of",
    "format_rfc3339",
    "python_clocks",
    "run_virtual",
    "sleep",
    "unguessable",
]
