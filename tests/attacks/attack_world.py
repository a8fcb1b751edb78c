"""A kubelet process with a fake API server, runtime and storage driver, and containers that race.

The fakes run in this process, the kubelet in one of its own, in real time. What containers would do
to their volumes does `kubelet_conformance.harness.machines.racing`. `PROBE` notes how much CPU time
each callback of the kubelet's loop takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from pods import container, manifest
from process_world import end, free_port

from fakecri import FakeCRI
from fakecri.csi import FakeCsiDriver
from fakecri.deviceplugin.registered import ServedRegistry, csi_plugin
from fakecri.machine.node import FakeNode
from fakecri.server import serve
from fakekubeapi import FakeApi
from fakekubeapi.cli import kubeconfig as kubeconfig_of
from fakekubeapi.http import serve as serve_api
from kubelet_conformance.harness.kubelets.base import NodePaths
from kubelet_conformance.harness.machines.racing import make_outside
from kubelet_conformance.harness.node.parts import kubelet_config
from simclock import RealClock

DISKS: Final = "disks.example"
PODS: Final = "/api/v1/namespaces/default/pods"
GROUP: Final = os.getgid() if os.geteuid() else 4321
LOOK_S: Final = 0.05
LIMIT_S: Final = 200.0
NOTED_S: Final = 0.02
"""Callbacks that take more CPU time than that are noted."""
PROBE: Final = f"""
import asyncio.events, os, sys, time

Handle = asyncio.events.Handle
run, note = Handle._run, os.environ["REFKUBELET_PROBE"]

def measured(self):
    began = time.thread_time()
    run(self)
    took = time.thread_time() - began
    if took > {NOTED_S}:
        with open(note, "a") as file:
            file.write(f"{{took:.3f}} {{self!r}}\\n")

