"""Remembers what was found out about a value that nobody changes: a pod, a pod's status. Pure.

What is asked of a pod for each of its containers must not look through all of them each time: a pod
may have thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar

A = TypeVar("A")
R = TypeVar("R")

REMEMBERED: Final = 64
"""How many values, the newest ones; each is kept alive meanwhile."""


def by_identity(function: Callable[[A], R]) -> Callable[[A], R]:
    """`function`, called once for the same object. For functions of a value that never changes; the
    answer is shared, so nobody may change it either."""
    answers: dict[int, tuple[A, R]] = {}

    @wraps(function)
    def remembered(value: A) -> R:
        cached = answers.get(id(value))
        if cached is not None and cached[0] is value:
            return cached[1]
        if len(answers) >= REMEMBERED:
            del answers[next(iter(answers))]
        answers[id(value)] = (value, answer := function(value))
        return answer

    return remembered
