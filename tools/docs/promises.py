"""Writes the tables of docs/promises.md: names that are imported, commands with their options.

Names are those of `__all__` of the packages with an API page, and whatever else the examples of our
pages import. `python tools/docs/promises.py` rewrites the page; with `--check` it says whether it
is current (exit code 1: it is not).
"""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))  # those beside it, also with PYTHONSAFEPATH

from markdown_tables import table
from source_pages import API

import fakecri.cli
import fakekubeapi.cli
import kubelet_conformance.cli
import kubenodes.cli

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "promises.md"
PLACE: Final = re.compile(r"(<!-- promised: (\w+) -->\n).*?(?=<!-- /promised -->)", re.S)
PACKAGES: Final = (*API, "fakecri.cgroupfs", "fakecri.deviceplugin")
"""Their `__all__` is promised."""
IMPORTED: Final = re.compile(
    r"^from ((?:fake|simclock|kubelet_conf|kubenodes)[\w.]*) import ([\w, ]+)", re.M
)
COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "fakecri": fakecri.cli.main,
    "fakekubeapi": fakekubeapi.cli.main,
    "kubelet-conformance": kubelet_conformance.cli.main,
    "kubenodes": kubenodes.cli.main,
}


def promised() -> dict[str, set[str]]:
    """The names that are promised, by module."""
    found = {name: set(importlib.import_module(name).__all__) for name in PACKAGES}
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py"), ROOT / "README.md"]
    for page in pages:
        for module, names in IMPORTED.findall(page.read_text()):
            modules = {name for name in names.split(", ") if f"{module}.{name}" in PACKAGES}
            found.setdefault(module, set()).update(set(names.split(", ")) - modules)
    return found


def names_table() -> str:
    rows = ((f"`{m}`", ", ".join(f"`{n}`" for n in sorted(ns))) for m, ns in promised().items())
    return table(("module", "names"), sorted(rows))


def commands_table() -> str:
    rows = ((f"`{words}`", ", ".join(f"`{o}`" for o in options)) for words, options in commands())
    return table(("command", "options"), rows)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command with its options, as its help has them. Commands of commands come after it."""
    for program, main in COMMANDS.items():
        todo: list[list[str]] = [[]]
        while todo:
            words = todo.pop(0)
            text = help_of(main, words)
            inner = commands_in(text)
            todo = [[*words, name] for name in inner] + todo
            rows = re.findall(r"^  (?:-\w, )?(--[\w-]+(?:, --[\w-]+)*)", text, re.M)
            options = sorted({word for row in rows for word in row.split(", ")} - {"--help"})
            if options or not inner:
                yield " ".join([program, *words]), options


def help_of(main: Callable[[Sequence[str]], int], words: Sequence[str]) -> str:
    output = io.StringIO()
    with redirect_stdout(output), suppress(SystemExit):
        main([*words, "--help"])
    return output.getvalue()


def commands_in(text: str) -> list[str]:
    """The commands that a help text lists, each with four spaces before it."""
    part = re.search(
        r"^positional arguments:\n  (?:\{|[A-Z]+$)(.*?)^\n?(?=\w|\Z)", text, re.M | re.S
    )
    return re.findall(r"^    ([a-z][\w-]*)", part[1], re.M) if part else []


def current(text: str) -> str:
    """The page with its tables as they are to be."""
    tables = {"names": names_table, "commands": commands_table}
    return PLACE.sub(lambda found: f"{found[1]}\n{tables[found[2]]()}\n", text)


def main(arguments: Sequence[str]) -> int:
    text = PAGE.read_text()
    made = current(text)
    if arguments == ["--check"]:
        if made != text:
            print(f"{PAGE}: rewrite it with: python tools/docs/{Path(__file__).name}")
        return int(made != text)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
