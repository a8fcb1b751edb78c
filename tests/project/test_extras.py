"""A plain install has the fakes; what needs an extra says so in one line."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest
from places import ROOT

from refkubelet.wiring.extras import NEEDS

OF_EXTRAS = ("lightkube", "httpx2", "prometheus_client", "rich", "pytest", "mfusepy", "dbus_fast")
"""Modules that a plain install does not bring."""
WITHOUT = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OF_EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])
sys.meta_path.insert(0, Missing())
"""


def plain(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that has what a plain install has."""
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True)


def test_all_of_the_fakes_can_be_imported() -> None:
    # Those that belong to an extra: the pytest plugin, a D-Bus, mounts, lightkube's transport.
    others = "pytest_plugin|logind_bus|fuse|httpx_transport|__main__"
    done = plain(f"""
import importlib, pkgutil, re
for package in ("simclock", "kubecri", "kubeobjects", "fakecri", "fakekubeapi"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not re.search({others!r}, module.name):
            importlib.import_module(module.name)
""")
    assert (done.returncode, done.stderr) == (0, "")


REQUESTS: Final = """
import asyncio, json
from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.protobuf.envelope import encode_object
PODS = "/api/v1/namespaces/default/pods"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
       "spec": {"containers": [{"name": "c", "image": "i"}]}}
LABEL = {"metadata": {"labels": {"a": "b"}}}
OTHER = {**POD, "metadata": {"name": "other"}}
PATCH = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
async def answers():
    api = FakeApi(options=ServerOptions(field_managers=True))
    yield await api.request("POST", PODS, body=json.dumps(POD).encode())
    yield await api.request("PATCH", PODS + "/web", content_type=PATCH,
                            body=json.dumps(LABEL).encode())
    mine = {"fieldManager": "me"}
    yield await api.request("PATCH", PODS + "/new", params=mine, content_type=APPLY,
                            body=json.dumps({**POD, "metadata": {"name": "new"}}).encode())
    yield await api.request("POST", PODS, body=encode_object(OTHER),
                            content_type="application/vnd.kubernetes.protobuf")
    yield await api.request("POST", PODS, body=json.dumps({"spec": {"containers": 1}}).encode())
    for path in (PODS, "/openapi/v3/api/v1", "/openapi/v2"):
        yield await api.request("GET", path)
async def main():
    print(*[answer.status async for answer in answers()])
asyncio.run(main())
"""
"""Requests of all kinds and formats; their statuses are printed."""


def test_the_fake_api_server_answers_in_a_plain_install() -> None:
    done = plain(REQUESTS)
    assert (done.stdout.split(), done.stderr) == (
        ["201", "200", "201", "201", "400", "200", "200", "200"],
        "",
    )


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [("refkubelet", "run", "kubelet"), ("kubelet_conformance", "list", "conformance")],
)
def test_a_command_names_the_extra_it_needs(module: str, words: str, extra: str) -> None:
    done = plain(f"from {module}.cli import main; sys.exit(main([{words!r}]))")
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first.endswith(" is not installed")
    assert second == (
        f"  install it:  pip install 'refkubelet[{extra}]'  (a checkout: '.[{extra}]')"
    )


def test_the_kubelet_looks_at_its_start_for_all_that_it_imports_late() -> None:
    """A library that is not loaded with `refkubelet run` is in the table, with an extra that brings
    it; and nothing else is."""
    shown = "import refkubelet.daemon, sys; print(*{n.partition('.')[0] for n in sys.modules})"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    loaded, providers = set(done.stdout.split()), packages_distributions()
    plain_install = distributions_of()
    late = {
        module
        for file in (ROOT / "refkubelet").rglob("*.py")
        for module in modules_wanted(file)
        if module in providers and module not in loaded | own_packages() | OF_AIOHTTP
        if not plain_install & {plain_name(name) for name in providers[module]}
    }
    assert late == {need.module.partition(".")[0] for need in NEEDS}
    for need in NEEDS:
        brought = {plain_name(name) for name in providers[need.module.partition(".")[0]]}
        assert distributions_of(need.extra) & brought, need


OF_CONTAINERS: Final = frozenset({"testcontainers", "docker"})
"""docs/conformance.md names the extra that brings them."""
OF_CLUSTER: Final = frozenset({"distributed"})
"""docs/search.md does."""
OF_AIOHTTP: Final = frozenset({"multidict", "yarl"})
"""Types that its functions take."""
SUITE: Final = ("conformance", "fakecri/cgroupfs", "fakecri/machine", "simclock/timewarp")
"""What runs cases: the harness, and the machine and the buses that it gives to kubelets."""


def distributions_of(*extras: str) -> set[str]:
    """What `pip install '.[EXTRA]'` installs by name, the extras that it names included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted, found = list(extras), set[str]()
    asked = list(project["dependencies"])
    while wanted or asked:
        if wanted:
            asked += project["optional-dependencies"][wanted.pop()]
        while asked:
            name, extras = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", asked.pop()).groups()
            if name == "refkubelet":
                wanted += extras.split(",")
            else:
                found.add(plain_name(name))
    return found


def plain_name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def modules_wanted(file: Path) -> Iterator[str]:
    """The first words of what a module imports, and of what it asks `find_spec` for."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("find_spec"):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def test_the_extra_of_the_suite_brings_all_that_its_cases_need() -> None:
    brought, providers = distributions_of("conformance"), packages_distributions()
    missing = {
        module
        for folder in SUITE
        for file in (ROOT / folder).rglob("*.py")
        for module in modules_wanted(file)
        if module in providers and module not in OF_CONTAINERS | OF_CLUSTER | OF_AIOHTTP
        if not brought & {plain_name(name) for name in providers[module]}
    }
    assert missing - own_packages() == set()


def own_packages() -> set[str]:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    return {Path(place).name for place in wheel["targets"]["wheel"]["packages"]}
