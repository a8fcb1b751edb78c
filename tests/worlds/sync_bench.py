"""A runtime manager over a scripted CRI target, for tests of whole syncs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loops import virtual_loop
from runtime_doubles import (
    Events,
    Probes,
    ScriptedTarget,
)

from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import PodFacts, RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.kuberuntime.results import PodSyncResult
from simclock import Ids, Rng


class Bench:
    """A runtime manager over a scripted target, in virtual time."""

    def __init__(self, root: Path, *, terminating: bool = False, **answers: Any) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.target = ScriptedTarget(**answers)
        self.events = Events()
        options = RuntimeOptions(
            root_dir=root / "kubelet", pod_logs_dir=root / "logs", container_logs_dir=None
        )
        deps = RuntimeDeps(
            self.clock, Ids(Rng(0)), self.events, pods=PodFacts(lambda pod_uid: terminating)
        )
        self.manager = RuntimeManager(CriClient(self.target), deps, options)

    async def sync(
        self, pod: Any, state: Any, probes: Probes | None = None, **more: Any
    ) -> PodSyncResult:
        return await self.manager.sync_pod(pod, state, probes or Probes(), **more)
