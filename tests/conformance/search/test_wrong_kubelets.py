"""Wrong kubelets that search finds: each breaks a law about a node that was left alone, in the
world of the seed that found it; the right one breaks none there."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_conformance.search import play, world_of
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.status import generate
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.housekeeping import Housekeeping


async def nothing(*_: Any) -> None:
    """Stands for a step that is left out."""


@pytest.mark.parametrize(
    ("owner", "step", "instead", "seed", "law"),
    [
        # mirrors without a static pod stay
        (Housekeeping, "_delete_orphan_mirrors", nothing, 19, "mirrors-agree"),
        # a sync that failed is not tried again
        (PodWorkers, "_requeue", lambda *_: None, 34, "wanted-pods-go-on"),
        # a phase is as it is computed, also after the end
        (generate, "settled_phase", lambda computed, *_: computed, 33, "phases-go-on"),
        (generate, "settled_phase", lambda computed, *_: computed, 33, "nothing-after-its-end"),
        # a pod that has ended is not told so
        (StatusManager, "terminate_pod", lambda *_: None, 20, "nothing-left"),
    ],
)
def test_a_seed_finds_it(
    monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, instead: Any, seed: int, law: str
) -> None:
    world = world_of(seed)
    assert not play(world).laws
    monkeypatch.setattr(owner, step, instead)
    assert law in play(world).laws
