"""Asks our own tests about mutants by lot that no case of the suite runs.

Which test runs which statement is recorded once for a state of the tree (`lot_probed.py`): some
minutes. Then each mutant is a copy of refkubelet, and a pytest of its own runs the quickest of the
tests that run what is changed, until one fails. Programs that tests start are the mutant, too.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Final

from lot_draw import DRAWN, Site
from lot_probed import COUNT, TABLES, TOLD
from mutant_probes import probed, statements
from mutant_record import FOLDER, READ, Record, Seen
from mutant_source import Source, sources
from mutant_tables import MUTATED, ROOT, MutantError
from mutant_tests import FAILED, MUTANT
from unit_mutant_trees import tree

TESTS: Final = "tests/refkubelet"
LISTEN: Final = "import lot_probed\nlot_probed.listen()\n"
WITHIN_S: Final = 20.0
"""So many seconds of tests are asked about a mutant, one at least."""
LONGEST_S: Final = 60
IMPORT: Final = "import"
"""In the place of a test: the mutant could not be imported."""


def record_of_tests(record: Record, jobs: int, folder: Path = FOLDER) -> Record:
    """What each of our tests runs, of the tree as it is. `record`: of the cases."""
    files = tree(ROOT, (*READ, "simclock", "tests"))
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:12]
    file = folder / f"tests-{digest}.jsonl"
    if not file.exists():
        for old in folder.glob("tests-*.jsonl"):
            old.unlink()
        _record(file, len(record.numbers), jobs)
    rows = map(json.loads, file.read_text().splitlines())
    seen = [
        Seen(test, seconds, passed, zlib.decompress(base64.b64decode(text)))
        for test, seconds, passed, text in rows
    ]
    return Record(record.numbers, bytes(len(record.numbers)), seen)


def _record(file: Path, count: int, jobs: int) -> None:
    """Run all tests on refkubelet with probes."""
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="m") as folder:
        tables = Path(folder) / "tables"
        tables.mkdir()
        write_probed(Path(folder), sources(ROOT, MUTATED))
        variables = {COUNT: str(count), TABLES: str(tables), TOLD: str(new)}
        asyncio.run(_pytest(Path(folder), [TESTS, "-p", "lot_probed", f"-n{jobs}"], variables))
    if not new.exists():
        raise MutantError(f"what the tests of {TESTS} run could not be recorded")
    new.rename(file)


def write_probed(folder: Path, texts: Mapping[str, Source]) -> None:
    """refkubelet with probes, in a folder. `texts`: all modules of the record, among which each
    statement has its number."""
    shutil.copytree(ROOT / DRAWN, folder / DRAWN, ignore=shutil.ignore_patterns("__pycache__"))
    count = 0
    for name, source in texts.items():
        before, count = count, count + sum(1 for _ in statements(source))
        if name.startswith(f"{DRAWN}/"):
            text = ast.unparse(probed(source, before))
            (folder / name).write_text(text + LISTEN * (name == f"{DRAWN}/__init__.py"))


@contextmanager
def mutant_tree(site: Site) -> Iterator[Path]:
    """A folder with refkubelet as that mutant: links to all files but the one that is changed."""
    with tempfile.TemporaryDirectory(prefix="m") as name:
        folder = Path(name)
        shutil.copytree(ROOT / DRAWN, folder / DRAWN, copy_function=os.symlink)
        for file, text in site.texts().items():
            (folder / file).unlink()
            (folder / file).write_text(text)
        yield folder


def asked_of(record: Record, numbers: Sequence[int]) -> list[str]:
    """The tests that are asked about a mutant of these statements: the quickest."""
    reaching = sorted(record.reaching(numbers), key=lambda test: record.seen[test].seconds)
    used_s = accumulate(record.seen[test].seconds for test in reaching)
    many = sum(1 for _ in takewhile(lambda s: s <= WITHIN_S, used_s))
    return reaching[: max(many, 1)]


class Ours:
    """Our tests, asked about one mutant after the other."""

    def __init__(self, jobs: int) -> None:
        self._turn = asyncio.Semaphore(jobs)
        self._passes: dict[str, bool] = {}
        """Test -> whether it passes without a mutant, as far as that was tried."""

    async def noticing(self, site: Site, tests: Sequence[str]) -> str:
        """The first of them that fails, and passes without the mutant; "": none."""
        left = list(tests)
        async with self._turn:
            with mutant_tree(site) as folder:
                while left:
                    code, failed = await _pytest(folder, ["-x", *left])
                    if code == 0 or not failed:
                        return IMPORT if code else ""
                    if await self._passes_alone(failed):
                        return failed
                    left = [test for test in left if not test.startswith(failed)]
        return ""

    async def _passes_alone(self, test: str) -> bool:
        if test not in self._passes:
            self._passes[test] = (await _pytest(ROOT, [test]))[0] == 0
        return self._passes[test]


async def noticed_by(
    asked: Sequence[tuple[int, Site, Sequence[str]]], jobs: int
) -> AsyncIterator[tuple[int, str]]:
    """Number and noticing test of each mutant, as soon as it is known. `asked`: number, mutant, and
    the tests to ask."""
    ours = Ours(jobs)

    async def one(number: int, site: Site, tests: Sequence[str]) -> tuple[int, str]:
        return number, await ours.noticing(site, tests)

    for done in asyncio.as_completed([one(*each) for each in asked]):
        yield await done


async def _pytest(
    folder: Path, words: Sequence[str], variables: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run tests on the refkubelet of that folder: the exit code, and the first that failed."""
    path = os.pathsep.join(map(str, [folder, ROOT / "tests" / "mutants", ROOT]))
    with tempfile.TemporaryDirectory(prefix="m") as own:
        told = Path(own) / "failed.jsonl"
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "mutant_plugin",
                "-p",
                "no:cacheprovider",
            ),
            *(f"--timeout={LONGEST_S}", f"--basetemp={own}/t", *words),
            cwd=ROOT,
            env={
                **os.environ,
                **(variables or {}),
                **{MUTANT: "", FAILED: str(told), "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        code = await process.wait()
        failed = told.read_text().splitlines() if told.exists() else []
    return code, json.loads(failed[0]) if failed else ""
