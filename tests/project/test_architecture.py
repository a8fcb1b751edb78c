"""The structure holds: imports point one way, decisions are pure, `__all__` tells the truth."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import ModuleType

import pytest

PACKAGES = ("simtime", "criapi", "fakecri", "fakeapi", "refkubelet", "conformance")

# package -> project packages it may import (docs/architecture.md, "Dependencies point one way")
ALLOWED = {
    "simtime": set(),
    "criapi": set(),
    "fakecri": {"simtime", "criapi"},
    "fakeapi": {"simtime", "criapi"},
    "refkubelet": {"simtime", "criapi"},
    "conformance": {"simtime", "criapi", "fakecri", "fakeapi", "refkubelet"},
}

# Decisions: a function of frozen values. No loop, no wire, no machine, no clock.
PURE = (
    "refkubelet.runtime.gc_choice",
    "refkubelet.runtime.log_files",
    "refkubelet.event_correlator",
    "refkubelet.runtime.actions",
    "refkubelet.runtime.backoff",
    "refkubelet.runtime.grace",
    "refkubelet.runtime.image_choice",
    "refkubelet.runtime.image_keyring",
    "refkubelet.runtime.image_names",
    "refkubelet.runtime.image_records",
    "refkubelet.runtime.init_actions",
    "refkubelet.runtime.pod_actions",
    "refkubelet.runtime.reset_actions",
    "refkubelet.runtime.restart_policy",
    "refkubelet.pleg.compute",
    "refkubelet.pod_workers.transitions",
    "refkubelet.pod_workers.grace",
    "refkubelet.status.phase",
    "refkubelet.status.conditions",
    "refkubelet.status.container_statuses",
    "refkubelet.status.generate",
    "refkubelet.status.normalize",
    "refkubelet.status.readiness",
    "refkubelet.status.restart",
    "refkubelet.status.deadline",
    "refkubelet.status.merge",
    "refkubelet.status.patch",
    "refkubelet.pod_workers.requeue",
    "refkubelet.admission.resources",
    "refkubelet.probes.decide",
    "refkubelet.eviction.admission",
    "refkubelet.eviction.cycle",
    "refkubelet.eviction.kill",
    "refkubelet.eviction.local_storage",
    "refkubelet.eviction.messages",
    "refkubelet.eviction.ranking",
    "refkubelet.eviction.thresholds",
    "refkubelet.eviction.usage",
)
IMPURE_IMPORTS = {"asyncio", "grpc", "os", "time", "aiohttp", "socket", "random", "pathlib"}


def _source_files(package: str) -> Iterator[tuple[str, Path]]:
    root = Path(importlib.import_module(package).__path__[0])
    for path in sorted(root.rglob("*.py")):
        parts = (package, *path.relative_to(root).with_suffix("").parts)
        yield ".".join(parts).removesuffix(".__init__"), path


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
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
    found = _imports(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= parts
            if len(parts) == len(node.names):  # modules of a package, not the package
                found.discard(node.module)
    return found & modules


def test_no_module_of_the_kubelet_imports_in_a_circle() -> None:
    files = dict(_source_files("refkubelet"))
    left = {name: _imported_modules(path, files.keys()) for name, path in files.items()}
    while leaves := [name for name, imported in left.items() if not imported & left.keys()]:
        for name in leaves:
            del left[name]
    assert sorted(left) == []


@pytest.mark.parametrize("name", PURE)
def test_decision_modules_are_pure(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    imported = {n.split(".")[0] for n in _imports(Path(module.__file__))}
    assert imported & IMPURE_IMPORTS == set()


def _modules() -> list[str]:
    names = []
    for package in PACKAGES:
        root = importlib.import_module(package)
        names.append(package)
        names += [m.name for m in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return [n for n in names if "_pb2" not in n and not n.endswith("__main__")]


@pytest.mark.parametrize("name", _modules())
def test_module_says_what_it_is_and_exports_what_it_has(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    if Path(module.__file__ or "").stat().st_size > 0:
        assert module.__doc__, f"{name} has no docstring"
    for exported in getattr(module, "__all__", ()):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}, which is not there"
    results = doctest.testmod(module)
    assert results.failed == 0
