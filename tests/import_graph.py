"""Who imports whom: the modules of a package, read as text.

Imports count wherever they stand: at the top, in functions, and those for types alone.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path


def source_files(package: str) -> Iterator[tuple[str, Path]]:
    """The modules of a package by name, with their files."""
    root = Path(importlib.import_module(package).__path__[0])
    for path in sorted(root.rglob("*.py")):
        parts = (package, *path.relative_to(root).with_suffix("").parts)
        yield ".".join(parts).removesuffix(".__init__"), path


def names_in(tree: ast.AST) -> set[str]:
    """What follows `import` and `from`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    return names


def imported_in(tree: ast.AST, modules: AbstractSet[str]) -> set[str]:
    """Those of `modules` that a module imports."""
    names = names_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            names |= parts
            if len(parts) == len(node.names):  # modules of a package, not the package
                names.discard(node.module)
    return names & modules


def imported_modules(path: Path, modules: AbstractSet[str]) -> set[str]:
    """`imported_in` of a file."""
    return imported_in(ast.parse(path.read_text()), modules)


def imports_of(package: str) -> dict[str, set[str]]:
    """By module of a package: those of the package that it imports."""
    files = dict(source_files(package))
    return {name: imported_modules(path, files.keys()) - {name} for name, path in files.items()}


def of_folders(imports: Mapping[str, AbstractSet[str]]) -> dict[str, set[str]]:
    """By folder: the folders that its modules import from."""
    packages = {name.rpartition(".")[0] for name in imports}
    folders: dict[str, set[str]] = {}
    for name, others in imports.items():
        here = _folder(name, packages)
        folders.setdefault(here, set()).update({_folder(o, packages) for o in others} - {here})
    return folders


def _folder(module: str, packages: AbstractSet[str]) -> str:
    """The package that a module lies in; of one at the top, itself."""
    package = module.rpartition(".")[0]
    return module if module in packages or "." not in package else package


def in_circles(imports: Mapping[str, AbstractSet[str]]) -> list[str]:
    """Those from which a circle is reached.

    >>> in_circles({"a": {"b"}, "b": {"a"}, "c": set()})
    ['a', 'b']
    """
    left = {name: set(others) for name, others in imports.items()}
    while leaves := [name for name, others in left.items() if not others & left.keys()]:
        for name in leaves:
            del left[name]
    return sorted(left)


def faces(package: str) -> dict[str, tuple[set[tuple[str, str]], set[tuple[str, str]]]]:
    """The packages whose names are imported at first use (`kubeobjects.lazy`, or a table `_HOMES`):
    the pairs of module and name that types see, and those that Python imports."""
    there = {}
    for name, path in source_files(package):
        tree = ast.parse(path.read_text())
        if pairs := set(_at_first_use(tree)):
            there[name] = (
                set(_for_types(tree)),
                {(f"{name}.{home}", each) for home, each in pairs},
            )
    return there


def _at_first_use(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "face":
            for home, names in ast.literal_eval(node.args[1]).items():
                yield from ((home, each) for each in names.split())
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if ast.unparse(targets[0]) == "_HOMES":
                yield from ((home, each) for each, home in ast.literal_eval(node.value).items())


def _for_types(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for part in node.body:
                if isinstance(part, ast.ImportFrom) and part.module:
                    yield from ((part.module, alias.name) for alias in part.names)
