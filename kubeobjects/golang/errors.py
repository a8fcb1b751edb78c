"""Errors as Go programs of Kubernetes tell them. Pure.

Upstream: apimachinery: pkg/util/errors: aggregate.
"""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(errors: Iterable[str]) -> str:
    """Several errors as one text, equal ones once, in brackets if they are more than one.

    >>> aggregate(["a"]), aggregate(["a", "b", "a"]), aggregate(["a", "a"])
    ('a', '[a, b]', 'a')
    """
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
