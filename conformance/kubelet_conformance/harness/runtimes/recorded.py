"""The common part of all runtimes: a proxy that records calls and applies fault rules.

The kubelet calls the proxy. The harness, when it kills a container or stops a sandbox, calls the
runtime behind it, so its calls are neither recorded nor subject to fault rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from fakecri.proxy import RecordingProxy
from kubelet_conformance.harness.runtimes.call_index import CallIndex
from kubelet_conformance.harness.runtimes.rules import EveryMethod
from simclock import Clock, Latency

NAME: Final = "io.kubernetes.pod.name"
CONTAINER: Final = "io.kubernetes.container.name"
HANDS_TIMEOUT_S: Final = 60.0
REGULAR: Final = frozenset(
    {
        "Version", "Status", "RuntimeConfig", "ListPodSandbox", "ListContainers", "ListImages",
        "ImageFsInfo", "ListContainerStats", "ListPodSandboxStats", "ListMetricDescriptors",
        "ListPodSandboxMetrics",
    }
)  # fmt: skip
"""Calls that a kubelet makes again and again, whatever its pods do."""


class RecordedRuntime:
    """The common part of every `Runtime`; `behind` is the target that the proxy stands in front
    of."""

    def __init__(
        self, behind: Any, clock: Clock, endpoint: str, latency: Latency | None = None
    ) -> None:
        """`latency`: how long the kubelet's calls take beside what `behind` takes."""
        self.direct = behind
        self.target = RecordingProxy(behind, clock=clock, latency=latency)
        self.endpoint = endpoint
        self._index = CallIndex(self.target.recorder)

    def calls(self, method: str | None, pod: str | None, container: str | None) -> Sequence[Any]:
        """The kubelet's calls that fit, in order of arrival."""
        return self._index.select(method, pod, container)

    def activity(self) -> int:
        """See `Runtime`."""
        return self._index.beginnings_and_ends(but=REGULAR)

    def on(self, method: str, pod: str | None, container: str | None) -> Any:
        """Start a fault rule; method `*`: on every call."""
        if method == "*":
            return EveryMethod(self.target, pod, container)
        return self.target.on(method, pod=pod, container=container)

    async def kill_container(self, pod: str, container: str) -> None:
        """Stop the container without grace, so that its process gets SIGKILL. Raises RuntimeError
        when it does not run."""
        running = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
        labels = {NAME: pod, CONTAINER: container}
        query = cri.ContainerFilter(state=running, label_selector=labels)
        listed: Any = await self._call("ListContainers", cri.ListContainersRequest(filter=query))
        if not listed.containers:
            raise RuntimeError(f"no running container {container} of pod {pod} to kill")
        for running_container in listed.containers:
            request = cri.StopContainerRequest(container_id=running_container.id, timeout=0)
            await self._call("StopContainer", request)

    async def stop_sandbox(self, pod: str) -> None:
        """Stop the pod's ready sandbox, and with it its containers. Raises RuntimeError when there
        is none."""
        ready = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
        query = cri.PodSandboxFilter(state=ready, label_selector={NAME: pod})
        listed: Any = await self._call("ListPodSandbox", cri.ListPodSandboxRequest(filter=query))
        if not listed.items:
            raise RuntimeError(f"no ready sandbox of pod {pod} to stop")
        for sandbox in listed.items:
            request = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox.id)
            await self._call("StopPodSandbox", request)

    async def _call(self, method: str, request: Any) -> Any:
        return await self.direct.call(method, request, timeout_s=HANDS_TIMEOUT_S)
