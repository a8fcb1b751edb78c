"""One port for all nodes: the API server gets logs of each pod from the kubelet that has it."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from kubecri.v1 import api_pb2 as cri
from pods_on_nodes import PODS, create, is_phase, pod

from fakecri import prints
from fakecri.serving.handed_over import pause
from fakekubeapi import FakeApi
from kubenodes import KubeNode, NodeSettings, ServedNode
from kubenodes.port import PoolPort, pod_of
from kubenodes.wire import client_of
from refkubelet.server.common.exchange import Request
from refkubelet.server.tls import context
from simclock import run_virtual


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/containerLogs/shop/web/main", ("shop", "web")),
        ("/exec/shop/web/uid/main", ("shop", "web")),
        ("/portForward/shop/web", ("shop", "web")),
        ("/exec/shop", None),
        ("/metrics", None),
        ("/logs/shop/web/main", None),
        ("/", None),
    ],
)
def test_which_pod_a_path_is_about(path: str, place: tuple[str, str] | None) -> None:
    assert pod_of(path) == place


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/containerLogs/shop/web/main", "pod shop/web is on none of these nodes"),
        ("/pods", "/pods: this port is that of several nodes, and answers for pods alone"),
    ],
)
def test_what_no_node_can_answer(tmp_path: Path, path: str, sentence: str) -> None:
    async def main() -> None:
        port = PoolPort(tuple, tmp_path)
        answer = await port.answer(Request(path=path))
        assert answer.status == 404
        assert sentence in answer.body.decode()
        await port.close()

    run_virtual(main)


def test_a_port_that_cannot_be_served_is_closed_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError("no certificate")

    monkeypatch.setattr(context, "server_context", refuse)

    async def main() -> None:
        port = PoolPort(tuple, tmp_path)
        port.open()
        _, writer = await asyncio.open_connection("127.0.0.1", port.number)
        await asyncio.sleep(0.1)
        with pytest.raises(OSError, match="no certificate"):
            await port.close()
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port.number)

    asyncio.run(main())


def test_streams_of_a_node_end_with_it(tmp_path: Path) -> None:
    async def main() -> None:
        api = FakeApi()
        node = KubeNode(NodeSettings(name="n"), client_of(api), tmp_path)
        await node.start()
        await node.ready()
        await create(api, "web", "n")
        await is_phase(api, "web", "Running")
        [container] = node.runtime.containers()
        asked_for = cri.ExecRequest(container_id=container.id, cmd=["true"], stdout=True)
        url = urlsplit((await node.runtime.call("Exec", asked_for)).url)
        await node.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(url.hostname, url.port)

    asyncio.run(main())


def test_settings_of_nodes_at_the_port_keep_what_was_given(tmp_path: Path) -> None:
    async def main() -> None:
        port = PoolPort(tuple, tmp_path)
        kubelet = {"maxPods": 3, "authorization": {"mode": "Webhook"}}
        settings = port.served(NodeSettings(kubelet=kubelet, runtime={"write_logs": False}))
        assert settings.address == "127.0.0.1"
        assert settings.kubelet["port"] == port.number
        assert settings.kubelet["authorization"] == {"mode": "Webhook"}
        assert settings.runtime == {"write_logs": False}
        await port.close()

    run_virtual(main)


def asked(node: ServedNode, path: str, body: Any = None) -> str:
    server = yaml.safe_load(node.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def test_logs_of_pods_on_two_nodes(kube_nodes: Callable[..., list[ServedNode]]) -> None:
    nodes = kube_nodes(2)
    for number, node in enumerate(nodes):
        node.runtime.behaves(prints(f"hello from {number}"), pod=f"web-{number}")
        asked(node, PODS, pod(f"web-{number}", node.name))
    for number, node in enumerate(nodes):
        path = f"{PODS}/web-{number}"
        while json.loads(asked(node, path))["status"]["phase"] != "Running":
            pause(0.05)
        assert asked(node, f"{path}/log") == f"hello from {number}\n"
    nodes[0].power_off()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        asked(nodes[0], f"{PODS}/web-0/log")
    assert asked(nodes[1], f"{PODS}/web-1/log") == "hello from 1\n"
