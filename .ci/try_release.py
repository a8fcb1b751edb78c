"""Builds sdist and wheel, and tries each as a new user would: in an environment of its own, from an
empty directory. Ends with 1 and one line for what is wrong.

`python .ci/try_release.py [--keep DIRECTORY]`: with --keep the two files are left there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
IN_WHEEL: Final = (
    "conformance/kubelet_conformance/spec/lifecycle.md",
    "conformance/kubelet_conformance/fixtures/bugs/117373.yaml",
    "conformance/kubelet_conformance/scenario.schema.json",
    "conformance/kubelet_conformance/cases/lifecycle/ending/stop.py",
    "kubelet_conformance/pytest.ini",
    "kubecri/v1/api_pb2.pyi",
    "fakecri/py.typed",
    "simclock/py.typed",
)
NOT_IN_WHEEL: Final = ("tests/", "docs/", "results/", "tools/", "benchmarks/", "protos/")
IN_SDIST: Final = ("tests/conftest.py", "results/gates.json", "CHANGELOG.md", "tox.ini", "LICENSE")
TRIED: Final = (
    ("refkubelet", "--version"),
    ("fakecri", "--help"),
    ("fakekubeapi", "--help"),
    ("kubelet-conformance", "explain", "LIFE-143"),
    ("kubelet-conformance", "run", "-q", "--id", "stop-minimum"),
    ("kubelet-conformance", "run", "-q", "--id", "117373"),
)


def main() -> int:
    """Build, look inside, install, try. 0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as directory:
        place = Path(keep or directory)
        build = [sys.executable, "-m", "build", "--outdir", str(place), str(ROOT)]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        (wheel,), (sdist,) = place.glob("*.whl"), place.glob("*.tar.gz")
        problems = [*wrong_in_wheel(wheel), *wrong_in_sdist(sdist)]
        for file in (wheel, sdist):
            problems += tried(file, Path(directory) / file.suffix[1:])
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{wheel.name} and {sdist.name} install and run")
    return 1 if problems else 0


def wrong_in_wheel(wheel: Path) -> Iterator[str]:
    """What is missing in a wheel, and what has no business there."""
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    yield from (f"{wheel.name}: {name} is missing" for name in IN_WHEEL if name not in names)
    yield from (f"{wheel.name}: {name} is in it" for name in names if name.startswith(NOT_IN_WHEEL))


def wrong_in_sdist(sdist: Path) -> Iterator[str]:
    """What is missing in an sdist."""
    with tarfile.open(sdist) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    yield from (f"{sdist.name}: {name} is missing" for name in IN_SDIST if name not in names)


def tried(file: Path, place: Path) -> Iterator[str]:
    """Install the file with the suite's extra into a new environment below `place`, and run what a
    new user would, in an empty directory; yields what fails."""
    venv.create(place / "venv", with_pip=True)
    programs, empty = place / "venv" / "bin", place / "empty"
    empty.mkdir()
    install = [programs / "pip", "install", "--quiet", f"{file.absolute()}[conformance]"]
    if (failed := outcome(install, empty)) is not None:
        yield f"{file.name}: pip install failed\n{failed}"
        return
    for program, *words in TRIED:
        if (failed := outcome([programs / program, *words], empty)) is not None:
            yield f"{file.name}: {program} {' '.join(words)} failed\n{failed}"


def outcome(command: Sequence[str | Path], directory: Path) -> str | None:
    """The output of a command that failed; None when it succeeded."""
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else done.stdout


if __name__ == "__main__":
    sys.exit(main())
