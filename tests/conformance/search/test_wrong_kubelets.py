"""Wrong kubelets that search finds: each breaks a law about a node that was left alone, in the
world of the seed that found it; the right one breaks none there."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_conformance.search import play, world_of
from refkubelet.admission import predicates
from refkubelet.admission.resource_fit import shortages
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.status import generate
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.housekeeping import Housekeeping


async def nothing(*_: Any) -> None:
    """Stands for a step that is left out."""


def one_more(pod: Any, others: Any, *rest: Any) -> Any:
    """What a pod lacks when one of the others is forgotten."""
    return shortages(pod, others[1:], *rest)


@pytest.mark.parametrize(
    ("owner", "step", "instead", "seed", "law"),
    [
        # mirrors without a static pod stay
        (Housekeeping, "_delete_orphan_mirrors", nothing, 10, "mirrors-agree"),
        # a sync that failed is not tried again
        (PodWorkers, "_requeue", lambda *_: None, 23, "wanted-pods-go-on"),
        # a phase is as it is computed, also after the end
        (generate, "settled_phase", lambda computed, *_: computed, 23, "phases-go-on"),
        (generate, "settled_phase", lambda computed, *_: computed, 300, "nothing-after-its-end"),
        # a node has room for one pod more than it has
        (predicates, "shortages", one_more, 60, "no-more-than-fits"),
        # a pod that has ended is not told so
        (StatusManager, "terminate_pod", lambda *_: None, 3, "nothing-left"),
    ],
)
def test_a_seed_finds_it(
    monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, instead: Any, seed: int, law: str
) -> None:
    world = world_of(seed)
    assert not play(world).laws
    monkeypatch.setattr(owner, step, instead)
    assert law in play(world).laws
