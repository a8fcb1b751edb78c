"""`refkubelet run` as a process, and files that would hold it up: it answers, other pods sync."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from process_world import POD, free_port, kubelet, until_runs, write_config

from fakecri import FakeCRI, exits
from fakecri.core.objects import State
from fakecri.machine.node import FakeNode
from fakecri.server import serve
from refkubelet.volumes.mounting import RealMounts

ENDS = """
apiVersion: v1
kind: Pod
metadata: {name: ends, uid: u-1}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: localhost/busybox:1
    volumeMounts: [{name: v, mountPath: /dev/termination-log, subPath: message}]
  volumes: [{name: v, emptyDir: {}}]
"""


async def healthy(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/healthz"
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as http,
        http.get(url) as got,
    ):
        return got.status == 200


async def until_ended(cri: FakeCRI, name: str) -> None:
    async with asyncio.timeout(60):
        while not any(  # noqa: ASYNC110 (another process starts them)
            c.pod.name == name and c.state is State.EXITED for c in cri.containers()
        ):
            await asyncio.sleep(0.05)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """What the kubelet mounts below it is undone."""
    yield tmp_path
    if os.geteuid() == 0:
        RealMounts().unmount_below(str(tmp_path))


async def test_a_fifo_as_termination_log_holds_no_other_pod_up_LIFE_145(directory: Path) -> None:
    port = free_port()
    config = write_config(directory, healthz_port=port)
    volume = directory / "root/pods/u-1/volumes/kubernetes.io~empty-dir/v"
    volume.mkdir(parents=True)
    os.mkfifo(volume / "message")
    manifests = directory / "manifests"
    (manifests / "ends.yaml").write_text(ENDS)
    cri = FakeCRI(node=FakeNode(image_root="/"))
    cri.behaves(exits(1), pod="ends-n1")
    async with (
        serve(cri, f"unix://{directory}/cri.sock") as server,
        kubelet(config, server.endpoint),
    ):
        await until_ended(cri, "ends-n1")
        (manifests / "other.yaml").write_text(POD.format(name="other"))
        await until_runs(cri, "other-n1")
        assert await healthy(port)


async def test_fifos_as_manifests_hold_no_other_pod_up_SRC_003(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(tmp_path, healthz_port=port)
    manifests = tmp_path / "manifests"
    os.mkfifo(tmp_path / "fifo")
    os.mkfifo(manifests / "a.yaml")
    (manifests / "b.yaml").symlink_to(tmp_path / "fifo")
    (manifests / "c.yaml").write_text(POD.format(name="other"))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint),
    ):
        await until_runs(cri, "other-n1")
        assert await healthy(port)