Handle._run = measured
from refkubelet.cli import main
sys.exit(main())
"""


@dataclass
class World:
    """`outside`: what nothing may touch; `note`: which FIFOs somebody had open; `answers_s`: how
    long /healthz took each time."""

    directory: Path
    cri: FakeCRI
    api: FakeApi
    driver: FakeCsiDriver
    process: asyncio.subprocess.Process
    healthz: str
    read_only: str
    main: str
    outside: Path
    note: Path
    answers_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    async def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """A request that must be answered."""
        answer = await self.api.request(method, path, body=body)
        assert answer.ok, answer.body
        return answer.body

    async def describe_driver(self) -> None:
        spec = {"attachRequired": False, "fsGroupPolicy": "File", "requiresRepublish": True}
        spec |= {"volumeLifecycleModes": ["Ephemeral"]}
        body = {"metadata": {"name": DISKS}, "spec": spec}
        await self.send("POST", "/apis/storage.k8s.io/v1/csidrivers", body)

    async def run_pod(
        self, name: str, source: dict[str, Any], *, runs: bool = True, **main: Any
    ) -> Path:
        """Create a pod of the group with the volume `v` at /v, and wait until it runs, or, without
        `runs`, has its volume: where that is."""
        mounts = [{"name": "v", "mountPath": "/v"}, *main.pop("mounts", [])]
        body = manifest(
            container(volumeMounts=mounts, **main),
            name=name,
            volumes=[{"name": "v", **source}],
            nodeName="n1",
            securityContext={"fsGroup": GROUP},
            terminationGracePeriodSeconds=1,
        )
        made = await self.send("POST", PODS, body)
        pod = NodePaths(self.directory).root / "pods" / made["metadata"]["uid"] / "volumes"
        place = "kubernetes.io~csi/v/mount" if "csi" in source else "kubernetes.io~empty-dir/v"
        started = "StartContainer" if runs else "RunPodSandbox"
        await self.until(lambda: self.cri.count(started, pod=name), f"{started} of {name}")
        return pod / place

    async def delete(self, name: str) -> None:
        await self.send("DELETE", f"{PODS}/{name}")

    async def gone(self, name: str) -> bool:
        return bool((await self.api.request("GET", f"{PODS}/{name}")).status == 404)

    async def until(self, condition: Any, what: str) -> None:
        """Raises AssertionError when that takes too long, or the kubelet has ended."""
        try:
            async with asyncio.timeout(LIMIT_S):
                while not condition():
                    assert self.process.returncode is None, self.log()[-3000:]
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise AssertionError(f"in vain: {what}") from None

    def log(self) -> str:
        return (self.directory / "kubelet.log").read_text()

    def callbacks(self) -> list[tuple[float, str]]:
        """CPU seconds and name of the callbacks that took long, the longest first."""
        file = self.directory / "callbacks"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [(float(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in lines]
        return sorted(found, reverse=True)

    def forget_start(self) -> None:
        """What the start took does not count."""
        (self.directory / "callbacks").unlink(missing_ok=True)
        self.answers_s.clear()

    async def ask_healthz(self) -> None:
        """Ask every `LOOK_S`, until cancelled."""
        clock = RealClock()
        whole = aiohttp.ClientTimeout(LIMIT_S)
        async with aiohttp.ClientSession(timeout=whole) as http:
            while True:
                began_s = clock.monotonic_s()
                try:
                    async with http.get(self.healthz) as answer:
                        await answer.read()
                        if answer.status != 200:
                            self.wrong.append(f"/healthz answers {answer.status}")
                except (aiohttp.ClientError, TimeoutError) as error:
                    self.wrong.append(f"/healthz does not answer: {error!r}")
                self.answers_s.append(clock.monotonic_s() - began_s)
                await asyncio.sleep(LOOK_S)

    async def read(self, url: str) -> bytes:
        """What the kubelet answers there; b"" for an error."""
        whole = aiohttp.ClientTimeout(LIMIT_S)
        with suppress(aiohttp.ClientError, TimeoutError):
            async with (
                aiohttp.ClientSession(timeout=whole) as http,
                http.get(url, ssl=False) as answer,
            ):
                return await answer.read()
        return b""


def _config(paths: NodePaths, ports: tuple[int, int, int]) -> Path:
    main, read_only, healthz = ports
    changes = {
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "featureGates": {"KubeletInUserNamespace": True},
        **{"address": "127.0.0.1", "port": main, "readOnlyPort": read_only},
        "healthzPort": healthz,
        **{"syncFrequency": "1s", "volumeStatsAggPeriod": "1s"},
        **{"containerLogMaxSize": "64Ki", "containerLogMonitorInterval": "3s"},
    }
    config = kubelet_config(paths, changes)
    del config["staticPodPath"]  # no static pods
    paths.config.write_text(json.dumps(config))
    return paths.config


async def _started(
    paths: NodePaths, config: Path, kubeconfig: Path, endpoint: str
) -> asyncio.subprocess.Process:
    with (paths.base / "kubelet.log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROBE, "run", "--config", str(config)),
            *("--hostname-override", "n1", "--root-dir", str(paths.root)),
            *("--kubeconfig", str(kubeconfig), "--container-runtime-endpoint", endpoint),
            stderr=log,
            env={**os.environ, "REFKUBELET_PROBE": str(paths.base / "callbacks")},
        )


@asynccontextmanager
async def attacked_world(directory: Path) -> AsyncIterator[World]:
    """A kubelet that runs and knows the driver."""
    ports = free_port(), free_port(), free_port()
    paths = NodePaths(directory)
    paths.make()
    cri = FakeCRI(node=FakeNode(image_root="/"))
    api, driver = FakeApi(), FakeCsiDriver(DISKS, capabilities=())
    async with AsyncExitStack() as held:
        server = await held.enter_async_context(serve(cri, f"unix://{directory}/cri.sock"))
        http = await held.enter_async_context(await serve_api(api))
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(kubeconfig_of(http.url))
        process = await _started(paths, _config(paths, ports), kubeconfig, server.endpoint)
        held.push_async_callback(end, process)
        registry = ServedRegistry()
        held.push_async_callback(registry.close)
        world = World(
            directory,
            cri,
            api,
            driver=driver,
            process=process,
            healthz=f"http://127.0.0.1:{ports[2]}/healthz",
            read_only=f"http://127.0.0.1:{ports[1]}",
            main=f"https://127.0.0.1:{ports[0]}",
            outside=make_outside(directory / "outside"),
            note=directory / "note",
        )
        await world.describe_driver()
        await world.until(lambda: (paths.root / "plugins_registry").is_dir(), "a start")
        await registry.plug_in(paths.root / "plugins_registry/d.sock", csi_plugin(driver))
        asking = asyncio.create_task(world.ask_healthz())
        try:
            yield world
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
