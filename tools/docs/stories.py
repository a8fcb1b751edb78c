"""Writes what is made of a run into the stories of docs/stories.

python tools/docs/stories.py [NAME ...]          rewrite these stories, all if none is named
python tools/docs/stories.py --check [NAME ...]  say which are stale (exit code 1), write nothing
python tools/docs/stories.py --all NAME          print every function that cites a rule, by scene

A story is a page, docs/stories/NAME.md, and a scenario, fixtures/stories/NAME.yaml. Each `mark` of
the scenario ends a scene, which has a place on the page between two markers:

    <!-- begin: MARK; RULE RULE ...; made by tools/docs/stories.py -->
    <!-- end: MARK -->

refkubelet plays the scenario on the fake runtime in virtual time. Between the markers goes what was
seen in the scene (steps of the scenario, CRI calls, probes, events, pod statuses, errors in the
kubelet's log), and which functions of refkubelet ran in it, in the order of their first call: those
whose docstring cites one of the RULEs, with its first sentence. A rule that no function cites which
ran is an error. With `times` in the place of rules it is a table of how long probes took.
"""

from __future__ import annotations

import argparse
import ast
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))  # those beside it, also with PYTHONSAFEPATH

import yaml
from probe_times import times_table
from source_pages import page_of

import refkubelet
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.rule_places import cited
from kubelet_conformance.rule_texts import all_rules
from kubelet_conformance.scenarios.case import case_of
from kubelet_conformance.scenarios.play.playing import Player
from kubelet_conformance.scenarios.reading import load_scenario
from kubelet_conformance.traces.entries import Entry, about
from kubeobjects.strict.errors import ScriptError
from kubeobjects.structs import replace

ROOT: Final = Path(__file__).parents[2]
LOG: Final = logging.getLogger("refkubelet")
PACKAGE: Final = Path(refkubelet.__file__).parent
PAGES: Final = ROOT / "docs" / "stories"
SCENARIOS: Final = ROOT / "fixtures" / "stories"
RULES: Final = all_rules()
SCENE: Final = re.compile(
    r"^<!-- begin: (\S+); ([^;]*); made by tools/docs/stories\.py -->\n.*?^<!-- end: \1 -->\n",
    re.M | re.S,
)
CALLS: Final = Choice(seed=1, latency=0.1, traces="all")
"""Calls take a tenth of what they take on containerd: they are in order, and times stay round."""
MOMENT_S: Final = 0.1
"""CRI calls within this time are one row."""
LONGEST: Final = 220
"""Characters of a row."""
SHOWN: Final = 20
"""Lines of what is stale."""
TIMES: Final = "times"
"""What a marker says for a table of them."""
CRI: Final = "CRI: "
FOLLOWS: Final = ("Created", "Started", "Starting", "Pulling", "NodeAllocatableEnforced")
"""Events that say what a row beside them says."""
BEGINS: Final = re.compile(
    r"^Pending; (\S+=waiting\((ContainerCreating|PodInitializing)\)[^;]*(; )?)+$"
)
"""A status before the first container has run."""
LOOKS: Final = ("mark", "wait", "expect", "advance", "behave")
"""Steps that do nothing to the node at this moment."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method of refkubelet."""

    path: str
    """`refkubelet/pleg/compute.py`."""
    name: str
    """`compute_events`, `CriClient.version`."""
    docstring: str
    rules: frozenset[str]

    @property
    def told(self) -> str:
        """The first sentence of its docstring, without rule IDs in brackets."""
        first = " ".join(self.docstring.partition("\n\n")[0].split())
        without = re.sub(r"\s*\([A-Z]{2,5}-\d{3}[^)]*\)", "", first)
        return re.split(r"(?<=[a-z0-9)`])\. ", without, maxsplit=1)[0].rstrip(".") + "."

    @property
    def link(self) -> str:
        """Where its source is on the site: the page of its module."""
        text = f"{self.path.removeprefix('refkubelet/')}: {self.name}"
        return f"[`{text}`](../{page_of(self.path)}#{self.dotted})"

    @property
    def dotted(self) -> str:
        """`refkubelet.pleg.compute.compute_events`."""
        module = self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return f"{module}.{self.name}"


