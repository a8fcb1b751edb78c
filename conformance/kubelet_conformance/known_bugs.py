"""Bugs that kubelets of some versions are known to have: which versions, and where that is told.

A case or a scenario that shows one is expected to fail on those kubelets, and only on those.
"""

from __future__ import annotations

import re

from msgspec import Struct

__all__ = ["KnownBug", "Release", "release_of"]

Release = tuple[int, int, int]
"""A version of Kubernetes: (1, 31, 14)."""


class KnownBug(Struct, frozen=True):
    """One bug of kubelets. Raises ValueError for `since` or `fixed` that are no versions."""

    upstream: str
    """Its number at kubernetes/kubernetes, `122890`; other words name another place, and "" is a
    bug that nobody is known to have reported."""
    what: str
    """What such a kubelet does wrong, in one sentence."""
    fixed: str = ""
    """The first version without it, `1.32`; of a fix that older branches got, too, the first one of
    each: `1.30.3, 1.31.1, 1.32`. "": no version is without it."""
    since: str = ""
    """The first version with it; "": no version is known to be older than the bug."""
    ends_kubelet: bool = False
    """Such a kubelet ends in the midst of the case."""
    by_chance: bool = False
    """It shows in some runs and not in others: a case that passes proves nothing."""

    def __post_init__(self) -> None:
        for text in (*self.fixed.split(","), self.since):
            if text and not release_of(text.strip()):
                raise ValueError(
                    f"known bug {self.upstream!r}: {text!r}: wanted a version such as 1.32"
                )

    def is_in(self, release: Release) -> bool:
        """Whether a kubelet of that version has it.

        >>> bug = KnownBug("1", "it stops", since="1.30", fixed="1.31.4, 1.32")
        >>> [bug.is_in((1, *rest)) for rest in ((29, 9), (30, 9), (31, 3), (31, 4), (32, 0))]
        [False, True, True, False, False]
        """
        began = release_of(self.since)
        if began and release < began:
            return False
        fixes = [fix for text in self.fixed.split(",") if (fix := release_of(text.strip()))]
        same_minor = [fix for fix in fixes if fix[:2] == release[:2]]
        return not any(fix <= release for fix in same_minor or fixes)

    def __str__(self) -> str:
        where = (
            f"kubernetes/kubernetes#{self.upstream}" if self.upstream.isdigit() else self.upstream
        )
        until = f"fixed in {self.fixed}" if self.fixed else "not fixed"
        return f"{self.what} ({where or 'no report known'}, {until})"


def release_of(text: str) -> Release | None:
    """The first version in a text, patch release 0 where it tells none; None without a version.

    >>> release_of("Kubernetes v1.36.2"), release_of("1.32"), release_of("")
    ((1, 36, 2), (1, 32, 0), None)
    """
    match = re.search(r"(?:^|[ v])(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?\b", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None
