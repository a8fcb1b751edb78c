"""Where code cites rules: an ID in a docstring or a comment says that what it stands in carries the
rule out. Read from the source; nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

AREAS: Final = "LIFE|BACK|PLEG|GC|SRC|MIRR|STAT|EVIC|PREE|CG|PROBE|CRI|NODE|SRV|CFG"
CITED: Final = re.compile(rf"(?<![A-Za-z0-9])((?:{AREAS})[-_]\d{{3}})(\.\d{{1,2}})?(?!\d)")
RANGE: Final = re.compile(rf"\b({AREAS})-(\d{{3}})(?:\.\.| to (?:{AREAS})-)(\d{{3}})\b")
PRODUCT: Final = ("refkubelet", "kubeobjects", "fakecri", "fakekubeapi")
"""The packages whose code carries rules out, the kubelet's first."""


class Place(Struct, frozen=True):
    """A function, a method, a class or a table of a module that cites a rule."""

    path: str
    """From the folder of the packages: `refkubelet/pleg/compute.py`."""
    name: str
    """`compute_events`, `CriClient.version`; "" for what stands outside of all of them."""
    line: int
    """Where its definition starts; where the rule is cited, for what has no name."""
    first: str = ""
    """The first paragraph of its docstring; "" where it has none."""

    @property
    def module(self) -> str:
        """`refkubelet.pleg.compute`."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def is_function(self) -> bool:
        """As the names say: classes and tables begin with a capital letter."""
        return self.name.rpartition(".")[2].lstrip("_")[:1].islower()

    def __str__(self) -> str:
        return self.path + (f": {self.name}" if self.name else "")


Places = dict[str, list[Place]]
"""Rule or clause -> where it is cited, in order, each place once. Where a clause is cited, its rule
is, too."""


def cited(text: str) -> Iterator[tuple[int, str]]:
    """Line number and rule of every citation, and the clause where it names one; ranges name all
    between their ends."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in CITED.finditer(line):
            rule = match[1].replace("_", "-")
            yield number, rule
            if match[2]:
                yield number, rule + match[2]
        for area, first, last in RANGE.findall(line):
            for between in range(int(first), int(last) + 1):
                yield number, f"{area}-{between:03}"


def definitions(path: str, tree: ast.Module) -> list[tuple[range, Place]]:
    """What a module defines, each with its lines: functions, classes, methods, and what it assigns
    with the docstring below; not what functions define inside."""
    found: list[tuple[range, Place]] = []

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node, below in zip(body, [*body[1:], None], strict=False):
            last = node.end_lineno or node.lineno
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                name, said = f"{prefix}{node.name}", ast.get_docstring(node) or ""
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{name}.")
            elif not prefix and isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if not isinstance(target, ast.Name):
                    continue
                start, name, said = node.lineno, target.id, ""
                match below:
                    case ast.Expr(value=ast.Constant(value=str(said))):
                        last = below.end_lineno or last
            else:
                continue
            first = " ".join(said.partition("\n\n")[0].split())
            found.append((range(start, last + 1), Place(path, name, node.lineno, first)))

    visit(tree.body, "")
    return found


def places(files: Iterable[Path], root: Path, word: str = "") -> Places:
    """Where each rule is cited in these files, as far as `word` is in them, too."""
    found: Places = {}
    for file in files:
        text = file.read_text()
        if word not in text:
            continue
        path = str(file.relative_to(root))
        defined = definitions(path, ast.parse(text))
        for number, citation in cited(text):
            around = [(len(lines), i) for i, (lines, _) in enumerate(defined) if number in lines]
            place = defined[min(around)[1]][1] if around else Place(path, "", number)
            here = found.setdefault(citation, [])
            if not any((one.path, one.name) == (place.path, place.name) for one in here):
                here.append(place)
    return found


def home_of(package: str) -> Path | None:
    """The folder that a package is installed in; nothing is imported."""
    spec = find_spec(package)
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]).parent if locations else None


def product_files() -> Iterator[tuple[Path, list[Path]]]:
    """The modules of each package of `PRODUCT` that is installed, with the folder that it is in."""
    for package in PRODUCT:
        if (home := home_of(package)) is not None:
            yield home, sorted((home / package).rglob("*.py"))


def product_places(word: str = "") -> Places:
    """Where the product cites each rule, as far as `word` is in the same file."""
    found: Places = {}
    for root, files in product_files():
        for citation, of in places(files, root, word).items():
            found.setdefault(citation, []).extend(of)
    return found


def product_definitions(words: Iterable[str]) -> Iterator[Place]:
    """What the product's modules define, of those that have one of these words in them."""
    for root, files in product_files():
        for file in files:
            text = file.read_text()
            lower = text.lower()
            if any(word in lower for word in words):
                yield from _defined(file, root)


@cache
def _defined(file: Path, root: Path) -> tuple[Place, ...]:
    """What a module of the product defines; it is read once, for it stays as it is."""
    found = definitions(str(file.relative_to(root)), ast.parse(file.read_text()))
    return tuple(place for _, place in found)


def closest(cited_at: Iterable[Place]) -> list[Place]:
    """The places in the order of reading: functions, then classes and tables, then heads of files;
    of a file of which something else is there without its head."""
    given = list(cited_at)
    named = {place.path for place in given if place.name}
    kept = [place for place in given if place.name or place.path not in named]
    return sorted(kept, key=lambda place: (not place.is_function, not place.name))
