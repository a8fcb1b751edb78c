"""The recorded runs as they lie in the tree: one file a scenario, a heading above each text of it.

A heading is a line `===== cri.jsonl`, or `===== api/cri.jsonl`; below it the text is as it was
recorded, a line a call. Programs that want folders get them, and a run that was recorded anew comes
back:

    python tests/worlds/golden_files.py unpack s02 DIRECTORY
    python tests/worlds/golden_files.py pack DIRECTORY/s02
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from places import GOLDEN

HEADING: Final = re.compile(r"^===== (\S+)\n", re.M)


class NoSections(ValueError):
    """The texts cannot be, or are not, below headings in one file; the message says why."""


def joined(texts: Mapping[str, str]) -> str:
    """One text of all, by name. Raises NoSections for a text that would come back as another."""
    for name, text in texts.items():
        if HEADING.search(text) or not text.endswith("\n"):
            raise NoSections(f"{name}: no heading inside, and a line end at the end, are wanted")
    return "".join(f"===== {name}\n{texts[name]}" for name in sorted(texts))


def parted(whole: str) -> dict[str, str]:
    """What `joined` was made of. Raises NoSections for anything that it does not write."""
    before, *pieces = HEADING.split(whole)
    texts = dict(zip(pieces[::2], pieces[1::2], strict=True))
    if before or joined(texts) != whole:
        raise NoSections("wanted texts below headings `===== NAME`, each once, sorted by name")
    return texts


@cache
def scenario_texts(file: Path) -> Mapping[str, str]:
    """The texts of a scenario by name: `cri.jsonl`, `api/cri.jsonl`."""
    return parted(file.read_text(encoding="utf-8"))


def unpack(scenario: str, directory: Path) -> Path:
    """Write the files of a scenario below a directory of its name; returns that."""
    folder = directory / scenario
    for name, text in scenario_texts(GOLDEN / f"{scenario}.txt").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def pack(folder: Path, directory: Path = GOLDEN) -> Path:
    """Write the file of the scenario whose files are in `folder`, named as that; returns it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    texts = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}
    packed = directory / f"{folder.name}.txt"
    packed.write_text(joined(texts), encoding="utf-8")
    return packed


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["unpack", scenario, directory]:
            print(unpack(scenario, Path(directory)))
        case ["pack", folder]:
            print(pack(Path(folder).resolve()))
        case _:
            sys.exit(__doc__)
