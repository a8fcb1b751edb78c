"""The fake runtime: in this process, and optionally over a socket for a kubelet process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from conformance.harness import played
from conformance.harness.calls import CallIndex
from conformance.harness.manifests import IMAGE, OTHER_IMAGE, PodPlan
from conformance.harness.runtimes.rules import EveryMethod
from conformance.registry import Feature
from fakecri import FakeCRI, registry_of
from fakecri.node import FakeNode
from simtime import Clock, Ids

GIB: Final = 1024**3


class FakeRuntime:
    """`Runtime` over a FakeCRI of its own."""

    features = frozenset({Feature.FAULTS, Feature.OUTSIDE_KILL})

    def __init__(self, clock: Clock, ids: Ids, *, endpoint: str = "") -> None:
        self.machine = FakeNode(memory_bytes=8 * GIB, base_memory_used_bytes=1 * GIB)
        self.cri = FakeCRI(clock, ids, self.machine, images=(IMAGE, OTHER_IMAGE), registry=registry_of(()))
        self.target = self.cri
        self.direct = self.cri  # recorded all the same; the harness itself never stops a pod
        self._index = CallIndex(self.cri.recorder)
        self.endpoint = endpoint
        self._taught: dict[str, list[Any]] = {}

    def calls(self, method: str | None, pod: str | None, container: str | None) -> Sequence[Any]:
        return self._index.select(method, pod, container)

    def on(self, method: str, pod: str | None, container: str | None) -> Any:
        if method == "*":
            return EveryMethod(self.cri, pod, container)
        return self.cri.on(method, pod=pod, container=container)

    def teach(self, pod: str, plan: PodPlan) -> None:
        """The plan's behaviours hold for containers started from now on."""
        for rule in self._taught.pop(pod, []):
            rule.remove()
        self._taught[pod] = played.teach(self.cri, pod, plan)

    def leave_memory(self, free_bytes: int) -> None:
        used_by_containers = self.machine.usage().memory_bytes
        self.machine.base_memory_used_bytes = (
            self.machine.memory_bytes - used_by_containers - free_bytes
        )

    def leave_disk(self, free_bytes: int) -> None:
        disk = self.machine.filesystems["/"]
        usage = self.machine.usage()
        taken = usage.writable_bytes + usage.image_bytes
        disk.base_used_bytes = disk.capacity_bytes - taken - free_bytes

    async def kill_container(self, pod: str, container: str) -> None:
        self.cri.kill(container=container, pod=pod, exit_code=137)

    async def stop_sandbox(self, pod: str) -> None:
        self.cri.kill_sandbox(pod=pod)

    async def close(self) -> None:
        """Nothing outlives the object."""
