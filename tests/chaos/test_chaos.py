"""A handful of runs of chaos (LIFE-030, LIFE-111, LIFE-166, LIFE-203, PLEG-302); `python
tests/chaos --seeds 1:2000 --jobs 2` does as many as you like."""

from __future__ import annotations

import pytest
from chaos_run import run_seed


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_wrong_when_chaos_is_over(seed: int) -> None:
    assert run_seed(seed) == []
