"""`refkubelet run` as a process meets what nobody means: it goes on, and pods can be stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from criapi.v1 import api_pb2 as cri_api
from process_world import PROGRAM, end, running, until_runs, write_config

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


async def run_outside(cri: FakeCRI, pods: int, containers: int) -> None:
    """What an earlier kubelet left in the runtime: that many pods with that many containers."""
    cri.images.add("img:1")
    for number in range(pods):
        labels = {
            "io.kubernetes.pod.uid": f"uid-{number}",
            "io.kubernetes.pod.name": f"old-{number}",
            "io.kubernetes.pod.namespace": "default",
        }
        meta = cri_api.PodSandboxMetadata(
            name=f"old-{number}", namespace="default", uid=f"uid-{number}"
        )
        config = cri_api.PodSandboxConfig(metadata=meta, labels=labels)
        box = await cri.call("RunPodSandbox", cri_api.RunPodSandboxRequest(config=config))
        for name in range(containers):
            labels = {**labels, "io.kubernetes.container.name": f"c{name}"}
            container = cri_api.ContainerConfig(
                metadata=cri_api.ContainerMetadata(name=f"c{name}"),
                image=cri_api.ImageSpec(image="img:1"),
                labels=labels,
            )
            made = await cri.call(
                "CreateContainer",
                cri_api.CreateContainerRequest(
                    pod_sandbox_id=box.pod_sandbox_id, config=container, sandbox_config=config
                ),
            )
            start = cri_api.StartContainerRequest(container_id=made.container_id)
            await cri.call("StartContainer", start)


async def test_more_events_than_the_queue_holds_stop_nothing_PLEG_303(tmp_path: Path) -> None:
    config = with_events(write_config(tmp_path, healthz_port=0))
    (tmp_path / "manifests" / "new.yaml").write_text(POD.format(name="new"))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    await run_outside(cri, pods=260, containers=4)
    cri.on("Status").delays(8, times=1)  # so long nobody takes the events of the first list
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint),
    ):
        await until(lambda: "new-n1" in running(cri))
