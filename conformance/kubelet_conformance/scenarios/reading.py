"""Reads scenario files; all mistakes of a file are told at once, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.packaged import shipped
from kubelet_conformance.scenarios.checks import mistakes
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.json_schema import json_schema
from kubeobjects.strict.reader import read
from kubeobjects.strict.values import Value, parse_yaml, read_yaml
from kubeobjects.structs import replace
from kubeobjects.yaml import nodes

_PART: Final = re.compile(r"\d+:\d+: (\w+)(?:\[(\d+)\]|\.([^.\[:]+))?")
_SECTIONS: Final = ("steps", "expect", "never", "pods")
"""The sections of which single entries are left out where they cannot be read."""
_STAND_INS: Final = """
id: x
title: x
steps: [{advance: 1}]
expect: [{shutdown: {held_up: false}, says: x}]
never: [{shutdown: {held_up: true}, says: x}]
pods: {x: {}}
"""
"""What is there instead of what cannot be read: sections, and the first entry for other entries."""


def load_scenario(path: Path) -> Scenario:
    """The scenario of a file. Raises ScriptError with every mistake: file, line, column, where in
    the document, what was wanted and what was there."""
    return read_scenario(read_yaml(path))


def read_scenario(value: Value) -> Scenario:
    """The scenario that `value` holds. Raises ScriptError, as `load_scenario`."""
    try:
        scenario = read(value, Scenario)
    except ScriptError as unreadable:
        told = (*unreadable.errors, *_mistakes_in_the_rest(value, unreadable.errors))
        raise ScriptError(*sorted(dict.fromkeys(told), key=_line)) from None
    errors = dict.fromkeys(str(error) for error in mistakes(scenario))
    if errors:
        raise ScriptError(*sorted(errors, key=_line))
    return scenario


def _mistakes_in_the_rest(value: Value, errors: Iterable[str]) -> list[str]:
    """The mistakes in what can be read: the file without the sections and entries that those errors
    are about."""
    sections, entries = _unreadable(errors)
    if not isinstance(value.node, nodes.Mapping):
        return []
    stand_ins = parse_yaml(_STAND_INS, value.file).node
    assert isinstance(stand_ins, nodes.Mapping)
    instead = {key.text: item for key, item in stand_ins.pairs if isinstance(key, nodes.Text)}
    pairs: list[tuple[nodes.Node, nodes.Node]] = []
    for key, item in value.node.pairs:
        name = key.text if isinstance(key, nodes.Text) else ""
        if name in Scenario.__struct_fields__ and name not in sections:
            broken = entries.get(name, set())
            pairs.append((key, _with(instead[name], item, broken) if broken else item))
    given = {key.text for key, _ in pairs if isinstance(key, nodes.Text)}
    required = ("id", "title", "steps")
    missing = [name for name in required if name not in given]
    pairs += [(nodes.Text(0, 0, name), instead[name]) for name in missing]
    rest = nodes.Mapping(value.node.line, value.node.column, pairs)
    try:
        scenario = read(replace(value, node=rest), Scenario)
    except ScriptError:
        return []
    return [str(error) for error in mistakes(scenario, whole=False)]


def _unreadable(errors: Iterable[str]) -> tuple[set[str], dict[str, set[str]]]:
    """The sections that errors are about, and of some sections the entries: their numbers, or their
    names."""
    sections: set[str] = set()
    entries: dict[str, set[str]] = {}
    for match in filter(None, map(_PART.search, errors)):
        name, entry = match[1], match[2] or match[3]
        if name in _SECTIONS and entry:
            entries.setdefault(name, set()).add(entry)
        else:
            sections.add(name)
    return sections, entries


def _with(instead: nodes.Node, section: nodes.Node, broken: set[str]) -> nodes.Node:
    """A section with something else for its broken entries."""
    target = nodes.target_of(section)
    if isinstance(target, nodes.Sequence) and isinstance(instead, nodes.Sequence):
        numbered = enumerate(target.items)
        items = [instead.items[0] if str(n) in broken else item for n, item in numbered]
        return nodes.Sequence(target.line, target.column, items)
    if isinstance(target, nodes.Mapping) and isinstance(instead, nodes.Mapping):
        plain = instead.pairs[0][1]
        pairs = [
            (key, plain if isinstance(key, nodes.Text) and key.text in broken else item)
            for key, item in target.pairs
        ]
        return nodes.Mapping(target.line, target.column, pairs)
    return target


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


def taken_ids(scenarios: dict[Path, Scenario]) -> list[str]:
    """What is wrong with IDs that fixtures of this package have: results and known bugs would be
    those of the fixture. Copies of the fixtures, in directories called as theirs, may have them."""
    fixtures = {path.stem: Path(path.parent.name, path.name) for path in shipped()}
    return [
        str(scenario.error_at("id", f"{scenario.id} is the ID of a fixture of this package"))
        for path, scenario in scenarios.items()
        if (fixture := fixtures.get(scenario.id)) and not path.absolute().match(str(fixture))
    ]


def scenario_schema() -> dict[str, Any]:
    """The JSON schema of scenario files."""
    return json_schema(Scenario, "A scenario of kubelet-conformance")
