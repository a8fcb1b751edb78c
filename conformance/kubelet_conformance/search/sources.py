"""Where the worlds of a search come from: drawn from seeds, or those of a small world, whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubelet_conformance.search.drawing import world_of as drawn
from kubelet_conformance.search.drawing.world import World

SEPARATOR: Final = "; "
"""Between a size and the weights under which its worlds are drawn."""
WHOLE: Final = "whole "
"""So begins the size of the worlds of a small one; behind it is its name."""


def world_of(seed: int, size: str = "small") -> World:
    """The world of that seed and size, which may have weights (`with_weights`); of a small world
    whole (`whole NAME`) that of that number. Raises KeyError for another size, and CannotCount."""
    if size.startswith(WHOLE):
        # Here, not above: few searches are for these, and they play worlds to know what is in them.
        from kubelet_conformance.search.whole.whole_world import whole_world

        return whole_world(size.removeprefix(WHOLE)).world(seed)
    plain, weights = weights_in(size)
    return drawn(seed, plain, weights)  # type: ignore[arg-type]  # one of them, or a KeyError


def with_weights(size: str, weights: Mapping[str, float]) -> str:
    """The size of worlds that are drawn with these weights (factors on how often kinds are there).

    >>> with_weights("small", {"drops": 1.5, "edits": 1.0})
    'small; drops 1.5'
    """
    other = [f"{kind} {weight:g}" for kind, weight in weights.items() if weight != 1]
    return SEPARATOR.join([size, ", ".join(other)]) if other else size


def weights_in(size: str) -> tuple[str, dict[str, float]]:
    """The plain size, and its weights.

    >>> weights_in("small; drops 1.5, half calls 2")
    ('small', {'drops': 1.5, 'half calls': 2.0})
    """
    plain, _, text = size.partition(SEPARATOR)
    pairs = [each.rpartition(" ") for each in text.split(", ") if each]
    return plain, {kind: float(weight) for kind, _, weight in pairs}
