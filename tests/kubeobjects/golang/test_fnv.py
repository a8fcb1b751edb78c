"""Hashes of texts that are much alike: nothing of an earlier text is in the hash of a later one."""

from __future__ import annotations

import pytest

from kubeobjects.golang.fnv import Fnv32, fnv1a_32
from simclock import Rng


@pytest.mark.parametrize("seed", range(5))
def test_a_hash_does_not_depend_on_the_text_before(seed: int) -> None:
    rng, again = Rng(seed).stream("texts"), Fnv32()
    text = b""
    for _ in range(60):
        at, end = (rng.randrange(len(text) + 1) for _ in range(2))
        new = rng.randbytes(rng.choice((0, 1, 300, 1024)))
        text = text[:at] + new + text[end:]
        assert again.of(text) == fnv1a_32(text)
