"""The names of all laws that a world can break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubelet_conformance.laws import LAWS
from kubelet_conformance.search.playing import OWN_LAWS
from kubelet_conformance.search.records import SearchError
from kubeobjects.strict.errors import did_you_mean

NAMES: Final = (*(law.name for law in LAWS), *OWN_LAWS)


def laws_named(names: Sequence[str]) -> tuple[str, ...]:
    """These laws, each once. Raises SearchError for one that is none."""
    for name in names:
        if name not in NAMES:
            hint = did_you_mean(name, NAMES) or f" (wanted one of {', '.join(NAMES)})"
            raise SearchError(f"--law {name}: no such law{hint}")
    return tuple(dict.fromkeys(names))
