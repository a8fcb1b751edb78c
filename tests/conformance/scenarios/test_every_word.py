"""No word of the scenario language passes for nothing.

`tests/data/scenario_words` has scenarios that pass. Below a line, `#! Word,Word: old -> new` says
how the scenario does not pass any more: with `new` for `old` in the nearest line above that has it,
else the next one below (nothing for `old` where `new` is missing). `#!e`: it is then a mistake,
told before anything runs. `Word` is the struct that declares the field, and the field:
`Calls.count`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct, inspect
from places import ROOT

from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.scenarios.case import case_of
from kubelet_conformance.scenarios.reading import read_scenario
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.reader import type_of
from kubeobjects.strict.values import parse_yaml

FILES: Final = sorted((ROOT / "tests/data/scenario_words").glob("*.yaml"))
HANDED_ON: Final = ("Behaviors", "_Behaviors", "FaultEntry", "_FaultEntry", "BehaviorEntry")
"""The structs of fakecri whose words scenarios hand on."""
_CHANGE: Final = re.compile(
    r"\s*#!(?P<early>e?) (?P<words>[\w.,]+): (?P<old>.+?) ->(?: (?P<new>.*))?$"
)
_HEAD: Final = "test_scenario_playing, test_known_bugs: what a known bug is"
_NO_EFFECT: Final = "for readers, reports and the choice of cases; nothing is played differently"
_IN_FAKECRI: Final = "one that is never hit is an error; what each does: tests/fakecri/rules"
ELSEWHERE: Final = {
    **dict.fromkeys(("Scenario.id", "Scenario.title", "Scenario.about"), _NO_EFFECT),
    **dict.fromkeys(("Scenario.upstream", "Scenario.rules", "Scenario.level"), _NO_EFFECT),
    **dict.fromkeys(("Scenario.affected", "Affected.source", "Affected.since"), _HEAD),
    **dict.fromkeys(("Affected.fixed", "Affected.ends_kubelet", "Affected.by_chance"), _HEAD),
    **dict.fromkeys(("Expectation.bug", "Monitor.bug"), _HEAD),
    "Scenario.since": "test_conformance_registry: which kubelets are too old",
    "Scenario.needs": "test_scenario_playing: needs, and skips for them",
    "Scenario.steps": "every step here",
    "Asking.headers": "test_scenario_playing: what a request says",
    **dict.fromkeys(("Behaviors.runs", "Behaviors.oom_kills_child"), "tests/fakecri/behaviors"),
    "ApiFails.message": "the kubelet shows it in its log alone",
    **dict.fromkeys(
        (
            *("fails_halfway", "loses_answer", "answers_late", "holds_name", "goes_stale"),
            *("leaves_out", "repeats", "turns_back_time", "cuts_stream", "goes_silent"),
        ),
        _IN_FAKECRI,
    ),
}
"""Words that no scenario here shows, and what does. Those of fakecri without a dot are its verbs of
faults; the fields of its words are shown by its own tests."""


@dataclass(frozen=True)
class Variant:
    """A scenario with a word that is wrong, or missing."""

    file: str
    words: tuple[str, ...]
    change: str
    text: str
    early: bool


def variants(path: Path) -> Iterator[Variant]:
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        match = _CHANGE.match(line)
        if match is None:
            assert not line.lstrip().startswith("#!"), line
            continue
        old, new = match["old"], match["new"] or ""
        nearest = _nearest(lines, number, old)
        assert nearest is not None, f"{path.name}:{number + 1}: no line has {old!r}"
        changed = [*lines[:nearest], lines[nearest].replace(old, new, 1), *lines[nearest + 1 :]]
        yield Variant(
            path.name,
            tuple(match["words"].split(",")),
            f"{old} -> {new}",
            "\n".join(changed),
            bool(match["early"]),
        )


def _nearest(lines: list[str], number: int, old: str) -> int | None:
    """The nearest line above that has the words, else the next one below."""
    has = [n for n, line in enumerate(lines) if old in line and not line.lstrip().startswith("#")]
    above, below = [n for n in has if n < number], [n for n in has if n > number]
    return above[-1] if above else next(iter(below), None)


VARIANTS: Final = [variant for path in FILES for variant in variants(path)]


def outcome(text: str, file: str) -> tuple[Outcome, str]:
    scenario = read_scenario(parse_yaml(text, file))
    result = run_virtual_case(case_of(scenario, Path(file)), Choice())
    return result.outcome, result.detail


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_scenarios_pass(path: Path) -> None:
    assert outcome(path.read_text(), path.name) == (Outcome.PASSED, "")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v.words[0]}: {v.change}")
def test_a_word_that_is_wrong_does_not_pass(variant: Variant) -> None:
    if variant.early:
        with pytest.raises(ScriptError):
            outcome(variant.text, variant.file)
    else:
        ended, detail = outcome(variant.text, variant.file)
        assert ended in (Outcome.FAILED, Outcome.ERROR)
        assert ended is Outcome.FAILED or "this was never hit" in detail


def words_of(kind: Any, seen: dict[type[Struct], set[str]]) -> dict[type[Struct], set[str]]:
    """The fields of all structs of the language, each at the struct that declares it."""
    if isinstance(kind, inspect.StructType):
        if kind.cls not in seen:
            seen[kind.cls] = set()
            for field in kind.fields:
                owner = next(c for c in reversed(kind.cls.__mro__) if _has(c, field.name))
                seen.setdefault(owner, set()).add(field.encode_name)
                words_of(field.type, seen)
        return seen
    one = ("type", "item_type", "key_type", "value_type")
    parts = [getattr(kind, name) for name in one if hasattr(kind, name)]
    for part in [*parts, *getattr(kind, "types", ()), *getattr(kind, "item_types", ())]:
        words_of(part, seen)
    return seen


def _has(owner: type, name: str) -> bool:
    fields: Any = getattr(owner, "__struct_fields__", ())
    return isinstance(fields, tuple) and name in fields


def test_every_word_is_shown() -> None:
    structs = words_of(type_of(Scenario), {})
    every = {
        f"{owner.__name__.lstrip('_')}.{word}"
        for owner, words in structs.items()
        for word in words
        if owner.__module__.startswith("kubelet_conformance.") or owner.__name__ in HANDED_ON
    }
    elsewhere = {word if "." in word else f"FaultEntry.{word}" for word in ELSEWHERE}
    shown = {word for variant in VARIANTS for word in variant.words}
    assert every - shown - elsewhere == set()
    assert (shown | elsewhere) - every == set(), "words that there are not"
    assert shown & elsewhere == set(), "words that are shown here"
