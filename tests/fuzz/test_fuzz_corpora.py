"""Every target of the fuzzer reads its seeds and a few hundred odd texts made of them.

`tox -e fuzz` goes on from there, led by coverage. What it finds is added to the seeds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_mutations import mutations
from fuzz_targets import CORPORA, TARGETS

from simclock import Rng

COUNT = 300
GOOD = "good-"  # the names of seeds that the reader takes


def seeds_of(name: str) -> list[Path]:
    return sorted((CORPORA / name).iterdir())


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_or_refused_as_documented(name: str) -> None:
    seeds = seeds_of(name)
    taken = {seed.name for seed in seeds if TARGETS[name](seed.read_bytes())}
    good = {seed.name for seed in seeds if seed.name.startswith(GOOD)}
    assert good
    assert taken == good


@pytest.mark.parametrize("name", TARGETS)
def test_odd_texts_are_read_or_refused_as_documented(name: str) -> None:
    seeds = [seed.read_bytes() for seed in seeds_of(name)]
    for data in mutations(seeds, COUNT, Rng(1)):
        try:
            TARGETS[name](data)
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}: of {data!r}")


def test_every_corpus_has_a_target() -> None:
    assert {path.name for path in CORPORA.iterdir()} == set(TARGETS)
