"""`kubelet-conformance check` and `learn`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from fakecri.recording.recorded import RecordError, read_record
from kubelet_conformance.packaged import missing
from kubelet_conformance.scenarios.case import needs_of
from kubelet_conformance.scenarios.files import in_files
from kubelet_conformance.scenarios.learn.learning import NothingToLearn, learned_text
from kubelet_conformance.scenarios.reading import (
    load_scenarios,
    scenario_schema,
    taken_ids,
)
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubeobjects.strict.errors import ScriptError

EXIT_MISTAKES = 2


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the words of `check`."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="scenarios, or directories")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of scenarios")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what each is about")


def check(options: argparse.Namespace) -> int:
    """Read the files, run nothing. Exit codes: 0 no mistake, 2 mistakes, a line for each on
    stderr."""
    if options.schema:
        print(schema_text(), end="")
    elif not options.files:
        print("kubelet-conformance check: wanted a FILE or --schema", file=sys.stderr)
        return EXIT_MISTAKES
    files = in_files(options.files)
    empty = [f"{file}: a directory without scenarios (*.yaml)" for file in files if file.is_dir()]
    scenarios, mistakes = {}, list[str]()
    try:
        scenarios = load_scenarios(file for file in files if file.is_file())
        mistakes = taken_ids(scenarios)
    except ScriptError as error:
        mistakes = [str(error)]
    if wrong := [*mistakes, *missing(files), *empty]:
        print("\n".join(wrong), file=sys.stderr)
        return EXIT_MISTAKES
    for path, scenario in scenarios.items():
        if options.verbose:
            print("\n".join(in_words(path, scenario)))
    return 0


def add_learn(parser: argparse.ArgumentParser) -> None:
    """Add the words of `learn`."""
    parser.add_argument("record", type=Path, metavar="FILE", help="JSON lines of --record")
    parser.add_argument("--id", default="", help="of the scenario; the name of the file by default")
    parser.add_argument(
        "--pod",
        action="append",
        default=[],
        help="only this pod, by its name in the runtime, or a pattern (may be repeated)",
    )
    parser.add_argument("--node", default="", help="name of the recorded node; guessed by default")


def learn(options: argparse.Namespace) -> int:
    """Print a scenario that makes a kubelet do what was recorded in front of a real runtime. Exit
    codes: 0, 2 when the record cannot be used."""
    try:
        calls = read_record(options.record)
        name = options.id or _id_from(options.record.stem)
        print(learned_text(calls, name, options.pod, options.node), end="")
    except (RecordError, NothingToLearn) as error:
        print(f"kubelet-conformance learn: {error}", file=sys.stderr)
        return EXIT_MISTAKES
    return 0


def _id_from(text: str) -> str:
    """An ID made of the name of a file.

    >>> _id_from("Node 3_calls")
    'node-3-calls'
    """
    return "-".join(re.findall("[a-z0-9]+", text.lower())) or "learned"


def in_words(path: Path, scenario: Scenario) -> Iterable[str]:
    """What a scenario is about, and what it needs."""
    needs = ", ".join(sorted(feature.name.lower() for feature in needs_of(scenario)))
    yield f"{path}: {scenario.id}: {scenario.title}"
    yield f"  {len(scenario.steps)} steps, needs {needs or 'nothing'}"
    for bug in scenario.bugs:
        yield f"  known bug: {bug}"


def schema_text() -> str:
    """The JSON schema of scenario files as text."""
    return json.dumps(scenario_schema(), indent=1) + "\n"
