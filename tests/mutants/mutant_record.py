"""Which statements each case reaches, which values conditions have there, and how long it takes:
recorded once for a state of the tree.

All cases are run on refkubelet as it is, but with probes (`mutant_probes.py`). What was seen lies
in `mutants/lot/`, and is used as long as no file has changed.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib
import io
import json
import pkgutil
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cached_property, partial, reduce
from heapq import heapify, heappop, heappush
from itertools import chain
from operator import or_
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from mutant_import import become
from mutant_probes import At, Condition, conditions, heard, new_table, probed, statements
from mutant_source import sources
from mutant_tables import MUTATED, ROOT
from suite_run import CONTEXT, Verdict, a_home, settle_in, shares, tried, used_s, warmed_up
from unit_mutant_trees import tree

FOLDER: Final = ROOT / "mutants" / "lot"
READ: Final = ("conformance", "fakecri", "fakekubeapi", "fixtures", "kubeobjects", "refkubelet")
"""What an answer may depend on, besides simclock."""


Part = Callable[[], Iterator[tuple[str, bool]]]
"""Runs cases, or plays worlds: the name of each as soon as it is done, and whether it counts."""
Parts = Callable[[int], list[Part]]
"""Makes so many parts of all that is to be done."""


class Seen(Struct, frozen=True):
    """What a case does on refkubelet as it is."""

    case: str
    seconds: float
    """Of processor time."""
    passed: bool
    """If not, it says nothing about mutants."""
    reached: bytes
    """Of each statement, whether it is reached; then, of each condition, whether it is false there
    at some time, and whether true."""


class Record:
    """What all cases do."""

    def __init__(
        self,
        numbers: dict[At, int],
        at_import: bytes,
        seen: Sequence[Seen],
        values: Mapping[Condition, int] = MappingProxyType({}),
    ) -> None:
        self.numbers = numbers
        """Of all statements in functions."""
        self.values = values
        """Of all conditions there, that of being false; the next one is that of being true."""
        self.seen = {each.case: each for each in seen if each.passed}
        self._at_import = at_import

    def reaching(self, wanted: Collection[int]) -> list[str]:
        """The cases that reach one of these statements, or in which a condition has one of these
        values; no other can notice a change there."""
        return [
            case
            for case, each in self.seen.items()
            if any(each.reached[number] for number in wanted)
        ]

    @cached_property
    def in_order(self) -> Mapping[str, int]:
        """The place of each case when they are asked one after the other: each time the one that
        reaches most in its time that none before has reached; then the fastest first."""
        left = {case: _bits(each.reached) for case, each in self.seen.items()}
        reached, order = 0, dict[str, int]()
        # What a case reaches that is new can only become less: most need no second look.
        heap = [(-bits.bit_count() / self.seen[case].seconds, case) for case, bits in left.items()]
        heapify(heap)
        while heap:
            case = heappop(heap)[1]
            new = (left[case] & ~reached).bit_count()
            share = -new / self.seen[case].seconds
            if new and heap and share > heap[0][0]:
                heappush(heap, (share, case))
            elif new:
                order[case] = len(order)
                reached |= left[case]
        others = sorted(left.keys() - order.keys(), key=lambda case: self.seen[case].seconds)
        return {case: place for place, case in enumerate([*order, *others])}

    def is_imported(self, wanted: Collection[int]) -> bool:
        """Whether one of them is reached while modules are imported."""
        return any(self._at_import[number] for number in wanted)

    def never(self) -> set[At]:
        """The statements that no case reaches, nor the import."""
        return {at for at, number in self.numbers.items() if self._ever[number] == "0"}

    def one_sided(self) -> Iterator[tuple[Condition, bool]]:
        """The conditions that have one value only, in all cases: with that value."""
        for condition, number in self.values.items():
            was_false, was_true = (value == "1" for value in self._ever[number : number + 2])
            if was_false != was_true:
                yield condition, was_true

    @cached_property
    def _ever(self) -> str:
        """Of each number, whether any case or the import notes it: 0 or 1."""
        tables = [self._at_import, *(each.reached for each in self.seen.values())]
        return f"{reduce(or_, map(_bits, tables)):0{len(self._at_import)}b}"


def record_of(seed: int, jobs: int, folder: Path = FOLDER) -> Record:
    """Of the tree as it is, with this seed of the cases."""
    return _kept(folder, "reach", str(seed), partial(_cases_of, seed), jobs)


def record_of_worlds(seeds: range, jobs: int, folder: Path = FOLDER) -> Record:
    """The same of the worlds that search draws from these seeds, by the names `world-1`, ..."""
    name = f"{seeds.start}-{seeds.stop - 1}"
    return _kept(folder, "worlds", name, partial(_worlds_of, seeds), jobs)


def _kept(folder: Path, kind: str, name: str, parts: Parts, jobs: int) -> Record:
    """The record of that kind and name, made where there is none of the tree as it is."""
    file = folder / f"{kind}-{name}-{digest()}.jsonl"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{kind}-*.jsonl"):
            old.unlink()
        process = CONTEXT.Process(target=_record, args=(file, parts, jobs))
        process.start()
        process.join()  # here nothing shall have probes
    if not file.exists():
        raise RuntimeError("what is reached could not be recorded")
    every = sources(ROOT, MUTATED).values()
    numbers = {at: n for n, at in enumerate(chain.from_iterable(map(statements, every)))}
    where = enumerate(chain.from_iterable(map(conditions, every)))
    values = {condition: len(numbers) + 2 * n for n, condition in where}
    at_import, *rows = map(json.loads, file.read_text().splitlines())
    seen = [Seen(case, seconds, passed, _table(text)) for case, seconds, passed, text in rows]
    return Record(numbers, _table(at_import), seen, values)


def digest(root: Path = ROOT) -> str:
    """A sum of all that an answer may depend on."""
    files = tree(root, (*READ, "simclock"))
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:12]


def _record(file: Path, parts: Parts, jobs: int) -> None:
    """Become refkubelet with probes, do all parts, and write down what they reach."""
    become(_all_probed())
    _import_all()
    at_import = _text(heard())
    warmed_up(1)
    with a_home() as home, warnings.catch_warnings():
        settle_in(home)  # as the processes of mutants
        warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads
        with CONTEXT.Pool(jobs) as pool:
            every = pool.imap_unordered(_recorded, parts(8 * jobs))
            rows = [row for found in every for row in found]
    new = file.with_suffix(".new")
    new.write_text("".join(json.dumps(row) + "\n" for row in [at_import, *sorted(rows)]))
    new.rename(file)


def _all_probed() -> dict[str, ast.Module]:
    """All modules with probes, by file, and a table for these: first all statements."""
    every = sources(ROOT, MUTATED)
    place, value = 0, sum(1 for source in every.values() for _ in statements(source))
    trees = {}
    for name, source in every.items():
        counts = sum(1 for _ in statements(source)), sum(1 for _ in conditions(source))
        trees[name] = probed(source, place, value)
        place, value = place + counts[0], value + 2 * counts[1]
    new_table(value)
    return trees


def _import_all() -> None:
    """What is imported late otherwise: else what happens at its import would be a case's."""
    for name in MUTATED:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            with suppress(ImportError, SystemExit):  # a library that is not installed
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
    importlib.import_module("kubelet_conformance.harness.runs.virtual")


