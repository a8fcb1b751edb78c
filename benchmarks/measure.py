"""One measured number and what is wanted of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """`value` in `unit`. `limit`: it must be smaller, or at least that much if `at_least`; None:
    for information only. A row without a value was not measured: `remark` says why."""

    what: str
    value: float | None
    unit: str
    limit: float | None = None
    remark: str = ""
    at_least: bool = False

    @property
    def measured(self) -> str:
        """The value as text."""
        return "-" if self.value is None else f"{self.value:.{self._digits}f} {self.unit}"

    @property
    def wanted(self) -> str:
        """The limit as text, nothing without one."""
        sign = ">=" if self.at_least else "<"
        return "" if self.limit is None else f"{sign} {self.limit:g} {self.unit}"

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, `skipped`, or nothing when nothing is wanted."""
        if self.limit is None:
            return ""
        if self.value is None:
            return "skipped"
        return "MISSED" if self.missed else "ok"

    @property
    def missed(self) -> bool:
        """Something was wanted, it was measured, and it is not so."""
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
    """Resident memory of a process (default: this one): also what is not Python's, such as
    protobuf messages."""
    fields = Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
