"""The register of cases: what a case is, how it is declared, and how cases are chosen.

Nothing here needs a kubelet or a runtime, so cases can be listed anywhere. A second case with the
same ID, a case without a rule, and a selection that matches no case are errors.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from argparse import ArgumentTypeError
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kubelet_conformance.features import Feature, Level
from kubelet_conformance.known_bugs import KnownBug, release_of
from kubelet_conformance.shards import parts
from kubeobjects.strict.errors import did_you_mean

if TYPE_CHECKING:  # a case is declared without the harness that runs it
    from kubelet_conformance.harness.node import Node

__all__ = [
    "REGISTRY",
    "Case",
    "CaseError",
    "CaseNames",
    "CaseRegistry",
    "Feature",
    "KnownBug",
    "Level",
    "Minor",
    "Selection",
    "SelectionError",
    "conformance",
    "first_sentence",
    "load_cases",
    "minor_of",
    "select",
    "shard_of",
]

CaseBody = Callable[["Node"], Awaitable[None]]

Minor = tuple[int, int]
"""A minor version of Kubernetes: (1, 34)."""

RULE: Final = re.compile(r"^[A-Z]{2,5}-\d{3}(\.\d{1,2})?$")
ID: Final = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
NO_CONFIG: Final[Mapping[str, Any]] = MappingProxyType({})


class Case(Struct, frozen=True):
    """One behaviour that a kubelet must or should show, and the code that checks it."""

    id: str
    """Unique, words with dashes."""
    area: str
    """The folder of cases it belongs to."""
    title: str
    """The first paragraph of its docstring; reports use it."""
    rules: tuple[str, ...]
    """The rules it checks, the most important first: a clause (`BACK-003.2`), or a whole rule."""
    level: Level
    """How binding they are."""
    needs: frozenset[Feature]
    """What kubelet and runtime must offer."""
    body: CaseBody
    """The function that checks it."""
    node_config: Mapping[str, Any] = {}
    """KubeletConfiguration fields beside the harness's own."""
    machine: Mapping[str, Any] = {}
    """CPUs and NUMA nodes of the machine, see `conformance`."""
    except_laws: Mapping[str, str] = {}
    """The laws that it has a right kubelet break, each with the reason."""
    asks_laws: bool = False
    """Whether the laws are asked after it, although it is no case of this package."""
    alone: bool = False
    """Whether it needs a kubelet to itself, although nothing else of it says so."""
    since: Minor | None = None
    """The first Kubernetes minor whose kubelet does this; None: older than all that are looked at.
    An older kubelet skips the case."""
    bugs: tuple[KnownBug, ...] = ()
    """The bugs for which it fails on the kubelets that have them."""
    module: str = ""
    """The module that declares it."""
    line: int = 0
    """Its line there."""
    file: str = ""
    """The file that has to be named to run it; "" for a case of this package."""

    def missing(self, offered: Iterable[Feature]) -> list[Feature]:
        """The needed features that are not offered, in the order of the Feature enum."""
        have = set(offered)
        return [f for f in Feature if f in self.needs and f not in have]


class CaseError(ValueError):
    """A case is declared wrongly; the text names the case and what to change."""


class SelectionError(ValueError):
    """A selection names an unknown ID, rule or area, or leaves nothing to run."""


