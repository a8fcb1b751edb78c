"""Nothing that is for one pod alone is given twice, whatever becomes of the configuration between
two kubelets; `python tests/chaos --given --seeds 1:2000 --jobs 2` does as many runs as you like."""

from __future__ import annotations

import pytest
from given_run import run_given


@pytest.mark.parametrize("seed", range(16))
def test_nothing_is_given_twice_LIFE_147_CG_081_CG_082_CG_084(seed: int) -> None:
    assert run_given(seed).wrong == []
