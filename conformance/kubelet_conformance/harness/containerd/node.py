"""A real containerd in a container, while it runs: directories, commands inside, images, restarts.

The container is a whole node for containerd; the kubelet stays outside. So directories whose names
travel in CRI calls (pod logs, kubelet root, containerd's own root) are mounted at the same path
inside and outside. `start_containerd` makes a node.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import grpc
from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from fakecri.server import GrpcUpstream
from kubelet_conformance.harness.containerd.archives import (
    ImageRecipe,
    app_recipe,
    busybox_recipe,
    image_archive,
    pause_recipe,
)
from kubelet_conformance.harness.containerd.docker_host import NodeError
from kubelet_conformance.harness.containerd.settings import (
    APP_IMAGE,
    BUSYBOX_IMAGES,
    PAUSE_IMAGE,
    SHARED_DIR,
)

READY_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.05
_TASKS: Final = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"


class ExecOutput(Struct, frozen=True):
    """What a command in the node's container answered."""

    exit_code: int
    stdout: str
    stderr: str


class NodeDirs(Struct, frozen=True):
    """Directories of one node below its work directory, the same path inside and outside."""

    workdir: Path

    @property
    def shared(self) -> Path:
        """Socket and configuration; inside it is `SHARED_DIR`."""
        return self.workdir / "node"

    @property
    def logs(self) -> Path:
        """The directory of pod logs."""
        return self.workdir / "logs"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root directory."""
        return self.workdir / "kubelet"

    @property
    def containerd(self) -> Path:
        """containerd's own root directory."""
        return self.workdir / "containerd"


