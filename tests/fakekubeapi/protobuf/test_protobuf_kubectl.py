"""kubectl's typed clients: `create`, which sends protobuf, and the evictions of `drain`. With the
kubectl that REFKUBELET_KUBECTL names."""

import asyncio
import os
from pathlib import Path

import pytest
from fakekubeapi_helpers import NODES, PODS, pod

from fakekubeapi import FakeApi
from fakekubeapi.bodies import PROTOBUF
from fakekubeapi.cli import kubeconfig
from fakekubeapi.http import serve

KUBECTL = os.environ.get("REFKUBELET_KUBECTL", "")
pytestmark = pytest.mark.skipif(not KUBECTL, reason="REFKUBELET_KUBECTL names no kubectl")


async def kubectl(url: str, home: Path, *words: str) -> str:
    """What it says. It must succeed."""
    config = home / "kubeconfig"
    config.write_text(kubeconfig(url))
    process = await asyncio.create_subprocess_exec(
        KUBECTL,
        *words,
        env={"KUBECONFIG": str(config), "HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return told.decode()


async def test_what_is_created_is_protobuf(tmp_path: Path) -> None:
    api = FakeApi()
    async with await serve(api) as server:
        words = ("create", "configmap", "c", "--from-literal=a=b")
        assert await kubectl(server.url, tmp_path, *words) == "configmap/c created\n"
        told = await kubectl(
            server.url, tmp_path, "get", "configmap", "c", "-o", "jsonpath={.data}"
        )
    assert told == '{"a":"b"}'
    (record,) = api.requests("POST")
    assert (record.content_type, record.body["data"]) == (PROTOBUF, {"a": "b"})


async def test_a_drained_node_has_its_pods_evicted(tmp_path: Path) -> None:
    api = FakeApi()
    await api.request("POST", NODES, body={"metadata": {"name": "n"}})
    await api.request("POST", PODS, body=pod(node="n"))
    async with await serve(api) as server:
        words = ("drain", "n", "--force", "--grace-period=0")
        assert "node/n drained" in await kubectl(server.url, tmp_path, *words)
    (record,) = api.requests("POST", path="/eviction$")
    assert record.status == 201
    assert record.body["deleteOptions"]["gracePeriodSeconds"] == 0
