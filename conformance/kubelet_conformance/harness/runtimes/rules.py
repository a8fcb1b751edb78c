"""Fault rules for all methods at once."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any

from fakecri.cri.services import METHODS


class Rules:
    """Several fault rules as one. Used as a context manager, they end with the block."""

    def __init__(self, rules: Iterable[Any]) -> None:
        self._rules = list(rules)

    def remove(self) -> None:
        """End all rules; calls that they hold up wait on for `release`."""
        for rule in self._rules:
            rule.remove()

    def release(self) -> None:
        """End all rules and let the calls go on that they hold up."""
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
    """What `on` of a fake or a proxy returns, but for every CRI method; only `fails` is there."""

    def __init__(self, faulty: Any, pod: str | None, container: str | None) -> None:
        self._on = [faulty.on(name, pod=pod, container=container) for name in METHODS]

    def fails(self, code: str, text: str) -> Rules:
        """Make all calls fail with that gRPC code (`UNAVAILABLE`) and text."""
        return Rules(on.fails(code, text) for on in self._on)
