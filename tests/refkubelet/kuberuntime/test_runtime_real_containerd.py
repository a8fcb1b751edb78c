"""The runtime manager on a real containerd: the same facts as on the fake."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pods import make_pod
from runtime_doubles import UID, Events, Probes

from refkubelet.cri.client import CriClient
from refkubelet.cri.records import ContainerState, RuntimePodStatus
from refkubelet.cri.transport import connect
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import (
    MemoryOptions,
    ResourceOptions,
    RuntimeOptions,
)
from refkubelet.kuberuntime.gc import ContainerGC
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.kuberuntime.options_from_config import read_resolv_conf
from refkubelet.kuberuntime.reading.pod_reader import running_pod
from refkubelet.model.objects import Pod
from simclock import Ids, RealClock, Rng

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        os.environ.get("REFKUBELET_CONTAINERD") != "1",
        reason="real containerd: set REFKUBELET_CONTAINERD=1 (needs Docker)",
    ),
]

LOOP = "trap 'exit 0' TERM; while true; do sleep 0.2; done"


class AllMayGo:
    def should_pod_content_be_removed(self, uid: str) -> bool:
        return True

    def should_pod_runtime_be_removed(self, uid: str) -> bool:
        return True


class RealBench:
    """A manager on a real runtime, and one pod synced by hand."""

    def __init__(self, client: CriClient, options: RuntimeOptions) -> None:
        self.events = Events()
        deps = RuntimeDeps(RealClock(), Ids(Rng.from_system()), self.events)
        self.manager = RuntimeManager(client, deps, options)
        self.collector = ContainerGC(client, deps, options, AllMayGo())

    async def status(self) -> RuntimePodStatus:
        return await self.manager.get_pod_status(UID)

    async def sync(self, pod: Pod) -> dict[str, str]:
        """One sync; the reasons of what failed, by container."""
        result = await self.manager.sync_pod(pod, await self.status(), Probes())
        return {e.target: e.reason for e in result.errors}

    async def all_dead(self, *names: str) -> None:
        """Wait until the newest instance of each name has ended."""
        for _ in range(200):
            status = await self.status()
            newest = [status.newest(name) for name in names]
            if all(r is not None and r.state is ContainerState.EXITED for r in newest):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"still alive: {newest}")


@asynccontextmanager
async def real_bench() -> AsyncIterator[RealBench]:
    from kubelet_conformance.harness.containerd.start import start_containerd

    with tempfile.TemporaryDirectory(prefix="rk-", dir="/tmp", ignore_cleanup_errors=True) as work:
        async with start_containerd(Path(work)) as node:
            client, target, version = await connect(node.endpoint)
            assert version.runtime_name == "containerd"
            options = RuntimeOptions(
                root_dir=Path(node.kubelet_root),
                pod_logs_dir=Path(node.log_root),
                container_logs_dir=None,
                resources=ResourceOptions(memory=MemoryOptions(capacity_bytes=8 << 30)),
                dns=read_resolv_conf(""),
            )
            try:
                yield RealBench(client, options)
            finally:
                await target.close()


def shell(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "command": ["/bin/sh", "-c", script], **fields}


async def test_life_of_a_pod_LIFE_130_LIFE_131_LIFE_143_LIFE_145_GC_010() -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "1"]}}}
    pod = make_pod(
        shell("main", LOOP, lifecycle=hook, volumeMounts=[{"name": "e", "mountPath": "/e"}]),
        shell("says", "echo why > /dev/termination-log; exit 3"),
        {"name": "bad", "command": ["/no/such"]},
        {"name": "absent", "image": "localhost/missing:9"},
        init=(shell("first", "true"),),
        volumes=[{"name": "e", "emptyDir": {}}],
        terminationGracePeriodSeconds=5,
    )
    async with real_bench() as bench:
        assert await bench.sync(pod) == {}
        await bench.all_dead("first")
        assert await bench.sync(pod) == {"bad": "RunContainerError", "absent": "ErrImagePull"}
        await bench.all_dead("says", "bad")
        status = await bench.status()
        assert status.ips
        bad, says = status.newest("bad"), status.newest("says")
        assert bad is not None
        assert (bad.exit_code, bad.reason) == (128, "StartError")
        assert says is not None
        assert (says.exit_code, says.message) == (3, "why\n")

        second = await bench.sync(pod)  # the first restart is immediate
        assert second == {"bad": "RunContainerError", "absent": "ImagePullBackOff"}
        await bench.all_dead("says", "bad")
        assert await bench.sync(pod) == {
            "bad": "CrashLoopBackOff",
            "says": "CrashLoopBackOff",
            "absent": "ImagePullBackOff",
        }

        running = running_pod(await bench.status())
        assert (await bench.manager.kill_pod(pod, running)).ok
        assert (await bench.status()).running() == ()
        assert await bench.collector.garbage_collect(all_sources_ready=True) == []
        assert await bench.manager.get_pods(all_states=True) == ()
