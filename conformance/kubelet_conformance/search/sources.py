"""Where the worlds of a search come from: drawn from seeds, or those of a small world, whole."""

from __future__ import annotations

from typing import Final

from kubelet_conformance.search.drawing import world_of as drawn
from kubelet_conformance.search.drawing.world import World

WHOLE: Final = "whole "
"""So begins the size of the worlds of a small one; behind it is its name."""


def world_of(seed: int, size: str = "small") -> World:
    """The world of that seed and size; of a small world whole (`whole NAME`) that of that number.
    Raises KeyError for another size, and CannotCount."""
    if size.startswith(WHOLE):
        # Here, not above: few searches are for these, and they play worlds to know what is in them.
        from kubelet_conformance.search.whole.whole_world import whole_world

        return whole_world(size.removeprefix(WHOLE)).world(seed)
    return drawn(seed, size)  # type: ignore[arg-type]  # one of them, or a KeyError
