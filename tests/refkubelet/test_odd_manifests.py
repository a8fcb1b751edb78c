"""Manifests of odd content: each touches its own pod only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from node_world import running_node
from pods import container, manifest

pytestmark = pytest.mark.virtual_time


def with_container(**fields: Any) -> dict[str, Any]:
    return manifest(container(**fields), name="odd")


async def test_a_limit_beyond_64_bits_is_the_most_there_is(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        amounts = {"requests": {"memory": "1Mi"}, "limits": {"memory": "16E"}}
        node.apply(with_container(resources=amounts))
        await node.until(lambda: node.phase("odd-golden") == "Running", 20)
        config = node.cri.calls("CreateContainer")[0].request.config
        assert config.linux.resources.memory_limit_in_bytes == 2**63 - 1


async def test_a_sub_path_that_cannot_be_is_told_of_its_container_NODE_211(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        mounts = [{"name": "v", "mountPath": "/v", "subPath": "a\0b"}]
        pod = with_container(volumeMounts=mounts)
        pod["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
        node.apply(pod)
        await node.clock.sleep(30)
        why = 'failed to prepare subPath for volumeMount "v" of container "main"'
        assert node.waiting("odd-golden") == ("CreateContainerConfigError", why)
        assert f"Error: {why}" in node.events("Failed")


async def test_a_host_path_that_cannot_be_is_told_before_the_sandbox_NODE_204(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        pod = with_container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
        host_path = {"path": "/a\0b", "type": "DirectoryOrCreate"}
        pod["spec"]["volumes"] = [{"name": "v", "hostPath": host_path}]
        node.apply(pod)
        await node.clock.sleep(30)
        assert node.waiting("odd-golden") == ("ContainerCreating", None)
        assert "RunPodSandbox" not in node.write_names()
        assert "embedded null byte" in node.events("FailedMount")[0]


async def test_one_odd_manifest_holds_up_no_other(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest(name="late", activeDeadlineSeconds=2**62), "a.yaml")
        no_zone = manifest(name="zone")
        no_zone["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00"
        node.apply(no_zone, "b.yaml")
        (node.paths.manifests / "c.yaml").write_bytes(b"- " * 100_000)
        (node.paths.manifests / "d.yaml").write_text("kind: 0x_\n")
        node.apply(manifest(name="good"), "e.yaml")
        await node.until(lambda: node.phase("good-golden") == "Running", 20)
        assert len(node.shown()) == 1
