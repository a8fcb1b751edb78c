"""The structure holds: imports point one way, decisions are pure, `__all__` tells the truth."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from changes_of_state import Changes
from import_graph import imported_modules, names_in, source_files
from places import ROOT
from purity import DECIDES, PURE, current, docstring

PACKAGES = (
    "simclock",
    "kubecri",
    "kubeobjects",
    "fakecri",
    "fakekubeapi",
    "refkubelet",
    "kubenodes",
    "kubelet_conformance",
)

# package -> project packages it may import (docs/architecture.md, "Dependencies point one way")
ALLOWED = {
    "simclock": set(),
    "kubecri": set(),
    "kubeobjects": set(),
    "fakecri": {"simclock", "kubecri", "kubeobjects"},
    "fakekubeapi": {"simclock", "kubecri", "kubeobjects"},
    "refkubelet": {"simclock", "kubecri", "kubeobjects"},
    "kubenodes": {
        *("simclock", "kubecri", "kubeobjects"),
        *("fakecri", "fakekubeapi", "refkubelet"),
    },
    "kubelet_conformance": {
        *("simclock", "kubecri", "kubeobjects"),
        *("fakecri", "fakekubeapi", "refkubelet", "kubenodes"),
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
    ("__main__",),
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


def _imports(path: Path) -> set[str]:
    return names_in(ast.parse(path.read_text()))


@pytest.mark.parametrize("package", PACKAGES)
def test_dependencies_point_one_way(package: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in source_files(package)
        for name in sorted(_imports(path))
        if (top := name.split(".")[0]) in PACKAGES and top != package
        if top not in ALLOWED[package]
    ]
    assert wrong == []


def test_rooms_import_from_lower_floors_only() -> None:
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    files = dict(source_files("refkubelet"))
    wrong = [
        f"{name} imports {other}"
        for name, path in files.items()
        for other in sorted(imported_modules(path, files.keys()) - {"refkubelet"})
        if (here := _room(name)) != (there := _room(other)) and floor[there] >= floor[here]
    ]
    assert wrong == []
    assert {_room(name) for name in files} - {"refkubelet"} == floor.keys()


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def _impure(path: Path) -> set[str]:
    found = {name.split(".")[0] for name in _imports(path)} & IMPURE_IMPORTS
    if "pathlib" in found and "import PurePosixPath\n" in path.read_text():
        found.discard("pathlib")  # path names are texts
    return found


def _deciding_modules() -> dict[str, Path]:
    """Of the package that is imported: under tox the installed one."""
    files = dict(source_files("refkubelet"))
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
    files = {name: path for package in packages for name, path in source_files(package)}
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
    files = dict(source_files("refkubelet"))
    needed: set[str] = set()
    wrong: list[str] = []
    for name, path in _deciding_modules().items():
        for other in sorted(imported_modules(path, files.keys())):
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
    source = Path(module.__file__ or "").read_text()
    if source:
        assert module.__doc__, f"{name} has no docstring"
    for exported in getattr(module, "__all__", ()):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}, which is not there"
    if ">>> " in source:  # looking for examples takes most of the time
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "name",
    [
        "golden_forms",
        "import_graph",
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