class ContainerdNode:
    """A running containerd; `start_containerd` makes it.

    The methods that run a command in the container block the loop for its duration (about 0.1 s).
    """

    def __init__(self, container: Any, dirs: NodeDirs) -> None:
        self._container = container
        self._dirs = dirs
        self.version = ""
        """containerd's own version, `1.6.20~ds1`."""
        self.architecture = ""
        """Of the node, in Debian's and Go's words; known after `load_images`."""
        self._applets: tuple[str, ...] = ()

    @property
    def endpoint(self) -> str:
        """The CRI endpoint on this host, `unix:///...`."""
        return f"unix://{self._dirs.shared}/containerd.sock"

    @property
    def shared(self) -> Path:
        """The directory that the container sees as `SHARED_DIR`."""
        return self._dirs.shared

    @property
    def log_root(self) -> Path:
        """Where pod log directories belong (the kubelet's `podLogsDir`)."""
        return self._dirs.logs

    @property
    def kubelet_root(self) -> Path:
        """The kubelet's root directory: what it mounts into containers must be below it."""
        return self._dirs.kubelet

    def exec(self, command: Sequence[str]) -> ExecOutput:
        """Run `command` in the node's container, as root, and return what it answered."""
        code, (out, err) = self._container.exec_run(list(command), demux=True)
        return ExecOutput(code, (out or b"").decode(), (err or b"").decode())

    def check(self, command: Sequence[str]) -> str:
        """Like `exec`, returning stdout. Raises: NodeError if the command fails."""
        result = self.exec(command)
        if result.exit_code != 0:
            raise NodeError(
                f"`{shlex.join(command)}` failed in the node with code {result.exit_code}: "
                f"{(result.stderr or result.stdout).strip()}"
            )
        return result.stdout

    def kill(self, container_id: str, signal: str = "KILL") -> None:
        """Signal the main process of a container or sandbox, behind containerd's back.

        Raises: NodeError if it has no process.
        """
        self.check(["sh", "-c", f'kill -s {signal} "$(cat {_TASKS}/{container_id}/init.pid)"'])

    async def stop_containerd(self, signal: str = "TERM") -> None:
        """End containerd and keep it down; containers go on. Waits until it is gone."""
        (self._dirs.shared / "stay-down").touch()
        self.check(["sh", "-c", f'kill -s {signal} "$(cat /run/containerd.pid)"'])
        wait_until_ended = (
            'pid=$(cat /run/containerd.pid); while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done'
        )
        self.check(["timeout", f"{READY_TIMEOUT_S:.0f}", "sh", "-c", wait_until_ended])

    async def start_containerd(self) -> None:
        """Start it again after `stop_containerd` and wait until the CRI is ready."""
        (self._dirs.shared / "stay-down").unlink(missing_ok=True)
        await self.wait_ready()

    async def restart_containerd(self, signal: str = "TERM") -> None:
        """End containerd and start it again (CRI-160); containers go on."""
        await self.stop_containerd(signal)
        await self.start_containerd()

    async def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until Version answers and the runtime and its network are ready (CRI-130).

        Raises: NodeError with the last log lines.
        """
        problem = "nothing tried yet"
        try:
            async with asyncio.timeout(timeout_s), GrpcUpstream(self.endpoint) as upstream:
                while problem:
                    try:
                        problem = await self._not_ready(upstream)
                    except grpc.RpcError as error:
                        problem = f"{error.code().name}: {error.details()}"
                    await asyncio.sleep(_POLL_S if problem else 0)
                    self._require_running()
        except TimeoutError:
            raise NodeError(
                f"containerd was not ready after {timeout_s:.0f} s ({problem}); its last words:\n"
                + self.logs()
            ) from None

    async def _not_ready(self, upstream: GrpcUpstream) -> str:
        version = await upstream.call("Version", cri.VersionRequest(), timeout_s=5)
        status = await upstream.call("Status", cri.StatusRequest(), timeout_s=5)
        assert isinstance(version, cri.VersionResponse)
        assert isinstance(status, cri.StatusResponse)
        self.version = version.runtime_version
        missing = {"RuntimeReady", "NetworkReady"}
        missing -= {c.type for c in status.status.conditions if c.status}
        return f"not yet: {', '.join(sorted(missing))}" if missing else ""

    def _require_running(self) -> None:
        self._container.reload()
        if self._container.status != "running":
            raise NodeError(f"the node's container ended at once; its last words:\n{self.logs()}")

    def logs(self, lines: int = 20) -> str:
        """The last lines containerd wrote."""
        text: str = self._container.logs(tail=lines).decode(errors="replace")
        return text

    def load_images(self) -> None:
        """Make the images of cases and tests from the node's own static busybox and import them."""
        self.check(["cp", "-L", "/bin/busybox", f"{SHARED_DIR}/busybox"])
        self._applets = tuple(self.check(["/bin/busybox", "--list"]).split())
        self.architecture = self.check(["dpkg", "--print-architecture"]).strip()
        recipes = [self.busybox_image(tag) for tag in BUSYBOX_IMAGES]
        recipes.append(pause_recipe(self._busybox(), PAUSE_IMAGE))
        recipes.append(app_recipe(self._busybox(), self._applets, APP_IMAGE))
        archive = image_archive(recipes, self.architecture)
        (self.shared / "images.tar").write_bytes(archive)
        load = ("images", "import", f"{SHARED_DIR}/images.tar")
        try:
            self._ctr(*load)
        except NodeError:  # seen once on 1.7.24, just started: "image might be filtered out"
            self._ctr(*load)

    def busybox_image(self, tag: str) -> ImageRecipe:
        """An image like those of `load_images`, to be made elsewhere; after `load_images`."""
        return busybox_recipe(self._busybox(), self._applets, tag)

    def _busybox(self) -> bytes:
        return (self.shared / "busybox").read_bytes()

    def _ctr(self, *arguments: str) -> str:
        return self.check(
            ["ctr", "-a", f"{SHARED_DIR}/containerd.sock", "-n", "k8s.io", *arguments]
        )

    async def wait_images(self) -> None:
        """Wait until the CRI lists what `load_images` imported (it learns of it by an event)."""
        references = [*BUSYBOX_IMAGES, PAUSE_IMAGE, APP_IMAGE]
        async with asyncio.timeout(READY_TIMEOUT_S), GrpcUpstream(self.endpoint) as upstream:
            while references:
                request = cri.ImageStatusRequest(image=cri.ImageSpec(image=references[0]))
                answer = await upstream.call("ImageStatus", request, timeout_s=5)
                if isinstance(answer, cri.ImageStatusResponse) and answer.HasField("image"):
                    references.pop(0)
                else:
                    await asyncio.sleep(_POLL_S)

    async def remove_pods(self) -> None:
        """Stop and remove every pod, so that their cgroups and mounts go with them."""
        async with GrpcUpstream(self.endpoint) as upstream:
            listed = await upstream.call(
                "ListPodSandbox", cri.ListPodSandboxRequest(), timeout_s=10
            )
            assert isinstance(listed, cri.ListPodSandboxResponse)
            for item in listed.items:
                stop = cri.StopPodSandboxRequest(pod_sandbox_id=item.id)
                await upstream.call("StopPodSandbox", stop, timeout_s=20)
                remove = cri.RemovePodSandboxRequest(pod_sandbox_id=item.id)
                await upstream.call("RemovePodSandbox", remove, timeout_s=20)
