"""Every target of the fuzzer reads its seeds and a few hundred odd texts made of them.

`tox -e fuzz` goes on from there, led by coverage. A text that a reader trips over is added to the
seeds; those that only reach more of it are kept beside them, and are read here, too.
"""

from __future__ import annotations

from pathlib import Path

import fuzz_kept
import pytest
from fuzz_kept import KEPT, keep, kept_texts
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
def test_what_was_found_is_read_or_refused_as_documented(name: str) -> None:
    for data in kept_texts(name):
        try:
            TARGETS[name](data)
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}: of {data!r}")


def test_what_is_kept_is_there_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fuzz_kept, "KEPT", tmp_path)
    assert kept_texts("manifest") == []
    assert keep("manifest", [b"a", b"\xff", b"a"]) == 2
    before = (tmp_path / "manifest.zip").read_bytes()
    assert sorted(kept_texts("manifest")) == [b"a", b"\xff"]
    keep("manifest", [b"\xff", b"a"])
    assert (tmp_path / "manifest.zip").read_bytes() == before


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
    assert {path.stem for path in KEPT.iterdir()} <= set(TARGETS)
