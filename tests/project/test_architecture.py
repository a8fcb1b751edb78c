"""The structure holds: imports point one way, decisions are pure, `__all__` tells the truth."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import ModuleType

import pytest
from changes_of_state import Changes
from places import ROOT
from purity import DECIDES, PURE, current, docstring

PACKAGES = (
    "simclock",
    "timewarp",
    "kubecri",
    "kubeobjects",
    "fakecri",
    "fakekubeapi",
    "refkubelet",
    "conformance",
)

# package -> project packages it may import (docs/architecture.md, "Dependencies point one way")
ALLOWED = {
    "simclock": set(),
    "timewarp": {"simclock"},
    "kubecri": set(),
    "kubeobjects": set(),
    "fakecri": {"simclock", "timewarp", "kubecri", "kubeobjects"},
    "fakekubeapi": {"simclock", "timewarp", "kubecri", "kubeobjects"},
    "refkubelet": {"simclock", "kubecri", "kubeobjects"},
    "conformance": {
        *("simclock", "timewarp", "kubecri", "kubeobjects"),
        *("fakecri", "fakekubeapi", "refkubelet"),
    },
}

# The floors of refkubelet, the lowest first: a room imports from lower floors only, and never from
# its own (docs/architecture.md, "rooms on floors").
FLOORS = (
    ("model",),
    ("failures", "telemetry", "command_flags", "operation_backoff"),
    ("cri", "host", "checkpoints"),
    ("config", "admission"),
    ("api",),
    ("events", "object_manager", "certificates"),
    ("volumes", "container_manager", "plugin_manager", "allocation", "stats"),
    ("kuberuntime",),
    ("pleg", "status"),
    ("eviction", "probes", "node", "pods", "server"),
    ("pod_workers",),
    ("sync_loop",),
    ("wiring",),
    ("kubelet",),
    ("daemon",),
    ("cli",),
)
IMPURE_IMPORTS = {"asyncio", "grpc", "os", "time", "aiohttp", "socket", "random", "pathlib"}
# What these work out of a table of types they keep; nobody can tell the second call from the first.
KEPT = ("kubeobjects.schema.messages.Schema.message", "kubeobjects.schema.messages.Schema.kinds")
# What decisions import of modules that are not pure, and why that is no matter.
VALUES_BESIDE = {
    "refkubelet.container_manager.devices.plugins": "a plugin, to be kept; beside it its calls",
    "refkubelet.model.probe_results": "the words Success and Failure; beside them a queue",
    "refkubelet.kuberuntime.common.runtime_options": "options; beside them where files are",
    "refkubelet.pod_workers.sync_status": "a worker's record; beside it the event it waits for",
}


def _source_files(package: str) -> Iterator[tuple[str, Path]]:
    root = Path(importlib.import_module(package).__path__[0])
    for path in sorted(root.rglob("*.py")):
        parts = (package, *path.relative_to(root).with_suffix("").parts)
        yield ".".join(parts).removesuffix(".__init__"), path


def _imports(path: Path) -> set[str]:
    return _names_in(ast.parse(path.read_text()))


def _names_in(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_dependencies_point_one_way(package: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in _source_files(package)
        for name in sorted(_imports(path))
        if (top := name.split(".")[0]) in PACKAGES and top != package
        if top not in ALLOWED[package]
    ]
    assert wrong == []


def _imported_modules(path: Path, modules: AbstractSet[str]) -> set[str]:
    """Those of `modules` that the file imports, at its top or later."""
    return _imported_in(ast.parse(path.read_text()), modules)


def _imported_in(tree: ast.AST, modules: AbstractSet[str]) -> set[str]:
    found = _names_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= parts
            if len(parts) == len(node.names):  # modules of a package, not the package
                found.discard(node.module)
    return found & modules


def test_rooms_import_from_lower_floors_only() -> None:
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    files = dict(_source_files("refkubelet"))
    wrong = [
        f"{name} imports {other}"
        for name, path in files.items()
        for other in sorted(_imported_modules(path, files.keys()) - {"refkubelet"})
        if (here := _room(name)) != (there := _room(other)) and floor[there] >= floor[here]
    ]
    assert wrong == []
    assert {_room(name) for name in files} - {"refkubelet"} == floor.keys()


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "kubecri"])
def test_no_modules_and_no_folders_import_in_a_circle(package: str) -> None:
    """Imports inside functions count, too; those for types alone do not."""
    files = dict(_source_files(package))
    imports = {name: _at_run_time(path, files.keys()) for name, path in files.items()}
    assert _in_circles({name: others - {name, package} for name, others in imports.items()}) == []
    folders: dict[str, set[str]] = {}
    for name, others in imports.items():
        here = folders.setdefault(_folder(name, files), set())
        here.update(_folder(other, files) for other in others)
    apart = {name: others - {name, package} for name, others in folders.items()}
    assert _in_circles(apart) == []


def _folder(module: str, files: Mapping[str, Path]) -> str:
    """The package that a module lies in; of one at the top, itself."""
    if files[module].name == "__init__.py":
        return module
    package = module.rpartition(".")[0]
    return package if "." in package else module


def _at_run_time(path: Path, modules: AbstractSet[str]) -> set[str]:
    """Those of `modules` that the file imports when it runs, at its top or later."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    return _imported_in(tree, modules) | _late_in(tree) & modules


