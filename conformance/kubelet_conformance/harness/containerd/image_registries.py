"""Real registries beside containerd, in its container: Debian's docker-registry on loopback.

A case's registry is two processes over one store, and the second asks for a password. Images are
written into the store in the registry's own layout, so nothing has to be pushed; containerd learns
the names from hosts.toml files, which it reads at every pull. No registry can be reached from
outside the container.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubelet_conformance.harness.containerd.archives import layer_and_config
from kubelet_conformance.harness.containerd.node import ContainerdNode
from kubelet_conformance.harness.containerd.settings import REGISTRIES_DIR, SHARED_DIR
from kubelet_conformance.harness.image_registry import CLOSED_HOST, OPEN_HOST, USER

FIRST_PORT: Final = 5000
START_TRIES: Final = 200  # a tenth of a second each
PASSWORD_HASH: Final = (
    "$2b$04$21V4uKHXT.7MRC8kDLIjz.ErWoV10S9L//poPTfjkKQtLRSND71x."  # bcrypt of `PASSWORD`
)
MANIFEST_TYPE: Final = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE: Final = "application/vnd.docker.container.image.v1+json"
LAYER_TYPE: Final = "application/vnd.docker.image.rootfs.diff.tar"


class NodeRegistries:
    """Makes the registries of one node; each gets its own ports and names."""

    def __init__(self, node: ContainerdNode) -> None:
        self._node = node
        self._ports: Iterator[int] = itertools.count(FIRST_PORT, 2)

    async def make(self) -> NodeRegistry:
        """A running, empty registry."""
        port = next(self._ports)
        registry = NodeRegistry(self._node, port)
        await registry.start()
        return registry


class NodeRegistry:
    """An `image_registry.ImageRegistry` of docker-registry processes."""

    def __init__(self, node: ContainerdNode, port: int) -> None:
        self.open_host = f"r{port}.{OPEN_HOST}"
        self.closed_host = f"r{port}.{CLOSED_HOST}"
        self._node = node
        self._directory = node.shared / f"registry-{port}"
        self._inside = f"{SHARED_DIR}/{self._directory.name}"
        self._ports = {self.open_host: port, self.closed_host: port + 1}
        self._configure()

    def _configure(self) -> None:
        self._directory.mkdir()
        (self._directory / "htpasswd").write_text(f"{USER}:{PASSWORD_HASH}\n")
        for host, port in self._ports.items():
            settings = registry_settings(self._inside, port, closed=host == self.closed_host)
            (self._directory / f"{port}.json").write_text(json.dumps(settings))
            names = self._node.shared / Path(REGISTRIES_DIR).name / host
            names.mkdir(parents=True)
            (names / "hosts.toml").write_text(hosts_toml(port))

    async def add(self, name: str) -> None:
        repository, _, tag = name.partition(":")
        recipe = self._node.busybox_image(f"{self.open_host}/{name}")
        layer, config = layer_and_config(recipe, self._node.architecture)
        write_image(self._directory / "store", repository, tag, layer=layer, config=config)

    async def stop(self) -> None:
        for port in self._ports.values():
            script = (
                f'pid=$(cat {self._inside}/{port}.pid) && kill "$pid" && '
                'while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done'
            )
            await self._in_node(script)

    async def start(self) -> None:
        for port in self._ports.values():
            run = f"docker-registry serve {self._inside}/{port}.json"
            log = f"{self._inside}/{port}.log"
            script = f"{run} >>{log} 2>&1 & echo $! > {self._inside}/{port}.pid"
            await self._in_node(script)
        for port in self._ports.values():
            await self._wait_for(port)

    async def _wait_for(self, port: int) -> None:
        await self._in_node(
            f"for try in $(seq {START_TRIES}); do "
            f"busybox nc -w 1 127.0.0.1 {port} </dev/null 2>/dev/null && exit; sleep 0.1; done; "
            f"tail -n 3 {self._inside}/{port}.log >&2; exit 1"
        )

    async def _in_node(self, script: str) -> None:
        """Run the script in the container. Raises NodeError.

        Docker's client blocks, and the proxies of other cases share this loop, so it runs in a
        thread; there is no virtual time here.
        """
        await asyncio.to_thread(self._node.check, ["sh", "-c", script])  # noqa: TID251


def registry_settings(directory: str, port: int, *, closed: bool) -> dict[str, object]:
    """docker-registry's configuration: loopback only, reads from `directory`."""
    settings: dict[str, object] = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": f"{directory}/store"}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    if closed:
        settings["auth"] = {"htpasswd": {"realm": "registry", "path": f"{directory}/htpasswd"}}
    return settings


def hosts_toml(port: int) -> str:
    """How containerd reaches a registry by its name: the mirror alone, and without TLS."""
    url = f"http://127.0.0.1:{port}"
    return f'server = "{url}"\n\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'


def write_image(store: Path, repository: str, tag: str, layer: bytes, config: bytes) -> None:
    """Put an image of one layer into a store of docker-registry's file system driver."""
    root = store / "docker/registry/v2"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor(CONFIG_TYPE, config),
            "layers": [_descriptor(LAYER_TYPE, layer)],
        }
    ).encode()
    repository_root = root / "repositories" / repository
    for blob in (layer, config, manifest):
        digest = hashlib.sha256(blob).hexdigest()
        _write(root / "blobs/sha256" / digest[:2] / digest / "data", blob)
        kind = "_manifests/revisions" if blob is manifest else "_layers"
        _link(repository_root / kind / "sha256" / digest, digest)
    digest = hashlib.sha256(manifest).hexdigest()
    _link(repository_root / "_manifests/tags" / tag / "index/sha256" / digest, digest)
    _link(repository_root / "_manifests/tags" / tag / "current", digest)


def _descriptor(media_type: str, blob: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
    return {"mediaType": media_type, "size": len(blob), "digest": digest}


def _link(directory: Path, digest: str) -> None:
    _write(directory / "link", f"sha256:{digest}".encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
