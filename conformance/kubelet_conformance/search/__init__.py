"""Search for bugs of kubelets that nobody has written down: worlds are drawn from seeds, played,
and held against the laws; one that breaks a law is made small, and becomes a scenario file.

`world_of` draws a world, `play` plays it, `shrink` makes it small, `search` does so for many seeds;
`kubelet-conformance search` is its command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from kubelet_conformance.search.campaign import Plan as Plan
    from kubelet_conformance.search.campaign import Summary as Summary
    from kubelet_conformance.search.campaign import search as search
    from kubelet_conformance.search.drawing import world_of as world_of
    from kubelet_conformance.search.drawing.world import World as World
    from kubelet_conformance.search.playing import Verdict as Verdict
    from kubelet_conformance.search.playing import play as play
    from kubelet_conformance.search.shrinking import shrink as shrink
else:  # the command answers at once
    __getattr__, __dir__ = face(
        __name__,
        {
            "campaign": "Plan Summary search",
            "drawing": "world_of",
            "drawing.world": "World",
            "playing": "Verdict play",
            "shrinking": "shrink",
        },
    )
