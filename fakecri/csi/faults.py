"""What befalls calls of a fake storage driver: one rule, and the rules of a driver. No I/O but
waiting.

What must never happen here: a call that waits although its rule or its driver has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fakecri.errors import CriError, status_code


@dataclass(slots=True, eq=False)
class CsiFault:
    """What happens to calls of `method`. The call waits (`delay_s`; with `hangs` until `release`),
    then it fails with `text` and the gRPC status `code`; None: it does its work and is answered.

    `done`: it does its work first, whatever happens then. `volume`: only calls about the volume of
    that ID. `nth`: only that one of the calls that fit, counted from 1. `times`: so many calls at
    most. `on_strike` is called with each call that it happens to. `hits`: how many those were.
    """

    method: str
    text: str | None = None
    code: str = "INTERNAL"
    delay_s: float = 0.0
    hangs: bool = False
    done: bool = False
    volume: str = ""
    nth: int | None = None
    times: int | None = None
    on_strike: Callable[[Any], object] = lambda _: None
    hits: int = 0
    _seen: int = 0
    _owner: CsiFaults | None = field(default=None, repr=False)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, repr=False)

    def takes(self, method: str, request: Any) -> bool:
        """Count a call that fits, and say whether it is one that this happens to."""
        if method != self.method or self.times == self.hits:
            return False
        if self.volume and getattr(request, "volume_id", "") != self.volume:
            return False
        self._seen += 1
        if self.nth is not None and self._seen != self.nth:
            return False
        self.hits += 1
        return True

    async def wait(self) -> None:
        """Wait as long as the rule says. Raises CriError when the driver ends meanwhile."""
        ended = asyncio.get_running_loop().create_future()
        self._waiting.append(ended)
        try:
            if self.hangs:
                await ended
            else:
                await asyncio.wait([ended], timeout=self.delay_s)
                if ended.done():
                    ended.result()
        finally:
            self._waiting.remove(ended)

    @property
    def failure(self) -> CriError | None:
        """What a call fails with; None: it does not."""
        return None if self.text is None else CriError(status_code(self.code), self.text)

    def release(self) -> None:
        """End the rule, and let the calls go on that it holds up."""
        self.remove()
        self._end(None)

    def remove(self) -> None:
        """End the rule for calls that come; a second time nothing happens."""
        if self._owner is not None:
            self._owner.drop(self)

    def break_off(self) -> None:
        """Break off the calls that wait: the driver has ended."""
        self._end(CriError(status_code("UNAVAILABLE"), "error reading from server: EOF"))

    def _end(self, error: CriError | None) -> None:
        for ended in self._waiting:
            if ended.done():
                continue
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)


class CsiFaults:
    """The rules of one driver; the newest one that takes a call happens to it."""

    def __init__(self) -> None:
        self._rules: list[CsiFault] = []
        self._struck: list[CsiFault] = []

    def __iter__(self) -> Iterator[CsiFault]:
        return iter(self._rules)

    def add(self, rule: CsiFault) -> CsiFault:
        """Put a rule in force."""
        rule._owner = self
        self._rules.append(rule)
        return rule

    def drop(self, rule: CsiFault) -> None:
        """End a rule."""
        self._rules = [each for each in self._rules if each is not rule]

    def drop_all(self, method: str) -> None:
        """End the rules of that method."""
        self._rules = [each for each in self._rules if each.method != method]

    def struck(self, method: str, request: Any) -> CsiFault | None:
        """The rule that happens to this call; None: it is not disturbed."""
        for rule in reversed(self._rules):
            if rule.takes(method, request):
                if rule not in self._struck:
                    self._struck.append(rule)
                return rule
        return None

    def break_off(self) -> None:
        """Break off every call that waits."""
        for rule in self._struck:
            rule.break_off()

    def end_all(self) -> None:
        """End all rules, and let all calls go on."""
        for rule in {*self._rules, *self._struck}:
            rule.release()
