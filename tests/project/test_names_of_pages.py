"""Each class of ours that a page names can be had from where the page says: it shows the import, or
the name with its module; and the name is on the pages of the API."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
import source_pages
from places import DOCS, ROOT

PACKAGES = ("simclock", "fakecri", "fakekubeapi", "kubenodes")
READERS = ("", "fakecri", "tutorials", "from")
"""Folders of pages for users. Others tell of the inside, and name files."""
INSIDE = ("architecture", "decisions", "found", "gaps", "verified", "rules", "kubelets", "promises")
PAGES = [
    page
    for folder in READERS
    for page in sorted((DOCS / folder).glob("*.md"))
    if page.stem not in INSIDE
]
CAMEL = re.compile(r"[A-Z][a-z]+[A-Z]\w*|Fake[A-Z]+|CgroupFS")
METHODS = {"ExecSync"}
"""Names of CRI calls, as classes in ours are called, too."""


def classes() -> set[str]:
    """The names of public classes of the packages."""
    modules = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    nodes = (node for file in modules for node in ast.parse(file.read_text()).body)
    names = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    return {name for name in names if CAMEL.fullmatch(name)} - METHODS


CLASSES = classes()


def named(text: str) -> set[str]:
    """The classes that a page names in code, whatever is around them."""
    code = re.findall(r"`([^`\n]+)`", text)
    code += re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.M | re.S)
    return {name for part in code for name in re.findall(r"\b[A-Z]\w+", part)} & CLASSES


def homes(text: str) -> dict[str, str]:
    """The classes of which a page says where they are -> the module."""
    found = {}
    for module, names in re.findall(r"from ([\w.]+) import (\([^)]*\)|[^\n`]+)", text):
        found |= dict.fromkeys(re.findall(r"\w+", names), module)
    ours = "|".join(PACKAGES)
    for module, name in re.findall(rf"\b((?:{ours})(?:\.[a-z_]\w*)*)\.([A-Z]\w+)", text):
        found.setdefault(name, module)
    return {name: module for name, module in found.items() if name in CLASSES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_what_a_page_names_is_where_it_says(page: Path) -> None:
    text = page.read_text()
    said = homes(text)
    assert named(text) - said.keys() == set()
    for name, module in said.items():
        assert hasattr(import_module(module), name), f"{module} has no {name}"


def test_what_pages_name_is_on_the_pages_of_the_api() -> None:
    shown = {name for names in source_pages.BESIDE.values() for name in names}
    for package in source_pages.API:
        module = import_module(package)
        things = (inspect.unwrap(getattr(module, name)) for name in module.__all__)
        shown |= {f"{t.__module__}.{t.__qualname__}" for t in things if inspect.isclass(t)}
    pages = [homes(page.read_text()) for page in PAGES]
    things = {getattr(import_module(module), name) for p in pages for name, module in p.items()}
    assert len(things) > 10
    assert {f"{thing.__module__}.{thing.__qualname__}" for thing in things} - shown == set()


def test_a_name_without_a_home_is_noticed() -> None:
    text = "`KubeletOptions(...)`, and from fakekubeapi import ServerOptions, `ServerOptions`"
    assert named(text) - homes(text).keys() == {"KubeletOptions"}
