"""Files that docstrings and pages name are there: a reader who is sent somewhere arrives."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from places import DOCS, ROOT

PACKAGES = (
    *("simclock", "timewarp", "kubeobjects", "fakecri", "fakekubeapi", "refkubelet"),
    "kubenodes",
)
MODULES = [
    *(path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))),
    *sorted(path for path in (ROOT / "conformance").rglob("*.py") if "cases" not in path.parts),
]
NAMED = re.compile(r"`((?:\w+/)*\w+\.py)\b")
NAMED_WITH_FOLDER = re.compile(r"`((?:[\w.-]+/)+\w+\.(?:py|json))\b")
HOMES = (".", "refkubelet", "tests", "fakecri", "conformance/kubelet_conformance/cases", "protos")
"""What the paths that pages name begin in."""


def missing(module: Path) -> list[str]:
    """The files that docstrings of a module name, and that are neither beside it nor in a folder
    that it is in."""
    with_docstrings = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = ast.walk(ast.parse(module.read_text()))
    texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, with_docstrings)]
    names = [name for text in texts for name in NAMED.findall(text)]
    return [name for name in names if not any((p / name).exists() for p in module.parents)]


def test_files_that_docstrings_name_are_there() -> None:
    wrong = {str(path.relative_to(ROOT)): names for path in MODULES if (names := missing(path))}
    assert wrong == {}


def test_a_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text('"""Read `gone/first.py`, then `there.py`."""\n')
    assert missing(tmp_path / "there.py") == ["gone/first.py"]


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_files_that_pages_name_are_there(page: Path) -> None:
    names = NAMED_WITH_FOLDER.findall(page.read_text())
    assert [n for n in names if not any((ROOT / home / n).exists() for home in HOMES)] == []
