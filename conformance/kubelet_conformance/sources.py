"""Where cases come from: modules of this package, modules and scenarios that a user names, and the
fixtures, which are scenarios of this package."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from kubelet_conformance.packaged import SCENARIOS, shipped
from kubelet_conformance.registry import REGISTRY, Case, CaseNames, Selection, load_cases
from kubelet_conformance.scenarios.files import SUFFIXES
from kubeobjects.structs import replace

PACKAGE: Final = Path(__file__).parent
WRITTEN_ID: Final = re.compile(r'conformance\(\s*id="([a-z0-9-]+)"')
WRITTEN_RULE: Final = re.compile(r"\b[A-Z]{2,5}-\d{3}(?:\.\d{1,2})?\b")
OUTSIDE: Final = "case_files"
"""The package that modules outside are imported into."""


def fixtures() -> list[Case]:
    """The fixtures. Raises ScriptError for a wrong one."""
    return [_fixture(path) for path in shipped()]


@cache
def _fixture(path: Path) -> Case:
    """The case of a file that this package brings, which stays as it is: reading all of them takes
    seconds, so that a process does it once."""
    return _scenario(path)


def all_cases() -> list[Case]:
    """The cases of this package and its fixtures. Raises ScriptError for a wrong fixture."""
    return [*load_cases(), *fixtures()]


def cases_in(path: Path) -> list[Case]:
    """The cases of one file. Raises CaseError, ScriptError and what the import of a module
    raises."""
    if path.suffix in SUFFIXES:
        return [_scenario(path)]
    if path.is_relative_to(PACKAGE):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        importlib.import_module(module)
        return [case for case in REGISTRY.cases() if case.module == module]
    module = _imported(path)
    cases = (case for case in REGISTRY.cases() if case.module == module)
    return [replace(case, file=str(path)) for case in cases]


def _scenario(path: Path) -> Case:
    """The case of a scenario."""
    # Here, not above: runs without scenarios start earlier.
    from kubelet_conformance.scenarios.case import case_of
    from kubelet_conformance.scenarios.reading import load_scenario

    return case_of(load_scenario(path), path)


def _imported(path: Path) -> str:
    """Import a module outside of this package; returns its name here."""
    name = f"{OUTSIDE}.{path.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path):
        return name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return name


def written_names(*, rules: bool = True) -> CaseNames:
    """The names by which the cases of this package and its fixtures can be chosen, as their files
    have them: read in a moment, where importing them takes seconds. Rules may be more; looking for
    them takes half of the moment, so that without `rules` there are none."""
    texts = [path.read_text() for path in (PACKAGE / "cases").rglob("*.py")]
    folders = (path.name for path in (PACKAGE / "cases").iterdir() if path.is_dir())
    ids = {name for text in texts for name in WRITTEN_ID.findall(text)}
    texts = [*texts, *(path.read_text() for path in shipped())] if rules else []
    return CaseNames(
        ids=frozenset(ids | {path.stem for path in shipped()}),
        areas=frozenset({*SCENARIOS, *folders} - {"__pycache__"}),
        rules=frozenset(rule for text in texts for rule in WRITTEN_RULE.findall(text)),
    )


def with_fixtures(places: Sequence[str], selection: Selection, cases: Path) -> list[str]:
    """The places where cases are looked for. The fixtures are among them when their area is chosen,
    or one of them by its ID; the modules below `cases` are not when nothing else is chosen, and
    only those that declare them when cases are chosen by their IDs alone."""
    case_places = list(places)
    if case_places != [str(cases)]:
        return case_places
    files = {path.stem: path for path in shipped()}
    chosen = [
        str(path)
        for name, path in files.items()
        if name in selection.ids or path.parent.name in selection.areas
    ]
    only = set(selection.areas) <= set(SCENARIOS) and set(selection.ids) <= set(files)
    if chosen and only:
        return chosen
    case_ids = [name for name in selection.ids if name not in files]
    alone = not (selection.areas or selection.rules or selection.disabled)
    return [*((alone and declaring(case_ids, cases)) or case_places), *chosen]


def declaring(names: Sequence[str], cases: Path) -> list[str]:
    """The modules below `cases` that declare the cases of these IDs; none where one of them is not
    found as it is written. So a run of one case imports one module, not all of them."""
    missing, modules = {f'id="{name}"' for name in names}, []
    for path in sorted(cases.rglob("*.py")) if names else ():
        text = path.read_text()
        if matched := {words for words in missing if words in text}:
            modules.append(str(path))
            missing -= matched
    return [] if missing else modules
