"""The rules that make matching requests fail, wait or go unanswered."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from fakekubeapi.errors import ApiUnreachable, StatusError

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def pattern_of(path_regex: str) -> re.Pattern[str]:
    """The compiled regular expression. Raises: ValueError, naming the argument `path_regex` of
    `FakeApi.fails` and its like, if it is not one."""
    try:
        return re.compile(path_regex)
    except (re.error, TypeError) as error:
        raise ValueError(
            f"path_regex: wanted a regular expression, got {path_regex!r}: {error}"
        ) from None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(eq=False)
class Fault:
    """One rule, as `FakeApi.fails`, `delays`, `hangs` and `down` make it. Used as a context
    manager, it is removed at the end of the block. Raises: ValueError for a field out of range."""

    method: str | None
    """The HTTP method it applies to; None: any."""
    path: re.Pattern[str]
    """It applies to paths in which this is found."""
    error: StatusError | None = None
    """What the request is refused with; None: it is not refused."""
    delay_s: float = 0.0
    """Seconds the request waits before anything else happens to it."""
    hang: bool = False
    """The request waits until the rule is removed."""
    down: bool = False
    """The request gets no answer at all, as if the server did not run."""
    times: int | None = None
    """How many requests it applies to; None: no limit."""
    nth: int | None = None
    """It applies only to this one of the requests that match, counted from 1; None: to all."""
    seen: int = 0
    """How many requests have matched so far."""
    hits: int = 0
    """How many requests it has applied to so far."""
    _rules: list[Fault] = field(default_factory=list, repr=False)
    _released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def __post_init__(self) -> None:
        if self.method not in (None, *METHODS):
            words = ", ".join(METHODS)
            raise ValueError(f"method: wanted one of {words}, or None for all, got {self.method!r}")
        if self.times is not None and not (_is_int(self.times) and self.times >= 1):
            raise ValueError(f"times: wanted 1 or more, got {self.times!r}")
        if self.nth is not None and not (_is_int(self.nth) and self.nth >= 1):
            raise ValueError(f"nth: wanted 1 or more, got {self.nth!r}")
        if not isinstance(self.delay_s, int | float) or not self.delay_s >= 0:
            raise ValueError(f"delay_s: wanted seconds from 0, got {self.delay_s!r}")
        code = 500 if self.error is None else self.error.code
        if not _is_int(code) or not 400 <= code <= 599:
            raise ValueError(f"status: wanted an error, 400 to 599, got {code!r}")

    def matches(self, method: str, path: str) -> bool:
        """Whether it is for that request; never once it has applied `times` times."""
        if self.times is not None and self.hits >= self.times:
            return False
        return self.method in (None, method) and self.path.search(path) is not None

    def takes(self) -> bool:
        """Count a request that matches, and say whether it is the one that the rule applies to."""
        self.seen += 1
        return self.nth is None or self.seen == self.nth

    async def strike(self) -> None:
        """Apply the rule to one request and count it: wait, then raise what the rule says.
        Raises: ApiUnreachable or the rule's StatusError; nothing if it only delays or hangs."""
        self.hits += 1
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.hang:
            await self._released.wait()
        if self.down:
            raise ApiUnreachable("the API server is down (FakeApi.down)")
        if self.error is not None:
            raise self.error

    def remove(self) -> None:
        """End the rule; requests that hang on it go on. A second call does nothing."""
        if self in self._rules:
            self._rules.remove(self)
        self._released.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


class Faults:
    """The rules in force. All that match a request are applied to it, the newest first, until one
    of them raises."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []

    def add(self, rule: Fault) -> Fault:
        """Put a rule in force; returns it."""
        rule._rules = self._rules
        self._rules.append(rule)
        return rule

    async def strike(self, method: str, path: str, *, only_down: bool = False) -> None:
        """Apply to one request every rule that matches it; with `only_down` only those that say
        that the server is down. Raises: see `Fault.strike`."""
        for rule in reversed(list(self._rules)):
            if rule.matches(method, path) and (rule.down or not only_down) and rule.takes():
                await rule.strike()
