"""A run of the suite on refkubelet with one mutant of tests/mutants, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
RUN: Final = """\
import sys
from mutant_import import become
from mutant_tables import read_all

if sys.argv[1]:
    (mutant,) = read_all([sys.argv[1]])
    become(mutant.texts())
from kubelet_conformance.cli import main

sys.exit(main(["run", *sys.argv[2:]]))
"""


def planted_run(mutant: str, *words: str) -> int:
    """The exit code of `kubelet-conformance run` with these words. `mutant`: "" for none."""
    folders = (HERE, HERE.parent, HERE.parents[1])
    return subprocess.run(
        [sys.executable, "-c", RUN, mutant, "--jobs", "1", "-q", "--traces", "all", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        stdout=subprocess.DEVNULL,
        check=False,
    ).returncode
