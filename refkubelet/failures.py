"""What failures do to a kubelet: they are logged, not too often, and the loop or part goes on.

A loop that must go on logs a failed round with `log_failure` or, where failures may last, with
`Complaints`, which limits how often. The parts of the kubelet run for ever: one that ends is logged
and started again, the first time after 1 s, then after twice as long each time, up to a minute; a
part that ran for two minutes counts as sound again. Some errors end the kubelet, as they end
upstream's: those that a part names as `fatal` (docs/architecture.md, "What ends the kubelet"). What
must never happen: an exception of one pod, container or call ends a part of the kubelet; a trouble
that lasts fills the log. Cancellation is no failure: catch `Exception`, which lets it pass.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from kubeobjects.golang.duration import format_duration
from simclock import Clock

log = logging.getLogger(__name__)

REMIND_S: Final = 60.0
MOST_TROUBLES: Final = 1000  # kept by one `Complaints`; of more the oldest are forgotten
FIRST_RESTART_S: Final = 1.0
LONGEST_RESTART_S: Final = 60.0
SOUND_AFTER_S: Final = 120.0


def log_failure(
    log: logging.Logger, what: str, error: Exception, *expected: type[Exception]
) -> None:
    """One line for the expected kinds (a call that failed); for any other an error with its
    traceback."""
    if isinstance(error, expected):
        log.warning("%s: %s", what, error)
    else:
        log.error("%s: unexpected error", what, exc_info=error)


@dataclass(slots=True)
class _Trouble:
    what: str
    since_s: float
    told_s: float
    times: int = 1


class Complaints:
    """Logs a trouble when it begins, once a minute while it lasts, and when it is over."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    def failed(
        self, what: str, error: Exception, *expected: type[Exception], key: str = ""
    ) -> None:
        """As `log_failure`, but not each time, and with a traceback only the first. `key` names the
        trouble, if `what` does not."""
        times = self.again(what, key)
        if times is None:
            return
        if times and not isinstance(error, expected):
            self._log.error("%s%s: unexpected error: %r", what, times, error)
        else:
            log_failure(self._log, what + times, error, *expected)

    def again(self, what: str, key: str = "") -> str | None:
        """Count it. None: that was told less than a minute ago; else what to add to the message,
        nothing the first time."""
        now_s = self._clock.monotonic_s()
        trouble = self._troubles.get(key or what)
        if trouble is None:
            if len(self._troubles) >= MOST_TROUBLES:
                del self._troubles[next(iter(self._troubles))]
            self._troubles[key or what] = _Trouble(what, now_s, now_s)
            return ""
        trouble.times += 1
        if now_s - trouble.told_s < REMIND_S:
            return None
        trouble.told_s = now_s
        return f" ({self._so_far(trouble)})"

    def over(self, key: str) -> None:
        """It worked: the end of the trouble is logged, unless it failed only once before."""
        if not self._troubles:
            return
        trouble = self._troubles.pop(key, None)
        if trouble is not None and trouble.times > 1:
            self._log.info("%s: no longer, after %s", trouble.what, self._so_far(trouble))

    def guarded(self, what: str, *expected: type[Exception], key: str = "") -> Guard:
        """For a block, or for one after the other: what fails inside is told as `failed` does, and
        goes no further; else it is over."""
        return Guard(self, what, expected, key)

    def _so_far(self, trouble: _Trouble) -> str:
        lasted_s = round(self._clock.monotonic_s() - trouble.since_s)
        return f"{trouble.times} times in {format_duration(lasted_s)}"


class Guard:
    """As `Complaints.guarded` says."""

    __slots__ = ("_complaints", "_expected", "_key", "_what")

    def __init__(
        self, complaints: Complaints, what: str, expected: tuple[type[Exception], ...], key: str
    ) -> None:
        self._complaints = complaints
        self._what = what
        self._expected = expected
        self._key = key

    def __enter__(self) -> None:
        """Nothing is to be prepared."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            if self._complaints._troubles:  # else nothing is over
                self._complaints.over(self._key or self._what)
        elif isinstance(error, Exception):
            self._complaints.failed(self._what, error, *self._expected, key=self._key)
            return True
        return False


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel them, and wait for their ends, whatever these are."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


class PartEnded(Exception):
    """A part returned, or was cancelled from inside: parts run until the kubelet ends."""


class Part(Struct, frozen=True):
    """`run` runs until it is cancelled, and can be called again after it has failed. `fatal`: the
    errors with which the whole kubelet ends."""

    name: str
    run: Callable[[], Awaitable[None]]
    fatal: tuple[type[Exception], ...] = ()


async def keep_running(part: Part, clock: Clock) -> None:
    """Until cancelled. Raises what is fatal to the part."""
    complaints = Complaints(log, clock)
    complaint = f"the part '{part.name}' of the kubelet ended and is started again"
    delay_s = FIRST_RESTART_S
    while True:
        began_s = clock.monotonic_s()
        error = await _how_it_ended(part)
        if clock.monotonic_s() - began_s >= SOUND_AFTER_S:
            complaints.over(complaint)
            delay_s = FIRST_RESTART_S
        complaints.failed(complaint, error, PartEnded)
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
