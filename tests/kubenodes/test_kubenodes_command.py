"""The command `kubenodes`, as a script in any language starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fakecri.serving.handed_over import pause
from kubenodes import ApiServer, NodeError, NodePool, pool
from kubenodes.cli import main

TEMPLATE: Final = """\
nodes:
  - name: worker
    count: 3
    zones: [a, b]
    memory: 64Gi
    labels: {pool: general}
  - name: gpu
    taints: [{key: gpu, value: "yes", effect: NoSchedule}]
    kubelet: {maxPods: 30}
behaviors:
  - {pod: job, exits: {code: 0}}
"""
POD: Final = {
    "metadata": {"name": "job"},
    "spec": {
        "nodeName": "gpu-0",
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "example.com/job:1"}],
    },
}


@contextmanager
def kubenodes(*arguments: str, ready: Path) -> Iterator[subprocess.Popen[str]]:
    """The command runs, and its nodes are ready, inside the block; SIGTERM ends it."""
    command = [sys.executable, "-m", "kubenodes.cli", *arguments, "--ready-file", str(ready)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not ready.exists():
            assert process.poll() is None, process.stderr and process.stderr.read()
            pause(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


class _Client:
    def __init__(self, server: ApiServer) -> None:
        config = yaml.safe_load(server.kubeconfig.read_text())
        self._url = config["clusters"][0]["cluster"]["server"]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self._url + path) as answer:
            return json.load(answer)

    def post(self, path: str, body: Any) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), headers)
        urllib.request.urlopen(request).close()

    def nodes(self) -> dict[str, Any]:
        return {node["metadata"]["name"]: node for node in self.get("/api/v1/nodes")["items"]}


def test_a_template(kube_api: ApiServer, tmp_path: Path) -> None:
    template, ready = tmp_path / "nodes.yaml", tmp_path / "ready"
    template.write_text(TEMPLATE)
    client = _Client(kube_api)
    arguments = ["--kubeconfig", str(kube_api.kubeconfig), "--nodes", str(template)]
    with kubenodes(*arguments, ready=ready):
        names = ["worker-0", "worker-1", "worker-2", "gpu-0"]
        assert ready.read_text().split() == names
        nodes = client.nodes()
        assert nodes.keys() == set(names)
        zones = [
            nodes[name]["metadata"]["labels"].get("topology.kubernetes.io/zone") for name in names
        ]
        assert zones == ["a", "b", "a", None]
        assert nodes["gpu-0"]["status"]["capacity"]["pods"] == "30"
        assert nodes["worker-1"]["status"]["capacity"]["memory"] == "64Gi"
        client.post("/api/v1/namespaces/default/pods", POD)
        while client.get("/api/v1/namespaces/default/pods/job")["status"]["phase"] != "Succeeded":
            pause(0.05)
    assert client.nodes() == {}
    assert client.get("/api/v1/pods")["items"] == []


def test_keep(kube_api: ApiServer, tmp_path: Path) -> None:
    arguments = ["--kubeconfig", str(kube_api.kubeconfig), "--name", "mine", "--keep"]
    for turn in range(2):  # nodes of this package are taken over
        with kubenodes(*arguments, ready=tmp_path / f"ready{turn}"):
            pass
        assert _Client(kube_api).nodes().keys() == {"mine-0"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--count", "0"], "--count: wanted 1 or more, got 0"),
        (["--nodes", "{template}", "--count", "3"], "--nodes FILE says how many nodes there are"),
        (["--nodes", "/no/such/file"], "/no/such/file"),
        (["--nodes", "{wrong}"], "nodes[0]: unknown key 'cpu'"),
        (["--nodes", "{impossible}"], "name: wanted small letters, digits, '-' and '.', got"),
        (["--nodes", "{twins}"], "two nodes have the name 'twin-0'"),
        (["--name", "A"], "name: wanted small letters"),
        (["--ready-file", "/no/such/directory/ready"], "--ready-file /no/such/directory/ready: No"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    kube_api: ApiServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    files = {"template": TEMPLATE, "wrong": "nodes: [{name: a, cpu: 3}]"}
    files["impossible"] = "nodes: [{name: A_b}]"
    files["twins"] = "nodes: [{name: twin}, {name: twin}]"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    given = [word.format(**{name: tmp_path / name for name in files}) for word in arguments]
    assert main(["--kubeconfig", str(kube_api.kubeconfig), *given]) == 2
    errors = capfd.readouterr().err
    assert sentence in errors
    assert errors.startswith("kubenodes: ")
    assert _Client(kube_api).nodes() == {}


def test_a_signal_while_nodes_get_ready(kube_api: ApiServer) -> None:
    assert kube_api.fake is not None
    kube_api.fake.fails("PATCH", "nodes/slow-0/status$", 500)
    command = [sys.executable, "-m", "kubenodes.cli", "--kubeconfig", str(kube_api.kubeconfig)]
    process = subprocess.Popen([*command, "--name", "slow"], stderr=subprocess.DEVNULL)
    while not _Client(kube_api).nodes():
        assert process.poll() is None
        pause(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert _Client(kube_api).nodes() == {}


def test_the_seed_is_that_of_the_nodes(
    kube_api: ApiServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Refused(NodePool):
        def __init__(self, *arguments: Any, seed: int, **options: Any) -> None:
            raise NodeError(f"the seed is {seed}")

    monkeypatch.setattr(pool, "NodePool", Refused)
    assert main(["--kubeconfig", str(kube_api.kubeconfig), "--seed", "7"]) == 2
    assert capfd.readouterr().err == "kubenodes: the seed is 7\n"


def test_no_api_server(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    assert main(["--kubeconfig", str(kubeconfig)]) == 2
    assert str(kubeconfig) in capfd.readouterr().err
    from fakekubeapi.cli import kubeconfig as kubeconfig_text

    kubeconfig.write_text(kubeconfig_text("http://127.0.0.1:1"))
    assert main(["--kubeconfig", str(kubeconfig)]) == 2
    errors = capfd.readouterr().err
    assert errors.startswith("kubenodes: GET http://127.0.0.1:1/api/v1/nodes: ")
    assert len(errors.splitlines()) == 1
