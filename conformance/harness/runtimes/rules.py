"""Fault rules for all methods at once."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any

from fakecri.cri.services import METHODS


class Rules:
    """Several fault rules as one: a block, or removed and released together."""

    def __init__(self, rules: Iterable[Any]) -> None:
        self._rules = list(rules)

    def remove(self) -> None:
        for rule in self._rules:
            rule.remove()

    def release(self) -> None:
        for rule in self._rules:
            rule.release()

    def __enter__(self) -> Rules:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.remove()


class EveryMethod:
    """The `on` of a fake or a proxy for every method; it has the verb `fails` alone."""

    def __init__(self, faulty: Any, pod: str | None, container: str | None) -> None:
        self._on = [faulty.on(name, pod=pod, container=container) for name in METHODS]

    def fails(self, code: str, text: str) -> Rules:
        return Rules(on.fails(code, text) for on in self._on)
