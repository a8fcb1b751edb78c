"""The suite's registries, as far as they can be told without Docker, and one of them for real."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tomllib
from pathlib import Path

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri

from fakecri.server import GrpcUpstream
from kubelet_conformance.harness.containerd.archives import busybox_recipe, layer_and_config
from kubelet_conformance.harness.containerd.image_registries import (
    NodeRegistries,
    hosts_toml,
    registry_settings,
    write_image,
)
from kubelet_conformance.harness.containerd.settings import (
    REGISTRIES_DIR,
    NodeSettings,
    containerd_config,
)
from kubelet_conformance.harness.containerd.start import start_containerd
from kubelet_conformance.harness.image_registry import pull_secret
from kubelet_conformance.harness.runtimes.fake import FakeRegistry


def test_a_registry_listens_on_loopback_only_and_asks_for_a_password_if_closed() -> None:
    opened = registry_settings("/r", 5000, closed=False)
    closed = registry_settings("/r", 5001, closed=True)
    assert (opened["http"], closed["http"]) == (
        {"addr": "127.0.0.1:5000"},
        {"addr": "127.0.0.1:5001"},
    )
    assert "auth" not in opened
    assert closed["auth"] == {"htpasswd": {"realm": "registry", "path": "/r/htpasswd"}}


def test_containerd_is_told_of_the_loopback_alone() -> None:
    told = tomllib.loads(hosts_toml(5000))
    assert told["server"] == "http://127.0.0.1:5000"
    assert list(told["host"]) == ["http://127.0.0.1:5000"]


@pytest.mark.parametrize(
    ("version", "plugin"),
    [(2, "io.containerd.grpc.v1.cri"), (3, "io.containerd.cri.v1.images")],
)
def test_containerd_looks_for_registries_in_the_shared_directory(version: int, plugin: str) -> None:
    settings = NodeSettings(False, "/root", config_version=version)
    config = tomllib.loads(containerd_config(settings))
    assert config["plugins"][plugin]["registry"] == {"config_path": REGISTRIES_DIR}


def test_an_image_is_written_as_the_registry_stores_it(tmp_path: Path) -> None:
    recipe = busybox_recipe(b"program", ["sh"], "reg.test/team/app:1")
    layer, config = layer_and_config(recipe, "amd64")
    write_image(tmp_path, "team/app", "1", layer, config)
    root = tmp_path / "docker/registry/v2"
    here = root / "repositories/team/app"
    named = (here / "_manifests/tags/1/current/link").read_text()
    blobs = {
        f"sha256:{path.parent.name}": path.read_bytes()
        for path in (root / "blobs/sha256").glob("*/*/data")
    }
    assert all(f"sha256:{hashlib.sha256(blob).hexdigest()}" == key for key, blob in blobs.items())
    manifest = json.loads(blobs[named])
    assert blobs[manifest["config"]["digest"]] == config
    assert [blobs[entry["digest"]] for entry in manifest["layers"]] == [layer]
    for digest in (manifest["config"]["digest"], manifest["layers"][0]["digest"]):
        link = here / "_layers" / digest.replace(":", "/") / "link"
        assert link.read_text() == digest


async def test_the_fake_registry_plays_the_same() -> None:
    registry = FakeRegistry()
    await registry.add("app:1")
    assert registry(f"{registry.open_host}/app:1") is not None
    missing = registry(f"{registry.open_host}/app:2")
    assert missing is not None
    assert missing.error_code == "NOT_FOUND"
    assert registry("another.test/app:1") is None
    await registry.stop()
    refused = registry(f"{registry.open_host}/app:1")
    assert refused is not None
    assert refused.error.endswith("connection refused")


@pytest.mark.parametrize(("kind", "key"), [("dockerconfigjson", "auths"), ("dockercfg", "a.test")])
def test_a_pull_secret_has_the_format_of_its_type(kind: str, key: str) -> None:
    secret = pull_secret("login", "a.test", kind=kind)
    assert secret["type"] == f"kubernetes.io/{kind}"
    assert key in json.loads(base64.b64decode(secret["data"][f".{kind}"]))


async def pull(upstream: GrpcUpstream, host: str) -> None:
    image = cri.ImageSpec(image=f"{host}/app:1")
    await upstream.call("PullImage", cri.PullImageRequest(image=image), timeout_s=60)


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    os.environ.get("REFKUBELET_CONTAINERD") != "1",
    reason="real containerd: set REFKUBELET_CONTAINERD=1 (needs Docker)",
)
async def test_two_registries_of_a_node_do_not_know_each_other(tmp_path: Path) -> None:
    async with start_containerd(tmp_path) as node, GrpcUpstream(node.endpoint) as upstream:
        registries = NodeRegistries(node)
        first, second = await registries.make(), await registries.make()
        await first.add("app:1")
        await pull(upstream, first.open_host)
        with pytest.raises(grpc.RpcError) as failure:
            await pull(upstream, second.open_host)
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND
        await first.stop()
        with pytest.raises(grpc.RpcError, match="connection refused"):
            await pull(upstream, first.open_host)
        await first.start()
        await pull(upstream, first.open_host)
