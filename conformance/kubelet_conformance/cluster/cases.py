"""Cases at a worker. A case is code, and does not travel: that of this package is there by its ID,
a scenario is made of its text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec import Struct

from kubelet_conformance.harness.runs.case_run import Result
from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.packaged import shipped
from kubelet_conformance.registry import Case
from kubelet_conformance.scenarios.case import case_of
from kubelet_conformance.scenarios.files import SUFFIXES
from kubelet_conformance.scenarios.reading import read_scenario
from kubelet_conformance.sources import PACKAGE, all_cases
from kubeobjects.strict.values import parse_yaml
from kubeobjects.structs import replace


class Named(Struct, frozen=True):
    """A case that a worker finds."""

    id: str
    file: str = ""
    """Of a scenario that is not of this package."""
    text: str = ""
    """What is in that file."""


def named(case: Case, path: Path) -> Named:
    """The case of that file. Raises EnvironmentProblem for one that is code of the user's."""
    if path.is_relative_to(PACKAGE) or path in shipped():
        return Named(case.id)
    if path.suffix in SUFFIXES:
        return Named(case.id, str(path), path.read_text())
    raise EnvironmentProblem(
        f"--dask: {path} is a module, which workers do not have; cases of this package and "
        "scenarios can run there"
    )


def run_named(name: Named, choice: Choice) -> Result:
    """Run that case in virtual time. Its code stays here."""
    result = run_virtual_case(_case(name), choice)
    return replace(result, case=None)  # type: ignore[arg-type]  # it does not travel


def _case(name: Named) -> Case:
    if not name.file:
        return _of_package()[name.id]
    return case_of(read_scenario(parse_yaml(name.text, name.file)), Path(name.file))


@cache
def _of_package() -> dict[str, Case]:
    return {case.id: case for case in all_cases()}
