"""A real runtime behind the recording proxy, one scope a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from criapi.v1 import api_pb2 as cri
from fakecri.proxy import RecordingProxy

from conformance.harness.calls import CallIndex
from conformance.harness.manifests import PodPlan
from conformance.harness.runtimes.rules import EveryMethod
from conformance.harness.scope import Scope
from conformance.registry import Feature
from simtime import Clock

NAME, CONTAINER = "io.kubernetes.pod.name", "io.kubernetes.container.name"
HANDS_TIMEOUT_S = 60.0


class RealRuntime:
    """`Runtime` over any runtime's socket. `upstream` is shared by all cases."""

    features = frozenset({Feature.FAULTS, Feature.OUTSIDE_KILL})
    machine = None

    def __init__(self, upstream: Any, clock: Clock, endpoint: str) -> None:
        self._scope = Scope(upstream)
        self._proxy = RecordingProxy(self._scope, clock=clock)
        self.target = self._proxy
        self.direct = self._scope
        self._index = CallIndex(self._proxy.recorder)
        self.endpoint = endpoint

    def calls(self, method: str | None, pod: str | None, container: str | None) -> Sequence[Any]:
        return self._index.select(method, pod, container)

    def on(self, method: str, pod: str | None, container: str | None) -> Any:
        if method == "*":
            return EveryMethod(self._proxy, pod, container)
        return self._proxy.on(method, pod=pod, container=container)

    def teach(self, pod: str, plan: PodPlan) -> None:
        """Nothing to do: the containers run the compiled commands."""

    def leave_memory(self, free_bytes: int) -> None:
        raise RuntimeError("the memory of a real node cannot be set: needs NODE_RESOURCES")

    def leave_disk(self, free_bytes: int) -> None:
        raise RuntimeError("the disk of a real node cannot be set: needs NODE_RESOURCES")

    async def kill_container(self, pod: str, container: str) -> None:
        """StopContainer without grace: the process gets SIGKILL."""
        running = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
        labels = {NAME: pod, CONTAINER: container}
        wanted = cri.ContainerFilter(state=running, label_selector=labels)
        listed: Any = await self._call("ListContainers", cri.ListContainersRequest(filter=wanted))
        for found in listed.containers:
            await self._call(
                "StopContainer", cri.StopContainerRequest(container_id=found.id, timeout=0)
            )

    async def stop_sandbox(self, pod: str) -> None:
        ready = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
        wanted = cri.PodSandboxFilter(state=ready, label_selector={NAME: pod})
        listed: Any = await self._call("ListPodSandbox", cri.ListPodSandboxRequest(filter=wanted))
        for found in listed.items:
            await self._call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=found.id))

    async def _call(self, method: str, request: Any) -> Any:
        return await self.direct.call(method, request, timeout_s=HANDS_TIMEOUT_S)

    async def close(self) -> None:
        await self._scope.clean_up()
