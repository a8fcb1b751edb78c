"""Environments as `pip install '.[EXTRA]'` makes them, of what is installed here: a fresh virtual
environment with links to the files of just those distributions, and their commands. Made in a
second, without a network; what an extra does not bring cannot be imported there."""

from __future__ import annotations

import os
import venv
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS: Final = "refkubelet"


def install(place: Path, extras: Sequence[str], beside: Sequence[str] = ()) -> Path:
    """Make the environment at `place`; returns the directory of its commands. `beside`: further
    distributions that a user has. Raises PackageNotFoundError for what is not installed here."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(place)
    (packages,) = place.glob("lib/python*/site-packages")
    for name in sorted(brought(extras, beside)):
        found = distribution(name)
        for file in found.files or ():
            target = packages / file
            if ".." not in file.parts and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(os.path.abspath(str(found.locate_file(file))))
        for command in found.entry_points.select(group="console_scripts"):
            script = place / "bin" / command.name
            script.write_text(
                f"#!{place}/bin/python\nimport sys\n"
                f"from {command.module} import {command.attr}\nsys.exit({command.attr}())\n"
            )
            script.chmod(0o755)
    return place / "bin"


def brought(extras: Sequence[str], beside: Sequence[str] = ()) -> set[str]:
    """The names of all distributions that `pip install` brings for these extras, ours included."""
    todo = [Requirement(f"{OURS}[{','.join(extras)}]"), *map(Requirement, beside)]
    seen: set[tuple[str, str]] = set()
    while todo:
        wanted = todo.pop()
        for extra in ("", *sorted(wanted.extras)):
            if (key := (canonicalize_name(wanted.name), extra)) not in seen:
                seen.add(key)
                todo += needed(_found(wanted.name), extra)
    return {name for name, _ in seen}


@cache
def _found(name: str) -> Distribution:
    return distribution(name)


def needed(of: Distribution, extra: str) -> Iterator[Requirement]:
    """What a distribution needs on this machine: always, or (with `extra`) for that extra."""
    for text in of.requires or ():
        wanted = Requirement(text)
        if wanted.marker is None:
            if not extra:
                yield wanted
        elif wanted.marker.evaluate({"extra": extra}):
            yield wanted
