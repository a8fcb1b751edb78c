"""The seeds of the fuzzer: `tests/data/fuzz-seeds.yaml`, target -> name -> text, `!!binary` if it
is no UTF-8. A seed `good-...` is one that the reader takes.

What was found wrong becomes a seed: `python tests/fuzz/fuzz_seeds.py TARGET NAME FILE`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

SEEDS: Final = Path(__file__).parents[1] / "data" / "fuzz-seeds.yaml"


class _Blocks(yaml.SafeDumper):
    """Texts of several lines as blocks, where YAML can have them so."""


def _as_block(dumper: yaml.SafeDumper, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Blocks.add_representer(str, _as_block)


def seeds(text: str | None = None) -> dict[str, dict[str, bytes]]:
    """All seeds, or those of such a text: target -> name -> bytes."""
    read = yaml.safe_load(SEEDS.read_text(encoding="utf-8") if text is None else text)
    return {
        target: {n: _bytes(seed) for n, seed in named.items()} for target, named in read.items()
    }


def written(every: dict[str, dict[str, bytes]]) -> str:
    """The text of the file with those seeds."""
    texts = {target: {n: _text(seed) for n, seed in every[target].items()} for target in every}
    return yaml.dump(texts, Dumper=_Blocks, allow_unicode=True, width=10**6)


def _bytes(seed: str | bytes) -> bytes:
    return seed.encode() if isinstance(seed, str) else seed


def _text(seed: bytes) -> str | bytes:
    try:
        return seed.decode()
    except UnicodeDecodeError:
        return seed


def add(target: str, name: str, seed: bytes) -> None:
    """Write the file anew, with one more seed."""
    every = seeds()
    every.setdefault(target, {})[name] = seed
    SEEDS.write_text(written(every), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    add(sys.argv[1], sys.argv[2], Path(sys.argv[3]).read_bytes())
