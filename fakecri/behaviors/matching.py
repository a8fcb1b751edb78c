"""Which calls and containers a rule is about: by pod, container, image, attempt. Pure.

Names may be patterns (`web*`). A field that a rule leaves open matches everything; a field that a
call does not have (an image pull has no container) matches only an open one.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from types import NoneType
from typing import Final, NamedTuple

from msgspec import Struct

PATTERN: Final = frozenset("*?[")
"""A name with one of these is a pattern."""


class Subject(NamedTuple):
    """What a call or a container is about; empty where it has none."""

    pod: str = ""
    namespace: str = ""
    uid: str = ""
    container: str = ""
    image: str = ""
    attempt: int | None = None

    @property
    def handles(self) -> set[tuple[str, str]]:
        """What rules may have hold of it by."""
        return {
            ("", ""),
            ("pod", self.pod),
            ("pod", self.uid),
            ("container", self.container),
            ("image", self.image),
        }


class Match(Struct, frozen=True):
    """The open or wanted fields of a rule. `pod` may name the pod or its UID."""

    pod: str | None = None
    container: str | None = None
    image: str | None = None
    attempt: int | None = None

    def __post_init__(self) -> None:
        for name in ("pod", "container", "image"):
            value = getattr(self, name)
            if not isinstance(value, str | NoneType):
                raise TypeError(f"{name}: wanted a name or a pattern, got {value!r}")
        if not isinstance(self.attempt, int | NoneType) or isinstance(self.attempt, bool):
            raise TypeError(f"attempt: wanted a whole number, got {self.attempt!r}")

    @property
    def handle(self) -> tuple[str, str]:
        """One of `Subject.handles` of every subject that fits: the first name that is no pattern,
        else two empty texts."""
        for field in ("pod", "container", "image"):
            name = getattr(self, field)
            if name and PATTERN.isdisjoint(name):
                return field, name
        return "", ""

    def fits(self, subject: Subject) -> bool:
        return not self.differences(subject)

    def differences(self, subject: Subject) -> list[str]:
        """What keeps `subject` from fitting, a text each (`container: wanted 'web', got 'x'`)."""
        differences = []
        if self.pod is not None and not (_like(subject.pod, self.pod) or subject.uid == self.pod):
            differences.append(f"pod: wanted {self.pod!r}, got {subject.pod!r}")
        if self.container is not None and not _like(subject.container, self.container):
            differences.append(f"container: wanted {self.container!r}, got {subject.container!r}")
        if self.image is not None and not _like(subject.image, self.image):
            differences.append(f"image: wanted {self.image!r}, got {subject.image!r}")
        if self.attempt is not None and subject.attempt != self.attempt:
            differences.append(f"attempt: wanted {self.attempt}, got {subject.attempt}")
        return differences

    def __str__(self) -> str:
        selectors = {
            "pod": self.pod,
            "container": self.container,
            "image": self.image,
            "attempt": self.attempt,
        }
        return ", ".join(f"{k}={v!r}" for k, v in selectors.items() if v is not None) or "anything"


def require_count(name: str, value: object, least: int = 1, what: str = "1 or more") -> None:
    """Check that a value is a whole number from `least` on; `what` says so in words. Raises
    ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: wanted {what}, got {value!r}")


def _like(value: str, pattern: str) -> bool:
    return value == pattern or fnmatchcase(value, pattern)
