"""Keeps Kubernetes' feature gates, and where the kubelet asks them.

`python tools/docs/keep_gates.py SOURCE` reads the source tree of one version of Kubernetes and
writes results/gates.json: of each gate that a kubelet program knows its maturity, its default,
whether it is locked to that, the gates that it needs, and in which functions the kubelet asks it.
Only names are kept. A test compares them with the gates of refkubelet/config/gates.py.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

GATES: Final = Path(__file__).parents[2] / "results" / "gates.json"
VERSION: Final = (1, 36)
STAGING: Final = "staging/src/k8s.io"
TABLES: Final = (
    "pkg/features/kube_features.go",
    f"{STAGING}/client-go/features/known_features.go",
    f"{STAGING}/component-base/logs/api/v1/kube_features.go",
    f"{STAGING}/component-base/metrics/features/kube_features.go",
)
ASKING: Final = (
    "cmd/kubelet",
    "pkg/api/pod",
    "pkg/apis/core/v1",
    "pkg/apis/core/validation",
    "pkg/credentialprovider",
    "pkg/kubelet",
    "pkg/probe",
    "pkg/volume",
    f"{STAGING}/component-base/logs",
    f"{STAGING}/component-base/metrics",
    f"{STAGING}/component-base/zpages",
    f"{STAGING}/component-helpers",
)
ENTRY: Final = re.compile(r"^\t+([\w.]+): \{\n(.*?)^\t+\},", re.DOTALL | re.MULTILINE)
NEEDS: Final = re.compile(r"^\t([\w.]+):\s+\{(.*?)\},", re.MULTILINE)
NAME: Final = re.compile(r'\b(\w+)\s+(?:featuregate\.)?Feature\s*=\s*"(\w+)"')
FUNCTION: Final = re.compile(r"func (?:\([^)]*\) )?(\w+)")
Row = dict[str, Any]


def gates(source: Path) -> dict[str, Row]:
    """Name -> maturity, default, lock and needs, at this version."""
    names = dict(_names(source))
    found: dict[str, Row] = {}
    for table in TABLES:
        text = (source / table).read_text()
        for constant, specs in ENTRY.findall(text):
            if spec := _newest(specs):
                found[names.get(_last(constant), _last(constant))] = spec
        if "GateDependencies = " in text:
            for constant, needs in NEEDS.findall(text.split("GateDependencies = ", 1)[1]):
                needed = re.findall(r"\b[A-Z]\w+\b", re.sub(r"featuregate\.Feature", "", needs))
                if needed:
                    found[names[_last(constant)]]["needs"] = sorted(names[n] for n in needed)
    return found


def _names(source: Path) -> Iterator[tuple[str, str]]:
    for pattern in (
        "pkg/features/*.go",
        f"{STAGING}/**/*features*/*.go",
        f"{STAGING}/**/kube_*.go",
    ):
        for file in source.glob(pattern):
            yield from NAME.findall(file.read_text())


def _last(constant: str) -> str:
    return constant.rpartition(".")[2]


def _newest(specs: str) -> Row | None:
    """What the last line not newer than this version says."""
    told: Row | None = None
    for line in specs.splitlines():
        version = re.search(r'MustParse\("(\d+)\.(\d+)"\)', line)
        if version and (int(version[1]), int(version[2])) <= VERSION:
            stage = re.search(r"PreRelease:\s+(?:\w+\.)?(\w+)", line)
            told = {
                "stage": stage[1] if stage and stage[1] else "Alpha",
                "on": "Default: true" in line,
                "locked": "LockToDefault: true" in line,
            }
    return told


def places(source: Path, known: dict[str, Row]) -> dict[str, list[str]]:
    """Gate -> `file: function` wherever code of the kubelet names it."""
    constants = {n: n for n in known} | {c: n for c, n in _names(source) if n in known}
    asked: dict[str, set[str]] = {}
    for folder in ASKING:
        for file in sorted((source / folder).rglob("*.go")):
            if file.name.endswith(("_test.go", "kube_features.go")):
                continue
            for gate, function in _asked_in(file.read_text(), constants):
                asked.setdefault(gate, set()).add(f"{file.relative_to(source)}: {function}")
    return {gate: sorted(where) for gate, where in sorted(asked.items())}


def _asked_in(text: str, constants: dict[str, str]) -> Iterator[tuple[str, str]]:
    function = "-"
    for line in text.splitlines():
        if begins := FUNCTION.match(line):
            function = begins[1]
        if line.lstrip().startswith("//"):
            continue
        for constant in re.findall(r"\b(?:\w*features|Enabled\()\.?([A-Z]\w+)", line):
            if constant in constants:
                yield constants[constant], function


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="a source tree of Kubernetes")
    source = parser.parse_args().source
    known = gates(source)
    asked = places(source, known)
    rows = {name: {**known[name], "asked": asked.get(name, [])} for name in sorted(known)}
    GATES.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
