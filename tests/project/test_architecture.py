"""The structure holds: imports point one way, decisions are pure, `__all__` tells the truth."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
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
    "refkubelet.golang.grpc_codes",
    "refkubelet.golang.json",
    "refkubelet.golang.fnv",
    "refkubelet.host.addresses",
    "refkubelet.admission.apparmor",
    "refkubelet.admission.features",
    "refkubelet.admission.handlers",
    "refkubelet.admission.labels",
    "refkubelet.admission.node_fit",
    "refkubelet.admission.operating_system",
    "refkubelet.admission.resources",
    "refkubelet.admission.sysctls",
    "refkubelet.container_manager.cgroups.allocatable",
    "refkubelet.model.cpu_shares",
    "refkubelet.model.cgroup_limits",
    "refkubelet.model.cgroup_names",
    "refkubelet.container_manager.cgroups.node",
    "refkubelet.model.cgroup_values",
    "refkubelet.config.allocatable_validation",
    "refkubelet.config.field_validation",
    "refkubelet.config.resource_validation",
    "refkubelet.allocation.checkpoint",
    "refkubelet.allocation.handlers",
    "refkubelet.allocation.messages",
    "refkubelet.allocation.order",
    "refkubelet.allocation.resources",
    "refkubelet.config.validation",
    "refkubelet.events.correlator",
    "refkubelet.eviction.admission",
    "refkubelet.eviction.cycle",
    "refkubelet.eviction.config",
    "refkubelet.config.eviction_grammar",
    "refkubelet.eviction.kill",
    "refkubelet.eviction.layout",
    "refkubelet.eviction.local_storage",
    "refkubelet.eviction.messages",
    "refkubelet.eviction.ranking",
    "refkubelet.eviction.signals",
    "refkubelet.config.eviction_thresholds",
    "refkubelet.eviction.trace",
    "refkubelet.stats.usage",
    "refkubelet.stats.wire",
    "refkubelet.model.addresses",
    "refkubelet.model.defaults",
    "refkubelet.model.gates",
    "refkubelet.golang.duration",
    "refkubelet.model.hashes",
    "refkubelet.model.qos",
    "refkubelet.model.quantity",
    "refkubelet.model.resources",
    "refkubelet.config.gates",
    "refkubelet.model.complaints",
    "refkubelet.model.validation",
    "refkubelet.model.validation_container",
    "refkubelet.model.validation_pod",
    "refkubelet.model.validation_resources",
    "refkubelet.model.validation_values",
    "refkubelet.model.validation_volumes",
    "refkubelet.model.pod",
    "refkubelet.model.token_bucket",
    "refkubelet.model.pod_schema",
    "refkubelet.model.yaml_scalars",
    "refkubelet.node.shutdown",
    "refkubelet.node.status",
    "refkubelet.node.versions",
    "refkubelet.host.kernel_defaults",
    "refkubelet.node.oom_parse",
    "refkubelet.pleg.compute",
    "refkubelet.pod_workers.grace",
    "refkubelet.pod_workers.predicates",
    "refkubelet.pod_workers.requeue",
    "refkubelet.pod_workers.start_order",
    "refkubelet.pod_workers.transitions",
    "refkubelet.pod_workers.updates",
    "refkubelet.pods.manager",
    "refkubelet.pods.manifest",
    "refkubelet.pods.merge",
    "refkubelet.eviction.preemption_choice",
    "refkubelet.probes.decide",
    "refkubelet.model.ports",
    "refkubelet.checkpoints.checksum",
    "refkubelet.container_manager.devices.checkpoint",
    "refkubelet.container_manager.devices.choose",
    "refkubelet.container_manager.devices.health",
    "refkubelet.container_manager.devices.hints",
    "refkubelet.container_manager.devices.registration",
    "refkubelet.container_manager.devices.settings",
    "refkubelet.container_manager.containers",
    "refkubelet.container_manager.cpu.assignment",
    "refkubelet.container_manager.cpu.options",
    "refkubelet.container_manager.cpu.requests",
    "refkubelet.container_manager.cpu.state",
    "refkubelet.container_manager.cpu.static",
    "refkubelet.container_manager.cpu.topology",
    "refkubelet.model.cpuset",
    "refkubelet.checkpoints.errors",
    "refkubelet.golang.strconv",
    "refkubelet.container_manager.memory.files",
    "refkubelet.container_manager.memory.requests",
    "refkubelet.container_manager.memory.reserved",
    "refkubelet.container_manager.memory.state",
    "refkubelet.container_manager.memory.static",
    "refkubelet.model.placement",
    "refkubelet.container_manager.topology.hints",
    "refkubelet.container_manager.topology.merge",
    "refkubelet.container_manager.topology.numa",
    "refkubelet.container_manager.topology.options",
    "refkubelet.container_manager.topology.policies",
    "refkubelet.kuberuntime.decisions.mount_modes",
    "refkubelet.kuberuntime.decisions.actions",
    "refkubelet.kuberuntime.decisions.backoff",
    "refkubelet.cri.convert",
    "refkubelet.kuberuntime.config.downward_api",
    "refkubelet.kuberuntime.config.env_file",
    "refkubelet.kuberuntime.config.environment",
    "refkubelet.kuberuntime.decisions.gc_choice",
    "refkubelet.kuberuntime.decisions.grace",
    "refkubelet.kuberuntime.images.choice",
    "refkubelet.kuberuntime.images.keyring",
    "refkubelet.model.image_names",
    "refkubelet.kuberuntime.images.records",
    "refkubelet.kuberuntime.decisions.init_actions",
    "refkubelet.kuberuntime.config.linux_resources",
    "refkubelet.kuberuntime.config.memory",
    "refkubelet.kuberuntime.log_files",
    "refkubelet.kuberuntime.decisions.pod_actions",
    "refkubelet.kuberuntime.decisions.pod_resize",
    "refkubelet.kuberuntime.decisions.reset_actions",
    "refkubelet.kuberuntime.decisions.resize_actions",
    "refkubelet.kuberuntime.decisions.restart_policy",
    "refkubelet.kuberuntime.results",
    "refkubelet.kuberuntime.config.sandbox",
    "refkubelet.kuberuntime.config.security",
    "refkubelet.kuberuntime.config.service_environment",
    "refkubelet.status.conditions",
    "refkubelet.status.container_statuses",
    "refkubelet.status.deadline",
    "refkubelet.status.ended",
    "refkubelet.status.generate",
    "refkubelet.status.merge",
    "refkubelet.status.normalize",
    "refkubelet.status.patch",
    "refkubelet.status.phase",
    "refkubelet.status.readiness",
    "refkubelet.status.resources",
    "refkubelet.status.remembered",
    "refkubelet.status.sources",
    "refkubelet.status.restart_all",
    "refkubelet.volumes.plan",
)
IMPURE_IMPORTS = {"asyncio", "grpc", "os", "time", "aiohttp", "socket", "random", "pathlib"}
# What decisions import of modules that are not pure, and why that is no matter.
VALUES_BESIDE = {
    "refkubelet.host.machine": "the machine's topology as data; beside it a machine's interface",
    "refkubelet.model.probe_results": "the words Success and Failure; beside them a queue",
    "refkubelet.kuberuntime.config.dns": "the choice of resolvers; beside it reading resolv.conf",
    "refkubelet.kuberuntime.options": "frozen settings; beside them what the shells are given",
    "refkubelet.pod_workers.records": "the record of a worker; beside it the event it waits for",
}


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


def _impure(path: Path) -> set[str]:
    found = {name.split(".")[0] for name in _imports(path)} & IMPURE_IMPORTS
    if "pathlib" in found and "import PurePosixPath\n" in path.read_text():
        found.discard("pathlib")  # path names are texts
    return found


@pytest.mark.parametrize("name", PURE)
def test_decision_modules_are_pure(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    assert _impure(Path(module.__file__)) == set()


def test_what_decisions_import_is_pure_too_or_only_values() -> None:
    files = dict(_source_files("refkubelet"))
    needed: set[str] = set()
    wrong: list[str] = []
    for name in PURE:
        for other in sorted(_imported_modules(files[name], files.keys())):
            if _impure(files[other]):
                needed.add(other)
                wrong += [f"{name} imports {other}"] if other not in VALUES_BESIDE else []
    assert wrong == []
    assert needed == VALUES_BESIDE.keys()


def test_whoever_says_to_be_pure_is_among_the_decisions() -> None:
    says = [
        name
        for name, path in _source_files("refkubelet")
        if re.search(
            r"[:.] [Pp]ure\b(?!, apart from)", ast.get_docstring(ast.parse(path.read_text())) or ""
        )
    ]
    assert sorted(set(says) - set(PURE)) == []
    assert len(says) > 10


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
