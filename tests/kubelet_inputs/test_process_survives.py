"""`refkubelet run` as a process meets what nobody means: it goes on, and pods can be stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from test_cli_run import kubelet, until_runs, write_config

from fakecri import FakeCRI
from fakecri.node import FakeNode
from fakecri.server import serve

ODD_HOOK = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: "localhost/busybox:1"
    lifecycle: {preStop: {httpGet: {port: 80, host: "127.0.0.1:99"}}}
"""


async def until(condition: Callable[[], object], limit_s: float = 30) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 (another process makes it true)
            await asyncio.sleep(0.05)


async def test_a_pod_with_an_odd_hook_can_be_stopped_LIFE_143(tmp_path: Path) -> None:
    config = write_config(tmp_path, healthz_port=0)
    file = tmp_path / "manifests" / "web.yaml"
    file.write_text(ODD_HOOK)
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint) as process,
    ):
        await until_runs(cri, "web-n1")
        file.unlink()
        await until(lambda: cri.calls("StopContainer"), 12)
        process.stop()
        _, log = await process.end()
    assert "Traceback" not in log
    assert 'invalid host: ParseAddr("127.0.0.1:99")' in log
