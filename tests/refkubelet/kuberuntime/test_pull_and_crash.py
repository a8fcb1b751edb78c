"""The crash loop and the pull back-off side by side (BACK-010, BACK-018)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from loops import virtual_loop
from pods import make_pod
from runtime_doubles import Events, Failure, Probes, ScriptedTarget, record, status

from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.manager import RuntimeManager
from simclock import Ids, Rng

pytestmark = pytest.mark.virtual_time


async def test_attempts_that_end_with_a_failed_pull_grow_the_crash_loop_BACK_018_BACK_010(
    tmp_path: Path,
) -> None:
    """A container that died and cannot be pulled again: each allowed attempt doubles its delay, so
    the two waiting reasons take turns. What shows in between is what the last attempt left
    behind."""

    loop = virtual_loop()
    deps = RuntimeDeps(loop.clock, Ids(Rng(0)), Events())
    options = RuntimeOptions(
        root_dir=tmp_path, pod_logs_dir=tmp_path / "logs", container_logs_dir=None
    )
    target = ScriptedTarget(PullImage=Failure(grpc.StatusCode.UNKNOWN, "no"))
    manager = RuntimeManager(CriClient(target), deps, options)
    pod: Any = make_pod({"name": "main", "imagePullPolicy": "Always"})
    died_ns = loop.clock.wall_ns()
    dead = record(pod, "main", "exited", 1, finished_at_ns=died_ns)
    seen = []
    for _ in range(9):
        result = await manager.sync_pod(pod, status(dead), Probes())
        (error,) = result.errors
        left = manager.reason_cache.get("uid-web", "main")
        assert left == (error.reason, error.message)
        delay = error.message.split()[1] if error.reason == "CrashLoopBackOff" else ""
        seen.append((round(loop.clock.monotonic_s()), error.reason, delay))
        await asyncio.sleep(5)
    assert seen == [
        (0, "ErrImagePull", ""),
        (5, "CrashLoopBackOff", "10s"),
        (10, "ErrImagePull", ""),
        (15, "CrashLoopBackOff", "20s"),
        (20, "ImagePullBackOff", ""),
        (25, "CrashLoopBackOff", "40s"),
        (30, "CrashLoopBackOff", "40s"),
        (35, "CrashLoopBackOff", "40s"),
        (40, "ErrImagePull", ""),
    ]
    assert len(target.requests("PullImage")) == 3
