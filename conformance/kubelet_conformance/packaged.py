"""Files that this package brings: `fixtures`, which are scenarios, manifests and a script for the
fake runtime, and `examples`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent
BROUGHT: Final = ("fixtures", "examples")
STORIES: Final = "stories"
SCENARIOS: Final = ("bugs", STORIES)
"""The directories of fixtures that hold scenarios; each is an area."""


def brought(name: str) -> Path:
    """Where one of these directories is: inside of the package when it is installed, beside it in a
    checkout."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parents[1] / name


def shipped(*areas: str) -> list[Path]:
    """The scenarios of these areas, of all without one; each file has the name of its ID."""
    return [
        file
        for area in areas or SCENARIOS
        for file in sorted((brought("fixtures") / area).glob("*.yaml"))
    ]


def area_of(file: Path) -> str:
    """The area of a scenario of this package; "" for another's."""
    directory = file.absolute().parent
    return directory.name if directory in map(brought("fixtures").joinpath, SCENARIOS) else ""


def copy_out(name: str, target: Path) -> None:
    """Copy one of the directories. Raises OSError; FileExistsError where `target` exists."""
    shutil.copytree(brought(name), target, ignore=shutil.ignore_patterns("__pycache__"))


def missing(files: Iterable[Path]) -> list[str]:
    """A sentence for each of the files that is not there; it says where the package has it."""
    return [f"{file}: no such file{_instead(file)}" for file in files if not file.exists()]


def _instead(file: Path) -> str:
    """How one comes by a file that pages name, and that is not here."""
    if file.stem in {path.stem for path in shipped()}:
        return f"; the package has it among its fixtures: kubelet-conformance run --id {file.stem}"
    for name in BROUGHT:
        if name in file.parts:
            return f"; `kubelet-conformance copy {name}` brings those of the package here"
    return ""
