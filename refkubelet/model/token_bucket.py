"""A rate limit with bursts: client-go's flowcontrol.RateLimiter, without a clock. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """Starts with `burst` tokens and gets `per_s` new ones per second, up to `burst`.

    >>> bucket = TokenBucket(1, per_s=2.0)
    >>> bucket.take(0.0), bucket.take(0.25), bucket.take(0.5)
    (True, False, True)
    >>> bucket.reserve(0.5), bucket.reserve(0.5)
    (0.5, 1.0)
    """

    burst: int
    per_s: float
    tokens: float = field(init=False)
    filled_at_s: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = float(self.burst)

    def take(self, now_s: float) -> bool:
        """Take a token; False: none is available. `now_s`: monotonic."""
        self._fill(now_s)
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def reserve(self, now_s: float) -> float:
        """Take the next token, though it may only come later: seconds until then; 0: now."""
        self._fill(now_s)
        self.tokens -= 1
        return max(0.0, -self.tokens / self.per_s)

    def _fill(self, now_s: float) -> None:
        passed_s = max(0.0, now_s - self.filled_at_s)
        self.tokens = min(self.burst, self.tokens + passed_s * self.per_s)
        self.filled_at_s = now_s
