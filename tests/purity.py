"""Which modules of a package only decide: those whose docstring has the sentence "Pure."

The architecture test holds them free of loops, wires, machines, clocks and dice; mutmut changes
them. `python tests/purity.py` writes mutmut's list in pyproject.toml anew.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SAYS_SO: Final = re.compile(r"(?<![\w-])Pure\.(?=\s|$)")
LIST: Final = re.compile(r"^only_mutate = \[\n.*?^\]\n", re.M | re.S)


def pure_modules(folder: Path) -> list[Path]:
    """The files below the folder, sorted."""
    return [path for path in sorted(folder.rglob("*.py")) if SAYS_SO.search(docstring(path))]


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
    modules = [path for package in packages for path in pure_modules(ROOT / package)]
    return with_list(pyproject, [str(path.relative_to(ROOT)) for path in modules])


if __name__ == "__main__":
    file = ROOT / "pyproject.toml"
    file.write_text(current(file.read_text()))
