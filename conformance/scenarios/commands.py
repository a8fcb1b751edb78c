"""`kubelet-conformance check` and `learn`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from conformance.scenarios.case import needs_of
from conformance.scenarios.files import in_files
from conformance.scenarios.reading import load_scenarios, scenario_schema
from conformance.scenarios.shape import Scenario
from fakecri.scripts.yaml_reader import ScriptError

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
    try:
        found = load_scenarios(in_files(options.files))
    except ScriptError as error:
        print(error, file=sys.stderr)
        return EXIT_MISTAKES
    for path, scenario in found.items():
        if options.verbose:
            print("\n".join(in_words(path, scenario)))
    return 0


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
