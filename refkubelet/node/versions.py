"""A runtime's version as the Node object shows it, without the suffix of a distribution. Pure.

Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go: newRuntimeVersion; apimachinery
pkg/util/version: ParseSemantic, ParseGeneric.
"""

from __future__ import annotations

import re
from typing import Final

UNKNOWN: Final = "Unknown"
_WORDS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(r"\s*v?(?P<numbers>[0-9]+(?:\.[0-9]+)*)(?P<rest>.*)")
_REST: Final = re.compile(rf"(?P<kept>(?:-(?P<pre>{_WORDS}))?(?:\+{_WORDS})?)\s*")


def runtime_version(name: str, version: str) -> str:
    """containerRuntimeVersion, `<runtime>://<version>` (NODE-033); `Unknown` for a version that
    does not begin with numbers.

    >>> runtime_version("containerd", "1.6.20~ds1"), runtime_version("containerd", "v2.1.0-rc.1")
    ('containerd://1.6.20', 'containerd://2.1.0-rc.1')
    """
    semantic = _shown(version)
    return UNKNOWN if semantic is None else f"{name}://{semantic}"


def _shown(text: str) -> str | None:
    """A semantic version unchanged; of another version the leading numbers; else None."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    numbers = match["numbers"].split(".")
    rest = _REST.fullmatch(match["rest"])
    if len(numbers) == 3 and rest is not None and not any(map(_has_zero_in_front, numbers)):
        words = (rest["pre"] or "").split(".")
        if not any(word.isdecimal() and _has_zero_in_front(word) for word in words):
            return ".".join(numbers) + rest["kept"]
    if len(numbers) < 2 or _has_zero_in_front(numbers[0]):
        return None
    return ".".join(str(int(number)) for number in numbers)


def _has_zero_in_front(number: str) -> bool:
    return len(number) > 1 and number.startswith("0")
