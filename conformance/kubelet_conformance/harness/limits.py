"""The time limits and tolerances of all cases, in seconds. A case waits no longer than a limit that
is named here or follows from a rule.

A limit is the longest time that correct behaviour takes, plus what measuring adds: a kubelet that
is merely slow passes, one that waits for the wrong thing does not.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Final
from zlib import crc32

from msgspec import Struct

from kubeobjects.structs import replace

RELIST_S: Final = 1.0  # PLEG-001
HOUSEKEEPING_S: Final = 2.0  # LIFE-004
SYNC_ERROR_S: Final = 15.0  # LIFE-037: 10 s times [1, 1.5)
STATUS_PASS_S: Final = 10.0  # STAT-020
EVICTION_CYCLE_S: Final = 10.0  # EVIC-050
GC_PERIOD_S: Final = 60.0  # GC-001
STATIC_SUCCESSOR_S: Final = 17.0  # MIRR-002: 10 s times [1, 1.5) plus a sync tick plus a relist
MIN_STOP_TIMEOUT_S: Final = 2  # LIFE-143

START_S: Final = 5.0  # until a pod whose image is present runs
STOP_S: Final = 5.0  # beyond the grace period: kill, sandbox stop, next relist
REGISTER_S: Final = 30.0  # until a new kubelet takes registrations of plugins; no rule says when
NODE_STATUS_S: Final = 11.0  # NODE-010: the Node's status is computed every 10 s
EVENTS_S: Final = 1.0  # until the events of what can be seen have arrived at the API server
WATCH_S: Final = 1.0  # until a kubelet knows of a new object of a kind that it watches
NOTICE_S: Final = 3.0  # until a change in the runtime is acted on: two relists and a sync


class Pace(Struct, frozen=True):
    """How the clock of a run behaves. Seconds."""

    tick_s: float
    """The time between two looks of a wait."""
    slack_s: float
    """Added to every upper bound."""
    limit_s: float
    """The most that one case may take."""
    overload: Callable[[], str]
    """Why a failure says nothing of the kubelet now: the machine is overloaded. "" when it is not.
    Load widens no limit."""
    settle_s: float = 0.0
    """How long a kubelet may do nothing for its pods after its start."""
    quiet_s: float = 0.0
    """How long a run that lets time pass, or waits for something else than pods, may go without a
    look at a kubelet of which nothing is seen; 0: it looks at every tick."""
    removal_s: float = 0.0
    """How long the removal of all pods may take at the end of a case; 0: nothing is removed."""
    asks_laws: bool = True
    """Whether the laws are asked after a case: in virtual and in jumping time. In real time a look
    can miss what was there, and be late."""
    late_s: float = 0.0
    """How much later a tick may come if it then falls together with what the kubelet does anyway:
    each instant to which time jumps costs."""


def overload(load: float, cpus: int) -> str:
    """Why nothing can be said of the time that things take on a machine with that load average; ""
    while at most two processes per CPU want to run.

    >>> overload(4, 2), overload(50.26, 2)
    ('', 'load 50.3 on 2 CPUs')
    """
    return f"load {load:.1f} on {cpus} CPUs" if load > 2 * cpus else ""


def overload_now() -> str:
    """The same for this machine, by the load of the last minute."""
    return overload(os.getloadavg()[0], os.cpu_count() or 1)


VIRTUAL: Final = Pace(tick_s=0.1, slack_s=0.15, limit_s=7200.0, overload=lambda: "", removal_s=60.0)
# A real machine may run eight kubelets at once on two cores. A kubelet that does not find its
# runtime looks again 0.1, 0.3, 0.7, 1.5, 3.1, 6.3 and 11.3 s after its start (LIFE-006).
SETTLE_S: Final = 8.0
REAL: Final = Pace(
    tick_s=0.1,
    slack_s=4.0,
    limit_s=150.0,
    overload=overload_now,
    settle_s=SETTLE_S,
    asks_laws=False,
)
REAL_LONG: Final = replace(REAL, limit_s=2400.0)
FITS_S: Final = 0.9 * REAL.limit_s
"""A case that takes no longer in virtual time ends within its limit in real time, too."""
# In jumping time what works is never overtaken, however busy the machine is.
JUMPING: Final = replace(VIRTUAL, slack_s=0.5, settle_s=SETTLE_S, quiet_s=1.0, late_s=0.1)
REMOVED_OF: Final = 3
"""In one of so many cases the pods are removed at the end."""


def of_case(pace: Pace, case_id: str, seed: int = 0) -> Pace:
    """That pace for a case: its pods are removed at its end, or, to save time, not; another seed
    has it done in other cases."""
    removes = (crc32(case_id.encode()) + seed) % REMOVED_OF == 0
    return pace if removes else replace(pace, removal_s=0.0)


def counted_from(start_s: float, now_s: float) -> str:
    """What a failure says of a limit that counts from later than the wait began.

    >>> counted_from(8.0, 0.5), counted_from(20.0, 20.0)
    (', counted from 8 s: the kubelet has just started', '')
    """
    return f", counted from {start_s:g} s: the kubelet has just started" * (start_s > now_s)


def hurried(pace: Pace, speed: float) -> Pace:
    """That pace of real time in a time that passes `speed` times as fast: what the machine is late
    by counts so many times."""
    return replace(pace, slack_s=pace.slack_s * speed, limit_s=pace.limit_s * speed)


class Span(Struct, frozen=True):
    """A closed range of seconds."""

    low_s: float
    high_s: float
    top_s: float = math.inf
    """The limit that slack does not extend: a longer time means that the kubelet waited for
    something else."""

    def after(self, run_s: float) -> Span:
        """The same span, counted from the start of a container that runs for so many seconds."""
        return Span(self.low_s + run_s, self.high_s + run_s, self.top_s + run_s)

    def __contains__(self, value_s: object) -> bool:
        return isinstance(value_s, int | float) and self.low_s <= value_s <= self.high_s

    def __str__(self) -> str:
        return f"{self.low_s:.2f}..{self.high_s:.2f} s"


def restart_after(delay_s: float) -> Span:
    """The span from the end of a container to its next start, for a back-off of `delay_s`
    (BACK-011).

    It is never shorter than the delay. It may be longer by a factor in [1, 1.5) on waits of at most
    60 s at a time, by one read of the work queue, and by one relist on each side. Slack ends before
    twice the delay, which is the next delay of the series.
    """
    if delay_s == 0:
        return Span(0.0, 2 * RELIST_S + 0.5)
    high_s = delay_s + 0.5 * min(delay_s, 60.0) + 3 * RELIST_S
    return Span(delay_s, high_s, max(high_s, 2 * delay_s - 0.5))
