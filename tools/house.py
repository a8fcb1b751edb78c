"""Numbers of the house: how large it is, and where it is crowded.

python tools/house.py [TREE ...]

One column for each tree (default: this one): lines of product code without docstrings, comments
and empty lines; folders with more than twenty modules; modules in circles when imports for types
count; files under version control; functions of more than fifty lines; records of more than fifteen
fields; strict readers of files; of each package how many local names of a hundred only say that
something is there, was found or is wanted (cases counted here).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Final

PRODUCT: Final = (
    *("simclock", "timewarp", "kubeobjects", "fakecri", "fakekubeapi", "refkubelet"),
    *("kubenodes", "conformance"),
)
NOT_PRODUCT: Final = ("conformance/cases/", "conformance/kubelet_conformance/cases/")
MOST_MODULES: Final = 20
MOST_LINES: Final = 50
MOST_FIELDS: Final = 15
SHAPES: Final = ("Struct", "Placed")
"""Bases of classes whose fields are the words of a file or of a body."""
MIRRORS: Final = {
    "KubeletConfiguration": "the fields of kubelet.config.k8s.io/v1beta1",
    "ContainerRecord": "the fields of the CRI's ContainerStatus",
    "ContainerUsage": "the fields of the CRI's ContainerStats",
    "PodSyncStatus": "the kubelet's podSyncStatus, which one worker has",
    "Field": "the words of a line in the table of API types",
    "Cgroup": "a directory of the kernel's cgroup filesystem, a field a file",
    "Memory": "the kernel's memory controller, a field a file",
    "Shell": "what POSIX says a shell has: $?, $!, $0, traps, options, ...",
    "Invocation": "what a program of a test is given: each field is a word that tests write",
    "FakeNode": "the machine as tests set it: each field is a word that tests write",
}
"""Records that are as large as what they mirror, and what that is."""
_EMPTY: Final = """
found known wanted told seen one shown made asked given left there here now said kept taken gone
others what mine theirs ours done held sent written
"""
EMPTY_WORDS: Final = frozenset(_EMPTY.split())
"""As the name of a value they say how it was come by, not what it is."""


def modules(tree: Path) -> dict[str, ast.Module]:
    """The product's modules by path, parsed."""
    paths = sorted(path for package in PRODUCT for path in (tree / package).rglob("*.py"))
    return {str(path.relative_to(tree)): ast.parse(path.read_text()) for path in paths}


def code_lines(module: ast.Module, text: str) -> int:
    """Lines that are neither empty, nor comments, nor docstrings."""
    strings: set[int] = set()
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                strings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in strings
        for number, line in lines
    )


def long_functions(module: ast.Module) -> Iterator[str]:
    """Functions of more than `MOST_LINES` lines."""
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES:
            yield node.name


def large_records(module: ast.Module) -> Iterator[str]:
    """Classes with more than `MOST_FIELDS` annotated fields, but those whose fields are somebody
    else's words: shapes of files (msgspec's structs), and `MIRRORS`."""
    for node in ast.walk(module):
        if not isinstance(node, ast.ClassDef) or node.name in MIRRORS:
            continue
        if any(isinstance(base, ast.Name) and base.id in SHAPES for base in node.bases):
            continue
        if sum(isinstance(part, ast.AnnAssign) for part in node.body) > MOST_FIELDS:
            yield node.name


def reads_strictly(module: ast.Module) -> bool:
    """Whether it is a strict reader of files: it tells of unknown keys or fields, and guesses what
    was meant."""
    guesses = tells = False
    for node in ast.walk(module):
        match node:
            case ast.Call(
                func=ast.Name(id="did_you_mean") | ast.Attribute(attr="get_close_matches")
            ):
                guesses = True
            case ast.Constant(value=str(text)) if re.match("unknown (key|field)\\b", text):
                tells = True
    return guesses and tells


def local_names(module: ast.Module) -> Iterator[str]:
    """The names that functions bind, each once for a function, without arguments."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            names: set[str] = set()
            inside: list[ast.AST] = list(function.body)
            while inside:
                node = inside.pop()
                match node:
                    case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                        continue
                    case ast.Name(ctx=ast.Store(), id=str(name)):
                        names.add(name)
                    case ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
                        names.add(name)
                inside += ast.iter_child_nodes(node)
            yield from names


def empty_words(modules_of_package: Iterable[ast.Module]) -> float:
    """How many local names of a hundred are among `EMPTY_WORDS`."""
    names = [name for module in modules_of_package for name in local_names(module)]
    return round(100 * sum(name in EMPTY_WORDS for name in names) / max(len(names), 1), 1)


def in_circles(parsed: Mapping[str, ast.Module]) -> set[str]:
    """Modules that import each other in a circle; imports for types count."""
    names = {_name(path): path for path in parsed}
    imports = {name: _imports(parsed[path], names.keys()) - {name} for name, path in names.items()}
    while True:  # what imports nothing that is left, or is imported by nothing, is in no circle
        ends = {name for name, others in imports.items() if not others & imports.keys()}
        ends |= imports.keys() - set().union(*imports.values(), set())
        if not ends:
            return set(imports)
        imports = {n: others - ends for n, others in imports.items() if n not in ends}


def _name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(module: ast.Module, there: Set[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & there
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names} & there
            found |= parts or ({node.module} & there)
    return found


def numbers(tree: Path) -> dict[str, float]:
    """All of a tree."""
    parsed = modules(tree)
    product = {path: module for path, module in parsed.items() if not path.startswith(NOT_PRODUCT)}
    folders = Counter(path.rpartition("/")[0] for path in parsed)
    files = subprocess.run(["git", "-C", str(tree), "ls-files"], capture_output=True, text=True)
    return {
        "lines of product code": sum(
            code_lines(module, (tree / path).read_text()) for path, module in product.items()
        ),
        "modules": len(product),
        f"folders of more than {MOST_MODULES} modules": sum(
            count - 1 > MOST_MODULES for count in folders.values()
        ),
        "modules in circles, imports for types counted": len(in_circles(parsed)),
        "files in the repository": len(files.stdout.splitlines()),
        f"functions of more than {MOST_LINES} lines": sum(
            len(list(long_functions(module))) for module in product.values()
        ),
        f"records of more than {MOST_FIELDS} fields": sum(
            len(list(large_records(module))) for module in product.values()
        ),
        "strict readers of files": sum(map(reads_strictly, product.values())),
        **{
            f"local names without meaning, {package}, %": empty_words(
                module for path, module in parsed.items() if path.startswith(f"{package}/")
            )
            for package in PRODUCT
        },
    }


def main(trees: list[str]) -> None:
    """Print a table."""
    columns = [numbers(Path(tree)) for tree in trees or [str(Path(__file__).parents[1])]]
    for row in columns[0]:
        print(f"{row:50}", *(f"{column[row]:>9}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
