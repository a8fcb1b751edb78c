"""Which modules of a package only decide: their docstrings have the sentence "Pure." or "No I/O."

The architecture test holds both free of loops, wires, machines, clocks and dice; mutmut changes
them. What is pure changes nothing that it is given, either, and keeps no state (`changes_of_state`
reads that off the source); what has no I/O may: a store, a token bucket, a record that is brought
up to date. `python tests/purity.py` writes mutmut's list in pyproject.toml anew.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PURE: Final = re.compile(r"(?<![\w-])Pure\.(?=\s|$)")
DECIDES: Final = re.compile(r"(?<![\w-])(Pure|No I/O)\.(?=\s|$)")
LIST: Final = re.compile(r"^only_mutate = \[\n.*?^\]\n", re.M | re.S)


def deciding_modules(folder: Path) -> list[Path]:
    """The files below the folder that are pure or have no I/O, sorted."""
    return [path for path in sorted(folder.rglob("*.py")) if DECIDES.search(docstring(path))]


def docstring(path: Path) -> str:
    """The module's own; "" if it has none."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def with_list(pyproject: str, modules: Iterable[str]) -> str:
    """The text of pyproject.toml with these files to mutate.

    >>> with_list("only_mutate = [\\n]\\n", ["a.py"])
    'only_mutate = [\\n  "a.py",\\n]\\n'
    """
    lines = "".join(f'  "{module}",\n' for module in modules)
    return LIST.sub(lambda _: f"only_mutate = [\n{lines}]\n", pyproject)


def current(pyproject: str) -> str:
    """The text as it should be."""
    packages = tomllib.loads(pyproject)["tool"]["mutmut"]["source_paths"]
    modules = [path for package in packages for path in deciding_modules(ROOT / package)]
    return with_list(pyproject, [str(path.relative_to(ROOT)) for path in modules])


if __name__ == "__main__":
    file = ROOT / "pyproject.toml"
    file.write_text(current(file.read_text()))
