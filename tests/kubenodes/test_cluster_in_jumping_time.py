"""A cluster whose time jumps: etcd, kube-apiserver and controllers of upstream, and nodes of ours
in one time. Where KUBEBUILDER_ASSETS has the controllers, too."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from kubenodes import EnvtestError, NodePool, NodeSettings
from kubenodes.envtest import CONTROLLERS, PROGRAMS, assets, control_plane
from refkubelet.api.lightkube_client import LightkubeApiClient
from simclock import timewarp

DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
PODS: Final = "/api/v1/namespaces/default/pods"
REPLICAS: Final = 4
DEPLOYMENT: Final = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": REPLICAS,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "example.com/web:1"}]},
        },
    },
}


def missing() -> str:
    """Why it cannot be tried here; "": it can."""
    try:
        assets(os.environ, (*PROGRAMS, *CONTROLLERS))
    except EnvtestError as error:
        return str(error)
    return timewarp.why_not(str(assets(os.environ) / PROGRAMS[0])) or ""


async def asked(api: LightkubeApiClient, method: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    kind = "application/json" if body is not None else ""
    status, answer = await api.wire.request(method, path, content=content, content_type=kind)
    assert status < 300, answer
    return json.loads(answer)


def running(pods: Iterable[Any]) -> list[str]:
    """The nodes of pods that run and are not to go."""
    return [
        pod["spec"]["nodeName"]
        for pod in pods
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


async def until_all_run(api: LightkubeApiClient, nodes: set[str]) -> None:
    """Wait until all replicas run, on these nodes alone."""
    while True:
        places = running((await asked(api, "GET", PODS))["items"])
        if len(places) == REPLICAS and set(places) <= nodes:
            return
        await asyncio.sleep(5)


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_pods_of_a_dead_node_run_elsewhere_after_five_minutes(
    time_page: timewarp.TimePage, tmp_path: Path
) -> None:
    async def main(kubeconfig: Path) -> None:
        api, loop = LightkubeApiClient.from_kubeconfig(kubeconfig), asyncio.get_running_loop()
        settings = [NodeSettings(name=f"n-{number}") for number in range(2)]
        async with NodePool(settings, api, tmp_path) as pool:
            await asked(api, "POST", DEPLOYMENTS, DEPLOYMENT)
            await until_all_run(api, {"n-0", "n-1"})
            await pool["n-0"].power_off()
            began_s = loop.time()
            await until_all_run(api, {"n-1"})
            took_s = loop.time() - began_s
        await api.aclose()
        # 40 s or so until the node is not ready, then the 300 s that pods tolerate that.
        assert 300 < took_s < 420

    with control_plane(time_page, controllers=True) as kubeconfig:
        timewarp.run(lambda: main(kubeconfig), time_page)
