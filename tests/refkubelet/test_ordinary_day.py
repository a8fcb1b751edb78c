"""What a kubelet logs on an ordinary day, on which nothing is wrong: no warning and no error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from node_world import Node, running_node
from pods import manifest

from fakecri import FakeCRI, exits, stops
from simclock import Ids, Rng

pytestmark = pytest.mark.virtual_time
SHELL = ["sh", "-c", "true"]
PROBE = {"exec": {"command": SHELL}, "periodSeconds": 2}


@contextmanager
def nothing_told(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the kubelet logs a warning or something worse in this block."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="refkubelet"):
        yield
    records = [r for r in caplog.records if r.name.startswith("refkubelet")]
    told = [f"{r.name}: {r.getMessage()}" for r in records]
    assert told == []


class FreshNode(Node):
    """A node that no cluster knows yet: there is neither its Node object nor its lease."""

    async def make_node_object(self) -> None:
        """Make none."""


async def object_of(node: Node, path: str) -> int:
    """The HTTP status with which the API server answers for an object."""
    assert node.api is not None
    status: int = (await node.api.request("GET", path)).status
    return status


async def test_a_first_start_is_quiet_NODE_002_NODE_041(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The kubelet makes its Node and its lease, and the mirror of a static pod; nothing is there
    yet: no pods, no images, no files, no directories."""
    node = FreshNode(tmp_path, with_api=True, seed=1, settings={})
    node.apply(manifest(name="static"))
    with nothing_told(caplog):
        await node.start()
        await asyncio.sleep(90)
        assert await object_of(node, "/api/v1/nodes/golden") == 200
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/golden"
        assert await object_of(node, lease) == 200
        assert await node.live_phase("static-golden") == "Running"
        await node.stop()


async def busy(node: Node) -> None:
    """Pods of all ordinary kinds come, work, change and go."""
    assert node.api is not None
    node.cri.behaves(stops(0, after_s=0.2))
    node.cri.behaves(exits(0, after_s=3), container="job")
    node.cri.behaves(exits(0, after_s=1), container="first")
    node.cri.behaves(exits(1, after_s=2), container="flaky", times=2)
    await node.api.request(
        "POST",
        "/api/v1/namespaces/default/configmaps",
        body={"metadata": {"name": "c"}, "data": {"k": "v"}},
    )
    node.apply(manifest(name="static"))
    await node.create(manifest(probed(), name="web", init=["first"], **mounted()))
    await node.create(manifest("job", name="job", restartPolicy="Never"))
    await node.create(manifest("flaky", name="flaky"))
    await node.until_live("web", "Running")
    await node.until_live("job", "Succeeded")
    await node.until_live("static-golden", "Running")
    await asyncio.sleep(150)  # log rotation, garbage collection, reports
    await node.restart(down_s=1)
    await asyncio.sleep(60)
    node.remove()
    for name in ("web", "job", "flaky"):
        await node.delete(name, grace_s=2)
    for name in ("web", "job", "flaky", "static-golden"):
        await node.until_gone(name)
    await asyncio.sleep(120)


def probed() -> dict[str, Any]:
    """A container with probes, hooks and a volume."""
    hook = {"exec": {"command": SHELL}}
    return {
        "name": "probed",
        "livenessProbe": PROBE,
        "readinessProbe": PROBE,
        "startupProbe": PROBE,
        "lifecycle": {"postStart": hook, "preStop": hook},
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("c", "e")],
    }


def mounted() -> dict[str, Any]:
    """The volumes of that container."""
    volumes = [{"name": "c", "configMap": {"name": "c"}}, {"name": "e", "emptyDir": {}}]
    return {"volumes": volumes}


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_life_of_pods_is_quiet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    """Also with a restart of the kubelet, and when containers fail, which is the pod's business
    and told in events."""
    with nothing_told(caplog):
        async with running_node(tmp_path, api=True, seed=seed) as node:
            await busy(node)


@pytest.mark.parametrize("writes_logs", [True, False])
async def test_a_kubelet_without_a_cluster_is_quiet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, writes_logs: bool
) -> None:
    """A kubelet that runs static pods only, also where the runtime writes no logs."""
    with nothing_told(caplog):
        async with running_node(tmp_path, started=False) as node:
            node.cri = FakeCRI(ids=Ids(Rng(1)), write_logs=writes_logs)
            await node.start()
            node.apply(manifest(name="static"))
            await node.until(lambda: node.phase("static-golden") == "Running")
            await asyncio.sleep(150)
            node.remove()
            await asyncio.sleep(60)