def _late_in(tree: ast.AST) -> set[str]:
    """What a module of fakecri reaches through `fakecri.late`, at first use."""
    from fakecri.late import _HOMES as homes

    return {
        f"{homes[node.attr]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id == "late" and node.attr in homes
    }


def _in_circles(imports: Mapping[str, AbstractSet[str]]) -> list[str]:
    left = {name: set(others) for name, others in imports.items()}
    while leaves := [name for name, others in left.items() if not others & left.keys()]:
        for name in leaves:
            del left[name]
    return sorted(left)


def _impure(path: Path) -> set[str]:
    found = {name.split(".")[0] for name in _imports(path)} & IMPURE_IMPORTS
    if "pathlib" in found and "import PurePosixPath\n" in path.read_text():
        found.discard("pathlib")  # path names are texts
    return found


def _deciding_modules() -> dict[str, Path]:
    """Of the package that is imported: under tox the installed one."""
    files = dict(_source_files("refkubelet"))
    return {name: path for name, path in files.items() if DECIDES.search(docstring(path))}


def test_no_two_modules_of_tests_have_one_name() -> None:
    """pytest imports each by its name alone, and takes the second for the first."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_modules_that_say_so_only_decide() -> None:
    deciding = _deciding_modules()
    wrong = {name: found for name, path in deciding.items() if (found := _impure(path))}
    assert wrong == {}
    assert len(deciding) > 100


def test_modules_that_say_so_change_nothing_that_they_are_given() -> None:
    packages = [package for package in PACKAGES if package != "kubecri"]  # generated
    files = {name: path for package in packages for name, path in _source_files(package)}
    changes = Changes({name: ast.parse(path.read_text()) for name, path in files.items()}, KEPT)
    pure = [name for name, path in files.items() if PURE.search(docstring(path))]
    assert {name: found for name in pure if (found := changes.of(name))} == {}
    assert len(pure) > 200


def test_what_mutmut_changes_are_the_modules_that_decide() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert text == current(text), "run python tests/purity.py"


def test_mutmut_asks_the_tests_of_every_room_that_decides() -> None:
    """Otherwise nothing would notice a mutant of that room, whatever its tests say."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    parts = [Path(module).parts for module in settings["only_mutate"]]
    rooms = {
        "tests/kubeobjects" if package == "kubeobjects" else f"tests/{package}/{inner[0]}"
        for package, *inner in parts
        if package == "kubeobjects" or len(inner) > 1
    }
    asked = set(settings["pytest_add_cli_args_test_selection"])
    assert rooms - asked == set()
    assert [folder for folder in sorted(asked) if not (ROOT / folder).is_dir()] == []


def test_what_deciding_modules_import_decides_too_or_has_only_values() -> None:
    files = dict(_source_files("refkubelet"))
    needed: set[str] = set()
    wrong: list[str] = []
    for name, path in _deciding_modules().items():
        for other in sorted(_imported_modules(path, files.keys())):
            if _impure(files[other]):
                needed.add(other)
                wrong += [f"{name} imports {other}"] if other not in VALUES_BESIDE else []
    assert wrong == []
    assert needed == VALUES_BESIDE.keys()


def _modules() -> list[str]:
    names = []
    for package in PACKAGES:
        root = importlib.import_module(package)
        names.append(package)
        names += [m.name for m in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return [n for n in names if "_pb2" not in n and not n.endswith("__main__")]


@pytest.mark.parametrize("name", _modules())
def test_module_says_what_it_is_and_exports_what_it_has(name: str) -> None:
    try:
        module: ModuleType = importlib.import_module(name)
    except ImportError as error:
        if "; install " not in str(error):  # it says what this machine lacks
            raise
        pytest.skip(str(error))
    if Path(module.__file__ or "").stat().st_size > 0:
        assert module.__doc__, f"{name} has no docstring"
    for exported in getattr(module, "__all__", ()):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}, which is not there"
    results = doctest.testmod(module)
    assert results.failed == 0


@pytest.mark.parametrize(
    "name",
    [
        "golden_forms",
        "mutant_tables",
        "mutant_plan",
        "pods",
        "purity",
        "rule_folds",
        "source_pages",
        "unit_mutant_forks",
        "unit_mutant_functions",
        "unit_mutant_trees",
        "unit_mutants",
    ],
)
def test_examples_of_what_tests_work_with_hold(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
