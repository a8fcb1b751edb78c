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
from fuzz_seeds import SEEDS, seeds, written
from fuzz_targets import TARGETS

from simclock import Rng

COUNT = 300
GOOD = "good-"  # the names of seeds that the reader takes


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_or_refused_as_documented(name: str) -> None:
    texts = seeds()[name]
    taken = {seed for seed, text in texts.items() if TARGETS[name](text)}
    good = {seed for seed in texts if seed.startswith(GOOD)}
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
    for data in mutations([*seeds()[name].values()], COUNT, Rng(1)):
        try:
            TARGETS[name](data)
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}: of {data!r}")


def test_seeds_are_written_as_they_were_read() -> None:
    """A seed that YAML cannot hold as text is there, too: bytes that are no UTF-8, line ends."""
    assert written(seeds()) == SEEDS.read_text(encoding="utf-8")
    odd = {"manifest": {"good-a": b"\xff\n", "b": b"a\r\nb\x00\n\n", "c": b" \n", "d": b""}}
    assert seeds(written(odd)) == odd


def test_every_corpus_has_a_target() -> None:
    assert set(seeds()) == set(TARGETS)
    assert {path.stem for path in KEPT.iterdir()} <= set(TARGETS)
