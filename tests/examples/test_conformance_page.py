"""The case that docs/conformance.md shows is whole: it runs outside of the package, and what it
imports of the harness has its place on the API page."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
import source_pages
from places import DOCS

import kubelet_conformance
from kubelet_conformance.cli import main
from kubelet_conformance.harness.node import Node

CASE = re.findall(
    r'^```python title="my_case.py"\n(.*?)^```', (DOCS / "conformance.md").read_text(), re.M | re.S
)
SHOWN = source_pages.BESIDE["kubelet_conformance"]


def test_the_case_runs_in_an_empty_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_case.py").write_text(CASE[0])
    assert main(["run", "-q", "my_case.py"]) == 0
    assert "1 passed" in capfd.readouterr().out


def test_what_the_case_imports_is_on_the_api_page() -> None:
    imports = [node for node in ast.walk(ast.parse(CASE[0])) if isinstance(node, ast.ImportFrom)]
    names = {
        (node.module or "", alias.name)
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("kubelet_conformance")
    }
    assert len(names) == 8
    for module, name in names - {("kubelet_conformance", n) for n in kubelet_conformance.__all__}:
        thing = getattr(import_module(module), name)
        home = thing.__name__ if inspect.ismodule(thing) else thing.__module__
        assert home in SHOWN or f"{home}.{name}" in SHOWN, f"{module}.{name}"


def test_node_and_each_of_its_parts_are_on_the_api_page() -> None:
    made = re.findall(r"\b(Node[A-Z]\w+)\(", Path(inspect.getfile(Node)).read_text())
    assert {"Node", *made} == {name.rpartition(".")[2] for name in SHOWN if "Node" in name}
    for name in SHOWN:
        module, _, kind = name.rpartition(".")
        assert hasattr(import_module(module), kind), name
