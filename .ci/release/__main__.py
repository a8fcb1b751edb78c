"""Tries all that an upload to PyPI needs, and says what remains. `tox -e release` runs it.

A release is made of this tree in a temporary directory: version, change log, sdist and wheel. They
are built twice (the second time of the sdist) and must be the same; what is in them is looked at;
each extra is installed into a fresh environment and used; the image and the steps of the action are
tried.
Nothing here is changed, and nothing leaves this machine.

`--prepare` makes version and change log in this tree instead, for the commit of the release.
`--keep DIRECTORY` leaves the files there that were tried.

Ends with 1, and the problems last, when there are any.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import files
import installs
import version
from programs import Failed, python, run, say

ROOT: Final = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tox -e release --", description=__doc__)
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="leave sdist and wheel there"
    )
    parser.add_argument("--prepare", action="store_true", help="make version and change log here")
    options = parser.parse_args()
    if options.prepare:
        made = version.prepare(ROOT)
        print(f"this tree is {made}: commit it, and tag the commit v{made}")
        return 0
    *before, keep, upload = steps_left(ROOT)
    if options.keep and before:
        parser.error(f"--keep makes files to publish; before: {', then: '.join(before)}")
    with tempfile.TemporaryDirectory(prefix="refkubelet-release-") as directory:
        try:
            problems, left_out = asyncio.run(attempt(Path(directory), options.keep))
        except Failed as failed:
            problems, left_out = [str(failed)], []
    for text in left_out:
        say(f"left out: {text}")
    for problem in problems:
        print(f"\nwrong: {problem}", file=sys.stderr)
    if not problems:
        say(f"{version.next_version(ROOT)} works. What remains (docs/versions.md):")
        print(*(f"        {step}" for step in (*before, keep, upload)), sep="\n")
    return 1 if problems else 0


def steps_left(tree: Path) -> Iterator[str]:
    """What is to be done until the release of a tree is out, in order."""
    if version.UNKNOWN in version.repository(tree):
        yield "python tools/repository.py URL    (says where the project lies)"
    if version.project(tree)["version"] != version.next_version(tree):
        yield "tox -e release -- --prepare    (then commit and tag)"
    yield "tox -e release -- --keep dist"
    yield "TWINE_USERNAME=__token__ TWINE_PASSWORD=... .tox/release/bin/twine upload dist/*"


async def attempt(place: Path, keep: Path | None) -> tuple[list[str], list[str]]:
    """Make the release in an empty directory. Returns what is wrong, and what was not tried."""
    tree, told = await prepared(place / "first")
    problems = [*version.wrong_change_log(tree, told)]
    say(f"{version.next_version(tree)}: change log of {len(told)} fragments")
    built = await build("build", tree, place / "dist")
    again = await build("build again", unpacked(built[1], place / "second"), place / "again")
    for one, other in zip(built, again, strict=True):
        problems += files.differences(one, other)
        problems += files.wrong_content(one.name, files.names_in(one), one.stat().st_size)
    problems += files.wrong_metadata(built[0])
    say("both built twice: " + ", ".join(f"{f.name} {f.stat().st_size // 1000} kB" for f in built))
    try:
        await run("metadata", python("-m", "twine", "check", "--strict", *built), place)
    except Failed as failed:
        problems.append(str(failed))
    of_installs, of_action, (of_image, left_out) = await asyncio.gather(
        installs.try_all(*built, tree, place / "installs"),
        installs.try_action(built[0], tree, place / "action"),
        installs.try_image(tree, place),
    )
    problems += [*of_installs, *of_action, *of_image]
    if keep is not None and not problems:
        keep.mkdir(parents=True, exist_ok=True)
        for file in built:
            shutil.copy(file, keep)
    return problems, left_out


async def prepared(place: Path) -> tuple[Path, list[str]]:
    """A copy of this tree (what an sdist of it has) as it is at the release, and the texts of the
    fragments that its change log was made of."""
    words = ("-m", "build", "--sdist", "--outdir", place, ROOT)
    await run("copy the tree", python(*words), ROOT)
    (sdist,) = place.glob("*.tar.gz")
    tree = unpacked(sdist, place)
    told = [file.read_text() for file in version.fragments(tree)]
    version.prepare(tree)
    return tree, told


async def build(step: str, tree: Path, place: Path) -> tuple[Path, Path]:
    """Wheel and sdist of a tree."""
    await run(step, python("-m", "build", "--outdir", place, tree), tree)
    (wheel,), (sdist,) = place.glob("*.whl"), place.glob("*.tar.gz")
    return wheel, sdist


def unpacked(sdist: Path, place: Path) -> Path:
    with tarfile.open(sdist) as content:
        content.extractall(place, filter="data")
    (tree,) = (found for found in place.iterdir() if found.is_dir())
    return tree


if __name__ == "__main__":
    sys.exit(main())
