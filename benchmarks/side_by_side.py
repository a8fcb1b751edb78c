"""Compares this tree with an earlier commit, both measured in one run, by workload.

python benchmarks/side_by_side.py [--base COMMIT] [--only NAME ...] [--method instructions|cpu]

Instructions are counted by valgrind (callgrind): how busy the machine is changes them by less than
one in a hundred. Without valgrind it is CPU time, the median of ten pairs of runs. The commit is
that of which the rows in results/benchmarks.json are; they are kept by
`tox -e bench -- --only side_by_side`. Exit code 1 if anything takes more than 1.05 times as much.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))  # also where PYTHONSAFEPATH is set

from compared import WORKLOADS
from measure import Row
from run import keep, tell

TREE: Final = Path(__file__).parents[1]
KEPT: Final = TREE / "results" / "benchmarks.json"
MOST: Final = 1.05
"""What now takes so many times as much as before fails the run."""
PAIRS: Final = 10
COLLECTED: Final = re.compile(r"^==(\d+)== Collected : (\d+)$", re.MULTILINE)
WITHOUT: Final = ("PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH", "PYTHONPATH")


class CannotCompare(Exception):
    """Why an earlier state cannot be measured."""


@dataclass(frozen=True, slots=True)
class Place:
    """A state of the project. `scratch`: a directory for what its runs write."""

    tree: Path
    scratch: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that uses the packages and benchmarks of this state and no others."""
        folders = (self.tree / name for name in ("", "protos", "conformance", "benchmarks"))
        return {
            **{name: value for name, value in os.environ.items() if name not in WITHOUT},
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "PYTHONHASHSEED": "0",
            "PYTHONPYCACHEPREFIX": str(self.scratch / "compiled"),
        }

    def run(self, name: str, *, few: bool, tool: Sequence[str] = ()) -> list[dict[str, float]]:
        """Run a workload here; what `compared` prints of fewer and of more rounds. Raises:
        CannotCompare if it fails."""
        script = str(Path(__file__).with_name("compared.py"))
        command = [*tool, sys.executable, "-P", script, str(self.tree), name]
        ended = subprocess.run(
            [*command, "--few"] if few else command,
            check=False,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.scratch,
        )
        if ended.returncode != 0:
            said = ended.stderr.strip() or f"exit code {ended.returncode}"
            raise CannotCompare(said.splitlines()[-1])
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def instructions(self, name: str, *, few: bool) -> float:
        """Instructions of the rounds. Raises: CannotCompare."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as logs:
            counting = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
            tool = (*counting, f"--log-file={logs}/%p")
            fewer, more = self.run(name, few=few, tool=tool)
            return collected(Path(logs), more["pid"]) - collected(Path(logs), fewer["pid"])

    def cpu_s(self, name: str, *, few: bool) -> float:
        """CPU seconds of the rounds. Raises: CannotCompare."""
        fewer, more = self.run(name, few=few)
        return more["cpu_s"] - fewer["cpu_s"]


def collected(logs: Path, pid: float) -> int:
    """How many instructions callgrind counted in that process."""
    found = COLLECTED.search((logs / f"{pid:.0f}").read_text())
    assert found is not None, f"callgrind's log of {pid:.0f} has no count"
    return int(found[2])


@dataclass(frozen=True, slots=True)
class Compared:
    """What a workload took before and takes now, in `unit`."""

    before: float
    now: float
    ratio: float
    unit: str


def by_instructions(before: Place, now: Place, name: str, *, few: bool) -> Compared:
    """Counted once each: again would be the same."""
    counts = [place.instructions(name, few=few) / 1e6 for place in (before, now)]
    return Compared(*counts, ratio=counts[1] / counts[0], unit="million instructions")


def by_cpu(before: Place, now: Place, name: str, *, few: bool) -> Compared:
    """Medians of pairs: what else the machine does is much the same for both of a pair."""
    pairs = [[place.cpu_s(name, few=few) * 1000 for place in (before, now)] for _ in range(PAIRS)]
    middle = [statistics.median(each) for each in zip(*pairs, strict=True)]
    ratio = statistics.median(new / old for old, new in pairs)
    return Compared(*middle, ratio=ratio, unit="ms of CPU")


METHODS: Final = {"instructions": by_instructions, "cpu": by_cpu}


def rows(
    only: Sequence[str] = tuple(WORKLOADS), *, base: str = "", method: str = "", few: bool = False
) -> list[Row]:
    """A row for each workload, with how many times as much it takes as at the commit `base` (that
    of the kept rows). Without a `method` the best that this machine has. Raises: CannotCompare
    if a workload fails in this tree."""
    base = base or json.loads(KEPT.read_text()).get("side_by_side", {}).get("commit", "")
    method = method or ("instructions" if shutil.which("valgrind") else "cpu")
    at_once = (os.cpu_count() or 1) if method == "instructions" else 1
    try:
        with both(base) as (before, now), ThreadPoolExecutor(at_once) as pool:
            row = partial(_row, before, now, base=base, method=method, few=few)
            return list(pool.map(row, only))
    except NoSuchCommit as error:
        return [_left_out(name, str(error)) for name in only]


class NoSuchCommit(Exception):
    """The commit cannot be had here."""


@contextmanager
def both(base: str) -> Iterator[tuple[Place, Place]]:
    """The state at the commit and this one, until the block ends. Raises: NoSuchCommit."""
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as directory:
        scratch = {name: Path(directory, name) for name in ("before", "now")}
        for each in scratch.values():
            each.mkdir()
        tree = Path(directory, "tree")
        tree.mkdir()
        subprocess.run(("tar", "-x", "-C", str(tree)), input=archive(base), check=True)
        yield Place(tree, scratch["before"]), Place(TREE, scratch["now"])


def archive(commit: str) -> bytes:
    """The files of a commit as a tar archive. Raises: NoSuchCommit."""
    if not commit:
        raise NoSuchCommit("results/benchmarks.json names no commit to compare with")
    try:
        made = subprocess.run(
            ("git", "-C", str(TREE), "archive", "--format=tar", commit),
            check=False,
            capture_output=True,
        )
    except FileNotFoundError:
        raise NoSuchCommit("needs git") from None
    if made.returncode != 0:
        raise NoSuchCommit(f"this copy of the repository does not have {commit[:10]}")
    return made.stdout


def _row(before: Place, now: Place, name: str, *, base: str, method: str, few: bool) -> Row:
    now.run(name, few=few)  # it works, and is compiled
    try:
        before.run(name, few=few)
    except CannotCompare as error:
        return _left_out(name, f"not at {base[:10]}: {error}")
    seen = METHODS[method](before, now, name, few=few)
    return Row(
        what=_what(name),
        value=seen.ratio,
        unit="x",
        limit=MOST,
        remark=f"{seen.before:.1f} (at {base[:10]}) and {seen.now:.1f} {seen.unit}",
    )


def _left_out(name: str, why: str) -> Row:
    return Row(what=_what(name), value=None, unit="x", limit=MOST, remark=why)


def _what(name: str) -> str:
    return f"{WORKLOADS[name].what}: now and before"


def main() -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Compare with an earlier commit.")
    parser.add_argument("--base", default="", metavar="COMMIT", help="(that of the kept rows)")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--method", choices=METHODS, default="", help="(the best there is)")
    parser.add_argument("--few", action="store_true", help="fewer rounds")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep the rows")
    chosen = parser.parse_args()
    seen = rows(chosen.only, base=chosen.base, method=chosen.method, few=chosen.few)
    if chosen.results:
        keep("side_by_side", seen, chosen.results)
    return tell(seen)


if __name__ == "__main__":
    sys.exit(main())
