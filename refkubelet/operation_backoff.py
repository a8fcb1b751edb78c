"""When an operation that failed is tried again: after 500 ms, then after twice as long each time,
at most 2 min 2 s (NODE-202.2, CG-086.5). Pure.

Upstream: pkg/util/goroutinemap/exponentialbackoff.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 122.0


class Retry(Struct, frozen=True):
    """An operation that failed: not before `not_before_s` again."""

    delay_s: float
    not_before_s: float


def failed(before: Retry | None, now_s: float) -> Retry:
    """When to try again after a failure now.

    >>> failed(None, 10.0), failed(Retry(100.0, 0.0), 10.0).delay_s
    (Retry(delay_s=0.5, not_before_s=10.5), 122.0)
    """
    delay_s = FIRST_RETRY_S if before is None else min(2 * before.delay_s, LONGEST_RETRY_S)
    return Retry(delay_s, now_s + delay_s)
