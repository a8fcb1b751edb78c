"""`refkubelet run` as a process meets nonsense and overload: it goes on, pods can be stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from process_world import PROGRAM, end, running, until_runs, write_config
from runtime_calls import left_by_a_kubelet

from fakecri import FakeCRI
from fakecri.machine.node import FakeNode
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


class Running:
    """`refkubelet run`, its log in a file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    def has_ended(self) -> bool:
        return self._process.returncode is not None

    def log(self) -> str:
        return self._log.read_text()


@asynccontextmanager
async def kubelet(config: Path, endpoint: str) -> AsyncIterator[Running]:
    """Runs until the end of the block."""
    log = config.parent / "kubelet.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, "run", "--config", str(config)),
            *("--hostname-override", "n1", "--root-dir", str(config.parent / "root")),
            *("--container-runtime-endpoint", endpoint),
            stderr=file,
        )
    try:
        yield Running(process, log)
    finally:
        await end(process)


async def until(condition: Callable[[], object], limit_s: float = 200) -> None:
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
    log = process.log()
    assert "Traceback" not in log
    assert 'invalid host: ParseAddr("127.0.0.1:99")' in log


POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec: {{containers: [{{name: main, image: "localhost/busybox:1"}}]}}
"""


def with_events(config: Path) -> Path:
    """The same configuration with the gate EventedPLEG."""
    gates = "featureGates: {EventedPLEG: true, "
    config.write_text(config.read_text().replace("featureGates: {", gates))
    return config


async def test_more_events_than_the_queue_holds_stop_nothing_PLEG_303(tmp_path: Path) -> None:
    config = with_events(write_config(tmp_path, healthz_port=0))
    (tmp_path / "manifests" / "new.yaml").write_text(POD.format(name="new"))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    for number in range(260):
        await left_by_a_kubelet(cri, f"old-{number}", "c0", "c1", "c2", "c3")
    cri.on("Status").delays(8, times=1)  # for so long the events of the first list are not taken
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint),
    ):
        await until(lambda: "new-n1" in running(cri))
