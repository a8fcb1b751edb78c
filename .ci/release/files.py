"""What is wrong with the files of a release, by what is in them."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from email import message_from_string
from pathlib import Path
from typing import Final

IN_WHEEL: Final = (
    "kubelet_conformance/spec/lifecycle.md",
    "kubelet_conformance/fixtures/bugs/117373.yaml",
    "kubelet_conformance/scenario.schema.json",
    "kubelet_conformance/cases/lifecycle/ending/stop.py",
    "kubelet_conformance/pytest.ini",
    "kubecri/v1/api_pb2.pyi",
    "fakecri/py.typed",
    "fakekubeapi/py.typed",
    "kubenodes/py.typed",
    "simclock/py.typed",
)
NOT_IN_WHEEL: Final = ("tests/", "docs/", "results/", "tools/", "benchmarks/", "protos/", ".ci/")
IN_SDIST: Final = (
    *("tests/conftest.py", "results/gates.json", "CHANGELOG.md", "tox.ini", "LICENSE"),
    *("README.md", "changes/README.md", "image/build", "action.yml", "docs/versions.md"),
)
JUNK: Final = ("__pycache__", ".pyc", ".mypy_cache", ".venv", ".tox", ".git/", ".log", ".db", "~")
FIELDS: Final = ("Summary", "License-Expression", "License-File", "Requires-Python", "Project-URL")
LARGEST_BYTES: Final = {".whl": 3_700_000, ".gz": 5_800_000}
"""A quarter more than they were when this was written."""


def names_in(file: Path) -> dict[str, int]:
    """What is in a wheel or an sdist, with sizes in bytes; in an sdist without its directory."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return {entry.filename: entry.file_size for entry in wheel.infolist()}
    with tarfile.open(file) as sdist:
        return {entry.name.partition("/")[2]: entry.size for entry in sdist if entry.isfile()}


def wrong_content(name: str, names: Mapping[str, int], size_bytes: int) -> Iterator[str]:
    """What is missing in a file called `name`, and what has no business there."""
    is_wheel = name.endswith(".whl")
    for wanted in IN_WHEEL if is_wheel else IN_SDIST:
        if wanted not in names:
            yield f"{name}: {wanted} is missing"
    for inside in names:
        if is_wheel and inside.startswith(NOT_IN_WHEEL):
            yield f"{name}: {inside} is in it"
        if any(part in inside for part in JUNK[:-1]) or inside.endswith(JUNK[-1]):
            yield f"{name}: {inside} is no source"
    most = LARGEST_BYTES[Path(name).suffix]
    if size_bytes > most:
        large = sorted(names, key=lambda inside: -names[inside])[:3]
        yield f"{name} has {size_bytes} bytes, more than {most}; the largest: {', '.join(large)}"


def wrong_metadata(wheel: Path) -> Iterator[str]:
    """What PyPI would show wrongly, beyond what `twine check` looks at."""
    with zipfile.ZipFile(wheel) as content:
        (name,) = (n for n in content.namelist() if n.endswith(".dist-info/METADATA"))
        told = message_from_string(content.read(name).decode())
    for field in FIELDS:
        if field not in told:
            yield f"{wheel.name}: {field} is missing in its metadata"
    page = str(told.get_payload())
    for target in re.findall(r"(?:\]\(|(?:src|srcset|href)=\")(?!https?:|#)([^)\"]+)", page):
        yield f"{wheel.name}: its page on PyPI has a link to nowhere, {target}"


def differences(one: Path, other: Path) -> Iterator[str]:
    """In which files two builds differ that should be the same byte for byte."""
    if one.read_bytes() == other.read_bytes():
        return
    ours, theirs = names_in(one), names_in(other)
    odd = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    yield f"{one.name}: a second build is another file ({', '.join(odd[:5]) or 'same sizes'})"