def _cases_of(seed: int, count: int) -> list[Part]:
    from kubelet_conformance.registry import load_cases

    return [partial(_run_cases, part, seed) for part in shares(load_cases(), count)]


def _run_cases(cases: Sequence[Any], seed: int) -> Iterator[tuple[str, bool]]:
    from kubelet_conformance.harness.runs.choice import Choice

    for case in cases:
        yield case.id, tried(case, Choice(seed=seed)) is Verdict.PASSES


def _worlds_of(seeds: Sequence[int], count: int) -> list[Part]:
    return [partial(_play_worlds, part) for part in shares(seeds, count)]


def _play_worlds(seeds: Sequence[int]) -> Iterator[tuple[str, bool]]:
    """Also of a world that breaks a law: a mutant may break another one there."""
    from kubelet_conformance.harness.runs.choice import Choice
    from kubelet_conformance.search.tasks import meet

    for seed in seeds:
        yield f"world-{seed}", meet(seed, "small", Choice()).verdict != "error"


def _recorded(part: Part) -> list[tuple[str, float, bool, str]]:
    found = []
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        heard()
        began_s = used_s()
        for name, passed in part():
            found.append((name, round(used_s() - began_s, 4), passed, _text(heard())))
            began_s = used_s()
    return found


def _bits(table: bytes) -> int:
    return int(table.translate(bytes.maketrans(b"\0\1", b"01")), 2)


def _text(table: bytes) -> str:
    return base64.b64encode(zlib.compress(table)).decode()


def _table(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