class CaseRegistry:
    """All declared cases, by ID."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}

    def add(self, case: Case) -> None:
        """Register `case`. Raises CaseError for a second case with that ID or a malformed one."""
        if not ID.match(case.id):
            raise CaseError(f"{case.module}: case ID {case.id!r}: wanted words-with-dashes")
        if not case.rules:
            raise CaseError(f"{case.module}: case {case.id!r} names no rule")
        for rule in case.rules:
            if not RULE.match(rule):
                raise CaseError(f"{case.module}: case {case.id!r}: {rule!r} is no clause ID")
        if not case.title:
            raise CaseError(f"{case.module}: case {case.id!r} has no docstring sentence")
        if case.machine and Feature.NODE_RESOURCES not in case.needs:
            raise CaseError(f"{case.module}: case {case.id!r}: machine= needs NODE_RESOURCES")
        if case.id in self._cases:
            other = self._cases[case.id].module
            raise CaseError(f"{case.module}: case ID {case.id!r} is already taken by {other}")
        self._cases[case.id] = case

    def cases(self) -> list[Case]:
        """Every case, sorted by area, module and line: the order of a run."""
        return sorted(self._cases.values(), key=lambda c: (c.area, c.module, c.line))


REGISTRY: Final = CaseRegistry()


def conformance(
    *,
    id: str,
    rules: Sequence[str],
    level: Level = Level.MUST,
    needs: Iterable[Feature] = (),
    node_config: Mapping[str, Any] = NO_CONFIG,
    machine: Mapping[str, Any] = NO_CONFIG,
    except_laws: Mapping[str, str] = NO_CONFIG,
    alone: bool = False,
    since: str = "",
    bugs: Sequence[KnownBug] = (),
    area: str = "",
) -> Callable[[CaseBody], CaseBody]:
    """Declare the decorated `async def case(node)` a conformance case.

    `rules`: the clauses (`BACK-003.2`) or rules it checks, the most important first.
    `node_config`: KubeletConfiguration fields beside the harness's own. `machine`: CPUs and NUMA
    nodes, as arguments of `fakecri.uniform_topology`, and `swap_bytes` (needs NODE_RESOURCES).
    `except_laws`: laws (`kubelet_conformance.laws`) that are not asked after it, each with the
    reason. `alone`: it shares no kubelet. `since`: the first Kubernetes minor that has it without a
    gate's being switched on, `1.34`. `bugs`: for which it is expected to fail on kubelets of some
    versions. `area`: default the package below `cases`. Raises CaseError for a wrong declaration.
    """
    first = _first_minor(id, since)

    def register(body: CaseBody) -> CaseBody:
        module = body.__module__
        REGISTRY.add(
            Case(
                id=id,
                area=area or _area_of(module),
                title=first_sentence(inspect.getdoc(body) or ""),
                rules=tuple(rules),
                level=level,
                needs=frozenset(needs),
                body=body,
                node_config=dict(node_config),
                machine=dict(machine),
                except_laws=dict(except_laws),
                alone=alone,
                since=first,
                bugs=tuple(bugs),
                module=module,
                line=inspect.unwrap(body).__code__.co_firstlineno,
            )
        )
        return body

    return register


def _first_minor(case_id: str, since: str) -> Minor | None:
    first = minor_of(since)
    if since and not first:
        raise CaseError(f"case {case_id!r}: since={since!r}: wanted a minor version such as 1.34")
    return first


def minor_of(text: str) -> Minor | None:
    """The first version in a text; None where there is none.

    >>> minor_of("Kubernetes v1.36.2")
    (1, 36)
    """
    release = release_of(text)
    return release[:2] if release else None


def _area_of(module: str) -> str:
    parts = module.split(".")
    return parts[parts.index("cases") + 1] if "cases" in parts[:-2] else parts[-1]


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring on one line.

    >>> first_sentence("A pod\\n starts. More.\\n\\nRest")
    'A pod starts. More.'
    """
    return " ".join(text.strip().split("\n\n")[0].split())


