"""One measured number and what is wanted of it."""

from __future__ import annotations

from dataclasses import dataclass

NOISE = 2.0
"""A shared machine makes everything slower now and then; only more than this counts as missed."""


@dataclass(frozen=True, slots=True)
class Row:
    """`value` in `unit`, smaller is better. `limit` None: for information only."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    remark: str = ""

    @property
    def wanted(self) -> str:
        """The limit as text, nothing without one."""
        return "" if self.limit is None else f"< {self.limit:g} {self.unit}"

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, or nothing when nothing is wanted."""
        if self.limit is None:
            return ""
        return "ok" if self.value < self.limit else "MISSED"

    @property
    def failed(self) -> bool:
        """Missed by more than noise explains."""
        return self.limit is not None and self.value >= NOISE * self.limit

    def __str__(self) -> str:
        parts = (self.what, f"{self.value:.1f} {self.unit}", self.wanted, self.verdict, self.remark)
        return "  |  ".join(part for part in parts if part)
