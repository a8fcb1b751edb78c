"""The log of a refkubelet that runs in this process, for the failures of its case."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from simclock import Clock

PRODUCT: Final = logging.getLogger("refkubelet")
MOST_LINES: Final = 2000
TRACEBACKS: Final = logging.Formatter()


class OwnLog(logging.Handler):
    """Keeps what refkubelet's modules log between `begin` and `end`; each line begins with the
    seconds of the case."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=MOST_LINES)
        """The last of them."""
        self._clock = clock
        self._start_s = clock.monotonic_s()
        self._level_before: int | None = None

    def begin(self, level: int = logging.INFO) -> None:
        """Keep what is logged from now on, from that level on; a second call does nothing."""
        if self._level_before is None:
            self._level_before = PRODUCT.level
            self.setLevel(level)
            if level < PRODUCT.getEffectiveLevel():  # every change costs all loggers their caches
                PRODUCT.setLevel(level)
            PRODUCT.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, with its traceback if it has one."""
        now_s = self._clock.monotonic_s() - self._start_s
        text = f"{record.levelname[0]} {record.name}: {record.getMessage()}"
        self.lines.append(f"{now_s:10.3f} s  {text}")
        if record.exc_info:
            self.lines.extend(TRACEBACKS.formatException(record.exc_info).splitlines())

    def end(self) -> None:
        """Keep no more; a second call does nothing."""
        if self._level_before is not None:
            PRODUCT.removeHandler(self)
            if PRODUCT.level != self._level_before:
                PRODUCT.setLevel(self._level_before)
            self._level_before = None
