"""The tree that mutants are tried in: refkubelet with the mutants in it, and its tests.

mutmut writes the mutants of a module, all beside one another in one file; this takes a second or
two for each, so a module that has not changed since is left as it is. Everything else is copied.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor  # noqa: TID251  # no virtual time here
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("kubeobjects", "refkubelet")
READ: Final = (
    *PACKAGES,
    *("simclock", "fakecri", "fakekubeapi", "conformance", "tests"),
)
"""What a verdict may depend on, besides pyproject.toml."""
NOT_READ: Final = ("tests/project/", "tests/mutants/")
THEIRS: Final = "from mutmut.mutation.trampoline import wrap_in_trampoline"
OURS: Final = "from unit_mutant_functions import exchangeable"
"""The decorator that changed modules shall import."""


@dataclass(frozen=True, slots=True)
class Work:
    """A folder with the tree, and what is known."""

    folder: Path

    @property
    def stamp(self) -> Path:
        """Of which files all the rest was made."""
        return self.folder / "tree.json"

    @property
    def reach(self) -> Path:
        """Which tests call what: lines, see unit_mutant_reach.py."""
        return self.folder / "reach.jsonl"

    @property
    def told(self) -> Path:
        """The verdicts: lines, see unit_mutant_trials.py."""
        return self.folder / "told.jsonl"

    @property
    def plan(self) -> Path:
        """What the plug-in is asked to do."""
        return self.folder / "plan.json"

    def names(self, module: str) -> Path:
        """The mutants of a module (a file)."""
        return self.folder / f"{module}.mutants"


def sum_of(file: Path) -> str:
    """A sum of its content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def tree(root: Path = ROOT, parts: Sequence[str] = READ) -> dict[str, str]:
    """Path -> sum, for each file that a verdict may depend on."""
    found = {"pyproject.toml": sum_of(root / "pyproject.toml")}
    for part in parts:
        for file in sorted((root / part).rglob("*")):
            path = str(file.relative_to(root))
            if file.is_file() and "__pycache__" not in file.parts and not path.startswith(NOT_READ):
                found[path] = sum_of(file)
    return found


def prepare(work: Work, modules: Sequence[str], jobs: int) -> None:
    """Make the tree, if anything has changed since it was made."""
    now = {"modules": sorted(modules), "files": tree()}
    before = json.loads(work.stamp.read_text()) if work.stamp.exists() else {}
    if now == before:
        return
    forget(work, before, now)
    work.stamp.unlink(missing_ok=True)
    make(work, modules, jobs)
    work.stamp.write_text(json.dumps(now))


def forget(work: Work, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    """What changed files make untrue: all verdicts, and what is known of tests. Only of the changed
    ones, if these are all that has changed."""
    work.told.unlink(missing_ok=True)
    old, new = (dict(which.get("files", {})) for which in (before, now))  # type: ignore[call-overload]
    changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    tests_only = all(Path(path).name.startswith("test_") for path in changed)
    if work.reach.exists() and tests_only and before.get("modules") == now["modules"]:
        work.reach.write_text(without(work.reach.read_text(), changed))
    else:
        work.reach.unlink(missing_ok=True)


def without(lines: str, files: Collection[str]) -> str:
    """What is known of tests, but nothing of tests in these files.

    >>> without('{"test": "t.py::a"}\\n{"test": "u.py::b"}\\n', {"t.py"})
    '{"test": "u.py::b"}\\n'
    """
    kept = [
        line
        for line in lines.splitlines(keepends=True)
        if line.endswith("\n") and json.loads(line)["test"].partition("::")[0] not in files
    ]
    return "".join(kept)


def make(work: Work, modules: Sequence[str], jobs: int) -> None:
    """The tree, with mutants of these modules (files)."""
    for part in (*PACKAGES, "tests"):
        for file in sorted((ROOT / part).rglob("*")):
            path = str(file.relative_to(ROOT))
            if file.is_file() and "__pycache__" not in file.parts and path not in modules:
                copy(file, work.folder / path)
                work.names(path).unlink(missing_ok=True)
    copy(ROOT / "pyproject.toml", work.folder / "pyproject.toml")
    with ProcessPoolExecutor(jobs) as pool:
        for _ in pool.map(partial(change, work), modules):
            pass


def copy(file: Path, target: Path) -> None:
    """Unless it is the same."""
    if not target.exists() or target.read_bytes() != file.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def change(work: Work, module: str) -> None:
    """Write the mutants of a module (a file), unless those of this very text are there."""
    source, names = ROOT / module, work.names(module)
    known = json.loads(names.read_text()) if names.exists() else {}
    if known.get("sum") == sum_of(source):
        return
    from mutmut.mutation.file_mutation import mutate_file_contents

    changed = mutate_file_contents(module, source.read_text())
    target = work.folder / module
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(changed.code.replace(THEIRS, OURS, 1))
    dotted = module.removesuffix(".py").replace("/", ".")
    mutants = [f"{dotted}.{name}" for name in changed.mutant_names]
    names.write_text(json.dumps({"sum": sum_of(source), "mutants": mutants}))


def mutants_of(work: Work, modules: Sequence[str]) -> list[str]:
    """The names of all mutants of these modules (files)."""
    found = (json.loads(work.names(module).read_text()) for module in modules)
    return [mutant for each in found for mutant in each["mutants"]]
