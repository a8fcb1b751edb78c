"""A handful of runs of chaos (LIFE-030, LIFE-111, LIFE-166, LIFE-203, PLEG-302), and of probes
while syncs take their time (PROBE-014, STAT-012); `python tests/chaos --seeds 1:2000 --jobs 2`,
with `--between` for the latter, does as many as you like."""

from __future__ import annotations

import pytest
from between_case import run_between
from chaos_run import run_seed


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_wrong_when_chaos_is_over(seed: int) -> None:
    assert run_seed(seed) == []


@pytest.mark.parametrize("seed", [1, 12, 22, 40])
def test_no_container_is_stopped_for_a_probe_that_did_not_fail(seed: int) -> None:
    """PROBE-014, STAT-012: starts from 0.1 to 30 s, neighbours that end, are resized, changed."""
    assert run_between(seed) == []