def load_cases() -> list[Case]:
    """Import every module below kubelet_conformance.cases and return their cases; other modules
    may have registered some, too."""
    import kubelet_conformance.cases  # here, not above: the modules of cases import this one

    below = f"{kubelet_conformance.cases.__name__}."
    for module in pkgutil.walk_packages(kubelet_conformance.cases.__path__, below):
        importlib.import_module(module.name)
    return [case for case in REGISTRY.cases() if case.module.startswith(below)]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases to run. Empty fields choose everything; several fields must all match."""

    ids: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # a clause (BACK-009.2), a rule (BACK-009) or a prefix (BACK)
    level: Level = Level.MUST  # this level and the stricter ones
    disabled: tuple[str, ...] = ()  # IDs the user switched off: reported as disabled
    shard: tuple[int, int] = (1, 1)  # the first of two parts: (1, 2)
    times_s: Mapping[str, float] = field(default_factory=dict)  # how long cases took: equal parts
    _ids: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", frozenset(self.ids))

    @property
    def is_whole(self) -> bool:
        """Whether it has all cases of its level."""
        return not (self.ids or self.areas or self.rules or self.shard != (1, 1))

    @property
    def words(self) -> tuple[str, ...]:
        """What chooses, whatever the part.

        >>> Selection(areas=("backoff",), rules=("LIFE", "BACK"), shard=(1, 2)).words
        ('area backoff', 'rule BACK', 'rule LIFE')
        """
        named = {
            "area": self.areas,
            "rule": self.rules,
            "ID": self.ids,
            "disabled": self.disabled,
        }
        return tuple(f"{kind} {name}" for kind, names in named.items() for name in sorted(names))

    def check(self, cases: Sequence[Case]) -> None:
        """Raise SelectionError when a chosen name matches no case at all, whatever its level."""
        names = CaseNames(
            ids=frozenset(case.id for case in cases),
            areas=frozenset(case.area for case in cases),
            rules=frozenset(rule for case in cases for rule in case.rules),
        )
        names.check(self)

    def chooses(self, case: Case) -> bool:
        """Whether `case` is to run. A case named by its ID runs whatever its level."""
        if self.ids:
            return case.id in self._ids
        return (
            case.level <= self.level
            and (not self.areas or case.area in self.areas)
            and (not self.rules or any(_cites(case, rule) for rule in self.rules))
        )


class CaseNames(Struct, frozen=True):
    """By which names cases can be chosen."""

    ids: frozenset[str]
    areas: frozenset[str]
    rules: frozenset[str]

    def check(self, selection: Selection) -> None:
        """Raise SelectionError for a chosen name that no case has."""
        families = {part for rule in self.rules for part in (rule[: rule.index("-")], rule)}
        rules = families | {rule.partition(".")[0] for rule in self.rules}
        for kind, wanted, known in (
            ("ID", selection.ids + selection.disabled, self.ids),
            ("area", selection.areas, self.areas),
            ("rule", selection.rules, rules),
        ):
            for name in wanted:
                if name not in known:
                    raise SelectionError(
                        f"no case with {kind} {name!r}{did_you_mean(name, known)} "
                        "(`kubelet-conformance list` shows all)"
                    )


def _cites(case: Case, wanted: str) -> bool:
    return any(
        rule == wanted or rule.startswith((f"{wanted}-", f"{wanted}.")) for rule in case.rules
    )


def select(cases: Sequence[Case], selection: Selection) -> list[Case]:
    """The chosen cases in run order. Raises SelectionError rather than return nothing."""
    selection.check(cases)
    chosen = [case for case in cases if selection.chooses(case)]
    if not chosen:
        raise SelectionError(
            "this selection leaves no case to run; a case of a lower level needs --level should "
            "or --level detail"
        )
    number, count = selection.shard
    if count > len(chosen):
        raise SelectionError(
            f"--shard {number}/{count} of {len(chosen)} cases: wanted at most {len(chosen)} parts"
        )
    part = parts([case.id for case in chosen], count, selection.times_s)
    return [case for case in chosen if part[case.id] == number]


def shard_of(text: str) -> tuple[int, int]:
    """Which of how many parts of the cases: `--shard 2/5`. Raises ArgumentTypeError.

    >>> shard_of("2/5")
    (2, 5)
    """
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise ArgumentTypeError(f"wanted a part such as 2/5 (from 1/5 to 5/5), got {text!r}")
    return number, count