class Errors(logging.Handler):
    """The errors that refkubelet logs, each with the time."""

    def __init__(self, node: Node) -> None:
        super().__init__(logging.ERROR)
        self.said: list[tuple[float, str]] = []
        self._node = node

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record; of paths, which differ from run to run, the name of the file."""
        message = re.sub(r"(?<=\s)/\S+/", "", record.getMessage())
        self.said.append((self._node.now_s, f"the kubelet logs: {message}"))


@dataclass(slots=True)
class Scene:
    """What is known of the time between two marks."""

    name: str
    since_s: float
    till_s: float
    seen: list[tuple[float, str]] = field(default_factory=list)
    """Seconds since the beginning, what happened."""
    ran: list[Function] = field(default_factory=list)
    """The functions with rules, in the order of their first call."""
    entries: list[Entry] = field(default_factory=list)
    """The trace of the scene."""


@cache
def functions() -> dict[tuple[str, int], Function]:
    """Those of refkubelet whose docstring cites a rule, by file and first line."""
    made: dict[tuple[str, int], Function] = {}

    def visit(node: ast.AST, inside: tuple[str, ...], file: Path) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            names = (*inside, child.name)
            visit(child, names, file)
            docstring = ast.get_docstring(child) or ""
            if rules := frozenset(rule for _, rule in cited(docstring)):
                line = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                path = str(file.relative_to(PACKAGE.parent))
                made[str(file), line] = Function(path, ".".join(names), docstring, rules)

    for file in sorted(PACKAGE.rglob("*.py")):
        visit(ast.parse(file.read_text()), (), file)
    return made


def scenes_of(file: Path) -> list[Scene]:
    """Play the scenario. Raises RuntimeError when refkubelet does not do what it expects."""
    scenario, known = load_scenario(file), functions()
    steps = yaml.safe_load(file.read_text())["steps"]
    ran: list[Function] = []
    began: list[tuple[float, int]] = []  # of each step: when, and how many functions had run
    running = False
    logged: list[tuple[float, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        called = event == "call" and known.get((code.co_filename, code.co_firstlineno))
        if called and running:
            ran.append(called)

    async def body(node: Node) -> None:
        nonlocal running, logged
        running = True
        LOG.addHandler(errors := Errors(node))
        logged = errors.said
        try:
            await Player(scenario, node, lambda step: began.append((node.now_s, len(ran)))).play()
        finally:
            LOG.removeHandler(errors)

    case = replace(case_of(scenario, file), body=body)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = run_virtual_case(case, CALLS)
    finally:
        sys.setprofile(before)
    if result.outcome is not Outcome.PASSED or result.record is None:
        raise RuntimeError(f"{file}: {result.outcome.value}: {result.detail}")
    seen = [(entry.at_s, told) for entry in result.record.entries if (told := short(words(entry)))]
    seen = sorted([*seen, *logged], key=lambda one: one[0])
    scenes = list(_cut(list(zip(began, steps, strict=True)), seen, ran))
    for scene in scenes:
        scene.entries = [e for e in result.record.entries if scene.since_s < e.at_s <= scene.till_s]
    return scenes


def _cut(
    steps: Sequence[tuple[tuple[float, int], dict[str, Any]]],
    seen: Sequence[tuple[float, str]],
    ran: Sequence[Function],
) -> Iterator[Scene]:
    """The scenes: each ends with a step `mark`, and has the steps before it."""
    since_s, first, done = -1.0, 0, list[tuple[float, str]]()
    for (at_s, number), step in steps:
        if "mark" in step:
            within = [one for one in seen if since_s < one[0] <= at_s]
            if since_s < 0:  # the kubelet itself starts
                within = [one for one in within if not one[1].startswith("event Node")]
            within.sort(key=lambda one: (round(one[0], 3), " has exited: " not in one[1]))
            called = list(dict.fromkeys(ran[first:number]))
            yield Scene(step["mark"], since_s, at_s, [*done, *within], called)
            since_s, first, done = at_s, number, []
        elif not step.keys() & set(LOOKS):
            done.append((at_s, f"**`{_in_a_line(step)}`**"))


def _in_a_line(step: dict[str, Any]) -> str:
    """The step, but for a text of several lines, which the page shows in its words."""
    (word, what), *_ = step.items()
    if isinstance(what, dict) and "\n" in str(what.get("text", "")):
        step = {word: {**what, "text": "..."}}
    text: str = yaml.safe_dump(step, default_flow_style=True, sort_keys=False, width=999)
    return text.strip()[1:-1]


def short(text: str) -> str:
    """The text without what is the same in all stories, and with an end."""
    text = text.replace(" restarts=0", "").replace(" (localhost/busybox:1)", "").strip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()} ..."


def words(entry: Entry) -> str:
    """An entry of the trace in a line; "" for what a story does not need: reads, states that
    follow from calls, events that follow from them, writes of events and statuses."""
    whom, told = about(entry), entry.told
    failed = f" fails: {entry.error}" if entry.error else ""
    match entry.kind:
        case "call":
            took = f" ({told})" if told else ""
            return f"{CRI}{entry.what} {whom}{took}{failed}"
        case "probe" | "hook":
            return f"{entry.kind} of {whom}: {told}"
        case "state" if entry.what == "exited":
            return f"{whom} has exited: {told or 'no exit code yet'}"
        case "event" if entry.what not in FOLLOWS and "already present" not in told:
            of = f" of {whom}" if whom else ""
            return f"event {entry.what}{of}: {told.partition(': ')[2]}"
        case "status" if not BEGINS.search(told):
            return f"status of {whom}: {told}"
        case "wait":
            return f"{whom.partition('#')[0]} waits {told} before the next {entry.what}"
        case "api" if "/pods" in entry.what and entry.what.startswith("POST"):
            return f"API: the kubelet creates the mirror pod {whom}{failed}"
        case "api" if "/pods/" in entry.what and entry.what.startswith("DELETE"):
            return f"API: the kubelet deletes the pod {whom}{failed}"
    return ""


def block(scene: Scene, rules: Sequence[str]) -> str:
    """What stands between the markers of a scene. Raises RuntimeError when no function that ran
    cites one of the rules."""
    if rules == [TIMES]:
        return f"{times_table(scene.entries)}\n"
    chosen = [f for f in scene.ran if f.rules & set(rules)]
    for rule in rules:
        if not any(rule in f.rules for f in chosen):
            raise RuntimeError(f"scene {scene.name}: no function ran whose docstring cites {rule}")
    rows = "".join(f"| {at} | {told} |\n" for at, told in in_rows(scene.seen))
    lines = "".join(
        f"{number}. {f.link}: {f.told} {', '.join(rule_link(r) for r in rules if r in f.rules)}\n"
        for number, f in enumerate(chosen, 1)
    )
    table = f"\n| at | what happens |\n| --- | --- |\n{rows}" if rows else ""
    return f"{table}\n{lines}\n" if lines else f"{table}\n"


def in_rows(seen: Iterable[tuple[float, str]]) -> Iterator[tuple[str, str]]:
    """Time and text of the rows. CRI calls one after the other, and what happens several times in
    a scene, are one row."""
    joined: list[tuple[float, str]] = []
    calls: int | None = None  # the row to which CRI calls may be added
    for at_s, told in seen:
        alone = " fails: " in told or " has exited: " in told
        if told.startswith(CRI) and calls is not None and at_s - joined[calls][0] < MOMENT_S:
            joined[calls] = (joined[calls][0], f"{joined[calls][1]}, {told.removeprefix(CRI)}")
        else:
            joined.append((at_s, told))
            if told.startswith(CRI):
                calls = len(joined) - 1
        calls = None if alone else calls
    times: dict[str, list[str]] = {}
    for at_s, told in joined:
        times.setdefault(told, []).append(f"{at_s:.1f} s")
    for told, ats in times.items():
        yield ", ".join(ats), told.replace("|", "\\|")


def rule_link(rule: str) -> str:
    """A rule as a link to its text."""
    return f"[{rule}](../{RULES[rule].anchor})"


def rendered(page: str, scenes: Sequence[Scene]) -> str:
    """The page with what was seen. Raises RuntimeError when its markers are not the scenario's
    marks, in their order."""
    named = [found[1] for found in SCENE.finditer(page)]
    if named != [scene.name for scene in scenes]:
        marks = ", ".join(scene.name for scene in scenes)
        raise RuntimeError(f"wanted markers for the marks {marks}; there are {', '.join(named)}")
    by_name = {scene.name: scene for scene in scenes}

    def of(found: re.Match[str]) -> str:
        begin = f"<!-- begin: {found[1]}; {found[2]}; made by tools/docs/stories.py -->\n"
        return f"{begin}{block(by_name[found[1]], found[2].split())}<!-- end: {found[1]} -->\n"

    return SCENE.sub(of, page)


def stories() -> list[str]:
    """The names of all."""
    return sorted(file.stem for file in SCENARIOS.glob("*.yaml"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: written, or current; 1: `--check` found a stale page; 2: one cannot be made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--all", action="store_true", help="print what a story can choose from")
    given = parser.parse_args(arguments)
    stale = 0
    for name in given.names or stories():
        page = PAGES / f"{name}.md"
        try:
            scenes = scenes_of(SCENARIOS / f"{name}.yaml")
            if given.all:
                print("\n".join(everything(scenes)))
                continue
            text = page.read_text()
            new = rendered(text, scenes)
        except (OSError, RuntimeError, ScriptError) as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            return 2
        if new != text and given.check:
            print(f"{page} is stale: run python tools/docs/stories.py {name}", file=sys.stderr)
            changes = unified_diff(text.splitlines(), new.splitlines(), "page", "run", n=0)
            print("\n".join(islice(changes, SHOWN)), file=sys.stderr)
            stale = 1
        elif new != text:
            page.write_text(new)
    return stale


def everything(scenes: Iterable[Scene]) -> Iterator[str]:
    """All that was seen, and every function with its rules."""
    known: set[Function] = set()
    for scene in scenes:
        yield f"=== {scene.name}"
        yield from (f"{at_s:8.3f} {told}" for at_s, told in scene.seen)
        for ran in scene.ran:
            new = " " if ran in known else "+"
            yield f"  {new} {ran.dotted} {' '.join(sorted(ran.rules))}: {ran.told}"
        known.update(scene.ran)


if __name__ == "__main__":
    sys.exit(main())
