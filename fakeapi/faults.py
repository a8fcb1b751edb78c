"""Trouble on request: rules that make matching requests fail, wait or go unanswered."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from fakeapi.errors import ApiUnreachable, StatusError

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def pattern_of(path_regex: str) -> re.Pattern[str]:
    """The pattern. Raises: ValueError for what is no regular expression."""
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
    """One rule. As a context manager it is removed at the end of the block.

    `hits` counts the requests it met; after `times` of them it is spent (None: never).
    """

    method: str | None
    path: re.Pattern[str]
    error: StatusError | None = None
    delay_s: float = 0.0
    hang: bool = False
    down: bool = False
    times: int | None = None
    hits: int = 0
    _rules: list[Fault] = field(default_factory=list, repr=False)
    _released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def __post_init__(self) -> None:
        if self.method not in (None, *METHODS):
            known = ", ".join(METHODS)
            raise ValueError(f"method: wanted one of {known}, or None for all, got {self.method!r}")
        if self.times is not None and not (_is_int(self.times) and self.times >= 1):
            raise ValueError(f"times: wanted 1 or more, got {self.times!r}")
        if not isinstance(self.delay_s, int | float) or not self.delay_s >= 0:
            raise ValueError(f"delay_s: wanted seconds from 0, got {self.delay_s!r}")
        code = 500 if self.error is None else self.error.code
        if not _is_int(code) or not 400 <= code <= 599:
            raise ValueError(f"status: wanted an error, 400 to 599, got {code!r}")

    def matches(self, method: str, path: str) -> bool:
        if self.times is not None and self.hits >= self.times:
            return False
        return self.method in (None, method) and self.path.search(path) is not None

    async def strike(self) -> None:
        """Do to the current request what the rule says: wait, hang until removed, or raise."""
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
        """End the rule; requests hung by it go on."""
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
    """The rules in force; the newest matching one is tried first, a failure ends the search."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []

    def add(self, rule: Fault) -> Fault:
        rule._rules = self._rules
        self._rules.append(rule)
        return rule

    @property
    def down(self) -> bool:
        return any(rule.down for rule in self._rules)

    async def strike(self, method: str, path: str) -> None:
        for rule in reversed(list(self._rules)):
            if rule.matches(method, path):
                await rule.strike()
