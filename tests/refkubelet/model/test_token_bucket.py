"""The bucket that events and pulls take tokens from (BACK-012.9)."""

from __future__ import annotations

from refkubelet.model.token_bucket import TokenBucket
from simclock import Rng


def test_who_waits_for_a_token_gets_no_second_one_BACK_012() -> None:
    """However long each one waits and works in between, no time sees more tokens than the burst and
    those that came meanwhile."""
    draw = Rng(7).stream("waits")
    for _ in range(200):
        burst, per_s = draw.randint(1, 4), draw.choice((0.1, 1.0, 3.0, 7.0))
        bucket, now_s, taken_s = TokenBucket(burst, per_s), 0.0, []
        for _ in range(60):
            now_s += bucket.reserve(now_s)
            taken_s.append(now_s)
            now_s += draw.choice((0.0, 0.0, 0.004, 0.0071, 1.3))
        for first, at_s in enumerate(taken_s):
            for number, other_s in enumerate(taken_s[first:], 1):
                assert number <= burst + 1 + (other_s - at_s) * per_s + 1e-6
