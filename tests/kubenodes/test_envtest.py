"""etcd and kube-apiserver of envtest: with the real ones where KUBEBUILDER_ASSETS names them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubenodes.envtest import (
    CONTROLLERS,
    PROGRAMS,
    VARIABLE,
    EnvtestError,
    assets,
    control_plane,
)

pytest_plugins = ["pytester"]

NODE = """
import json, ssl, urllib.request
import yaml

def test_one(kube_node):
    config = yaml.safe_load(kube_node.kubeconfig.read_text())
    assert "127.0.0.1" in config["clusters"][0]["cluster"]["server"]
    assert kube_node.runs

def test_another(kube_nodes):
    assert len(kube_nodes(3)) == 3
"""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_programs_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnvtestError, match=f"etcd is not in {tmp_path}: set KUBEBUILDER_ASSETS"):
        assets({VARIABLE: str(tmp_path)})
    program(tmp_path / "etcd", "#!/bin/sh\n")
    with pytest.raises(EnvtestError, match="kube-apiserver is not in"):
        assets({VARIABLE: str(tmp_path)})
    program(tmp_path / "kube-apiserver", "#!/bin/sh\n")
    assert assets({VARIABLE: str(tmp_path)}) == tmp_path
    with pytest.raises(EnvtestError, match="kube-controller-manager is not in"):
        assets({VARIABLE: str(tmp_path)}, (*PROGRAMS, *CONTROLLERS))


def test_a_program_that_ends_at_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("etcd", "kube-apiserver"):
        program(tmp_path / name, "#!/bin/sh\necho no room left >&2\nexit 1\n")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(EnvtestError, match=r"etcd ended at its start: no room left"):
        with control_plane():
            pass


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} is not set")
def test_nodes_at_a_real_api_server(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(NODE)
    run = pytester.runpytest_subprocess("--kube-api", "envtest", "-p", "no:cacheprovider")
    run.assert_outcomes(passed=2)
