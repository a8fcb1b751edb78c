"""The fixtures `kube_node`, `kube_nodes` and `kube_api`, used as other projects would."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pods_on_nodes import PODS, create, is_phase, pod

from fakecri import exits
from fakekubeapi import FakeApi
from kubenodes import ApiServer, KubeNode, NodeSettings, ServedNode
from kubenodes.served import serve_nodes
from simclock.loop_thread import LoopThread

pytest_plugins = ["pytester"]


@pytest.mark.virtual_time
async def test_a_pod_runs(kube_node: KubeNode, kube_api: FakeApi) -> None:
    await create(kube_api, "web", kube_node.name)
    running = await is_phase(kube_api, "web", "Running")
    assert running["status"]["podIP"]
    assert running["status"]["hostIP"] == kube_node.settings.address


@pytest.mark.virtual_time
async def test_a_container_that_fails_backs_off(kube_node: KubeNode, kube_api: FakeApi) -> None:
    kube_node.runtime.behaves(exits(3), pod="web")
    await create(kube_api, "web", kube_node.name)
    await asyncio.sleep(600)
    answer = await kube_api.request("GET", f"{PODS}/web")
    status = answer.body["status"]["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["restartCount"] == 6


@pytest.mark.virtual_time
@pytest.mark.kube_node(
    name="big",
    cpus=64,
    zone="b",
    labels={"pool": "gpu"},
    taints=({"key": "gpu", "value": "yes", "effect": "NoSchedule"},),
    kubelet={"maxPods": 7},
)
async def test_a_node_is_as_its_marker_says(kube_node: KubeNode, kube_api: FakeApi) -> None:
    node = (await kube_api.request("GET", "/api/v1/nodes/big")).body
    capacity, labels = node["status"]["capacity"], node["metadata"]["labels"]
    assert (capacity["cpu"], capacity["pods"]) == ("64", "7")
    assert (labels["topology.kubernetes.io/zone"], labels["pool"]) == ("b", "gpu")
    assert {"key": "gpu", "value": "yes", "effect": "NoSchedule"} in node["spec"]["taints"]


@pytest.mark.virtual_time
@pytest.mark.kube_node(cpus=2, zone="a", pods=5)
class TestMarkersOfClassAndTest:
    @pytest.mark.kube_node(cpus=3, pods=6)
    async def test_what_is_said_nearest_counts(self, kube_nodes: Callable[..., Any]) -> None:
        [node] = await kube_nodes(1, pods=7)
        settings = node.settings
        assert (settings.cpus, settings.zone, settings.pods) == (3, "a", 7)


@pytest.mark.virtual_time
async def test_several_in_virtual_time(kube_nodes: Callable[..., Any], kube_api: FakeApi) -> None:
    first = await kube_nodes(2, zone="a")
    second = await kube_nodes(1, zone="b")
    names = {node.name for node in (*first, *second)}
    nodes = (await kube_api.request("GET", "/api/v1/nodes")).body["items"]
    assert {node["metadata"]["name"] for node in nodes} == names
    assert len(names) == 3


def url_of(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])


def asked(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_in_real_time_a_test_may_block(kube_node: ServedNode) -> None:
    url = url_of(kube_node.kubeconfig)
    node = asked(f"{url}/api/v1/nodes/{kube_node.name}")
    assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
    kube_node.runtime.behaves(exits(0), pod="job")
    asked(f"{url}{PODS}", pod("job", kube_node.name, restartPolicy="Never"))
    kube_node.runtime.wait_for_calls("StartContainer")
    assert [c.name for c in kube_node.runtime.containers()] == ["main"]


def test_two_tests_do_not_meet(kube_node: ServedNode, kube_api: ApiServer) -> None:
    nodes = asked(f"{url_of(kube_api.kubeconfig)}/api/v1/nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == [kube_node.name]


def test_nothing_of_served_nodes_is_left(
    kube_thread: LoopThread, kube_api: ApiServer, tmp_path: Path
) -> None:
    url = url_of(kube_api.kubeconfig)
    nodes = [NodeSettings(name="served")]
    with serve_nodes(
        kube_thread, nodes, kube_api.client, kubeconfig=kube_api.kubeconfig, directory=tmp_path
    ) as [node]:
        asked(f"{url}{PODS}", pod("web", node.name))
        node.runtime.wait_for_calls("StartContainer")
        assert len(asked(f"{url}/api/v1/nodes")["items"]) == 1
    for kind in ("pods", "nodes"):
        assert asked(f"{url}/api/v1/{kind}")["items"] == []


def test_what_happens_to_nodes_in_real_time(kube_nodes: Callable[..., list[ServedNode]]) -> None:
    first, second = kube_nodes(2)
    first.power_off()
    assert (first.runs, second.runs) == (False, True)
    first.power_on()
    second.lose_network()
    second.restore_network()
    second.reboot()
    second.kill()
    second.start()
    second.ready()
    second.stop()
    assert (first.runs, second.runs) == (True, False)


ASKS = "def test_one(kube_node):\n    assert kube_node.runs\n"


@pytest.mark.parametrize(
    ("marker", "where", "sentence"),
    [
        ("cpu=3", "fake", "kube_node: NodeSettings has no argument 'cpu'; did you mean cpus?"),
        ("cpus=0", "fake", "kube_node: cpus: wanted 1 or more, got 0"),
        ("name='A b'", "fake", "kube_node: name: wanted small letters, digits, '-' and '.', got"),
        ("name='a' * 64", "fake", "kube_node: name: wanted 63 characters or less"),
        ("labels={'kubernetes.io/x': 'y'}", "fake", "kube_nodes: unknown 'kubernetes.io' or"),
        ("kubelet={'maxPods': -1}", "fake", "kube_nodes: kubelet of node kube-node-*maxPods"),
        ("", "nowhere.yaml", "kube_api: *nowhere.yaml"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    pytester: pytest.Pytester, marker: str, where: str, sentence: str
) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(f"import pytest\npytestmark = pytest.mark.kube_node({marker})\n{ASKS}")
    run = pytester.runpytest_inprocess("--kube-api", where, "-p", "no:cacheprovider")
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines(f"*{sentence.replace('[', '[[]')}*")
    assert "Traceback" not in run.stdout.str()
