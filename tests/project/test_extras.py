"""A plain install has the fakes; what needs an extra says so in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
for package in ("simclock", "kubecri", "fakecri", "fakekubeapi"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not re.search({others!r}, module.name):
            importlib.import_module(module.name)
""")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [("refkubelet", "run", "kubelet"), ("conformance", "list", "conformance")],
)
def test_a_command_names_the_extra_it_needs(module: str, words: str, extra: str) -> None:
    done = plain(f"from {module}.cli import main; sys.exit(main([{words!r}]))")
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first.endswith(" is not installed")
    assert second == (
        f"  install it:  pip install 'refkubelet[{extra}]'  (a checkout: '.[{extra}]')"
    )
