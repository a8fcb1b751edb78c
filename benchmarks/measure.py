"""One measured number and its limit: a row of the table of benchmarks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One measured number."""

    what: str
    """What was measured."""
    value: float | None
    """The number, in `unit`; None: it was not measured, and `remark` says why."""
    unit: str
    limit: float | None = None
    """The value has to be smaller than this; None: it is for information only."""
    remark: str = ""
    at_least: bool = False
    """The value has to be this `limit` or more, instead of less."""

    @property
    def measured(self) -> str:
        """The value as text."""
        return "-" if self.value is None else f"{self.value:.{self._digits}f} {self.unit}"

    @property
    def wanted(self) -> str:
        """The limit as text; "" without one."""
        sign = ">=" if self.at_least else "<"
        return "" if self.limit is None else f"{sign} {self.limit:g} {self.unit}"

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, `skipped` (not measured), or "" without a limit."""
        if self.limit is None:
            return ""
        if self.value is None:
            return "skipped"
        return "MISSED" if self.missed else "ok"

    @property
    def missed(self) -> bool:
        """Whether there is a limit, and the measured value is on its wrong side."""
        if self.limit is None or self.value is None:
            return False
        return self.value < self.limit if self.at_least else not self.value < self.limit

    @property
    def _digits(self) -> int:
        return 2 if abs(self.value or 0) < 10 else 1 if abs(self.value or 0) < 100 else 0

    def __str__(self) -> str:
        parts = (self.what, self.measured, self.wanted, self.verdict, self.remark)
        return "  |  ".join(part for part in parts if part)


def rss_bytes(pid: int | None = None) -> int:
    """Resident memory of a process (None: this one). It includes memory that Python does not
    manage, such as protobuf messages."""
    fields = Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
