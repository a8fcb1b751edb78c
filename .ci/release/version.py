"""The version that is released next, and the one place that says where the project lies."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

VERSION: Final = re.compile(r'^version = "([\d.]+)(\.dev\d+)?"$', re.M)
UNKNOWN: Final = "_OWNER_"
"""In place of an owner who is not known yet; nobody can have that name."""


def project(tree: Path) -> dict[str, Any]:
    return tomllib.loads((tree / "pyproject.toml").read_text())["project"]


def next_version(tree: Path) -> str:
    """What is released next: that of pyproject.toml without `.dev0`."""
    found = VERSION.search((tree / "pyproject.toml").read_text())
    assert found is not None, 'pyproject.toml: wanted a line version = "1.36.0.dev0"'
    return found[1]


def prepare(tree: Path) -> str:
    """Make the release of a tree: its version, and a chapter of CHANGELOG.md out of the fragments.

    Does nothing in a tree that is prepared. Returns the version.
    """
    version, file = next_version(tree), tree / "pyproject.toml"
    if version != project(tree)["version"]:
        file.write_text(VERSION.sub(f'version = "{version}"', file.read_text()))
        words = ["build", "--yes", "--version", version, "--dir", str(tree)]
        subprocess.run([sys.executable, "-m", "towncrier", *words], check=True, capture_output=True)
    return version


def wrong_change_log(tree: Path, told: list[str]) -> Iterator[str]:
    """What a prepared tree lacks. `told`: the texts of the fragments that there were."""
    version, text = next_version(tree), (tree / "CHANGELOG.md").read_text()
    if f"## {version} (" not in text:
        yield f"CHANGELOG.md has no chapter {version}"
    squeezed = " ".join(text.split())
    for fragment in told:
        if " ".join(fragment.split()) not in squeezed:
            yield f"CHANGELOG.md does not say: {fragment.splitlines()[0]}"
    left = [file.name for file in fragments(tree)]
    if left:
        yield f"changes/ still has {', '.join(left)}"


def fragments(tree: Path) -> list[Path]:
    return sorted(file for file in (tree / "changes").glob("*.*.md") if file.name[0] != ".")


def repository(tree: Path) -> str:
    """Where the project lies, without a slash at the end."""
    return str(project(tree)["urls"]["Repository"])
