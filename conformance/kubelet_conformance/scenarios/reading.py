"""Reads scenario files; all mistakes of a file are told at once, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubelet_conformance.scenarios.checks import mistakes
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.json_schema import json_schema
from kubeobjects.strict.reader import read
from kubeobjects.strict.values import Value, read_yaml


def load_scenario(path: Path) -> Scenario:
    """The scenario of a file. Raises ScriptError with every mistake: file, line, column, where in
    the document, what was wanted and what was there."""
    return read_scenario(read_yaml(path))


def read_scenario(value: Value) -> Scenario:
    """The scenario that `value` holds. Raises ScriptError, as `load_scenario`."""
    scenario = read(value, Scenario)
    errors = dict.fromkeys(str(error) for error in mistakes(scenario))
    if errors:
        raise ScriptError(*sorted(errors, key=_line))
    return scenario


def _line(error: str) -> int:
    """The line that an error is about."""
    match = re.search(r":(\d+):\d+: ", error)
    return int(match[1]) if match else 0


def load_scenarios(paths: Iterable[Path]) -> dict[Path, Scenario]:
    """The scenarios of some files. Raises ScriptError with the mistakes of all of them; two with
    the same ID are one."""
    scenarios: dict[Path, Scenario] = {}
    errors: list[str] = []
    by_id: dict[str, Path] = {}
    for path in paths:
        try:
            scenario = scenarios[path] = load_scenario(path)
        except ScriptError as error:
            errors += error.errors
            continue
        if scenario.id in by_id:
            first = by_id[scenario.id]
            errors.append(str(scenario.error(f"id: {scenario.id} is already that of {first}")))
        by_id.setdefault(scenario.id, path)
    if errors:
        raise ScriptError(*errors)
    return scenarios


def scenario_schema() -> dict[str, Any]:
    """The JSON schema of scenario files."""
    return json_schema(Scenario, "A scenario of kubelet-conformance")
