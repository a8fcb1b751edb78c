"""`node.runtime`: the container runtime of the node: faults in its calls, and what happens there
without the kubelet.

The kubelet calls the runtime through a proxy that records calls and applies fault rules; what a
case does here goes past the proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness.expect import Seen
from kubelet_conformance.harness.image_registry import ImageRegistry
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.looked import looked_at
from kubelet_conformance.laws.history import REBOOT


class NodeRuntime:
    """The runtime, real or fake. Pods are named as in their manifests."""

    facet: Final = "runtime."

    def __init__(self, parts: Parts, watch: Watch) -> None:
        self._parts = parts
        self._watch = watch

    @property
    def direct(self) -> Any:
        """The CRI without record and faults (`await node.runtime.direct.call(method, request)`),
        for calls that no kubelet makes."""
        self._watch.plan("outside")
        return self._parts.runtime.direct

    async def asked(self, method: str, request: Any, timeout_s: float) -> Any:
        """The answer of the runtime to a call that changes nothing, without record and faults."""
        return await self._parts.runtime.direct.call(method, request, timeout_s=timeout_s)

    def pod_name(self, pod: str) -> str:
        """The name of that pod in the runtime: that of a static pod ends with the node's
        (SRC-033)."""
        return self._watch.runtime_name(pod)

    @property
    def fake(self) -> Any:
        """The fake runtime itself (fakecri's `FakeCRI`), for what happens to it and for behaviours
        (Feature.BEHAVIORS). Raises RuntimeError under a real runtime."""
        self._watch.plan("outside")
        return self._parts.runtime.fake

    def reboot(self) -> None:
        """Let the machine boot: everything in the runtime has ended. Raises RuntimeError under a
        real runtime."""
        self._watch.plan("outside", REBOOT)
        self._parts.runtime.fake.reboot()

    @property
    def programmed(self) -> Any:
        """The same, to say what containers and pulls do of themselves: nothing happens to the
        runtime. Raises RuntimeError under a real runtime."""
        return self._parts.runtime.fake

    @property
    def proxy(self) -> Any:
        """The proxy before the runtime (fakecri's `RecordingProxy`), for fault rules that choose
        calls by more than pod and container. Pods have their names in the runtime there."""
        self._watch.plan("fault", "*")
        return self._parts.runtime.target

    def on(self, method: str, *, pod: str | None = None, container: str | None = None) -> Any:
        """Disturb these calls of the kubelet (Feature.FAULTS): `.fails(code, text, times=)`,
        `.delays(s)` or `.hangs()` starts a rule, which is a context manager and has `.remove()`.
        `pod` or `container` None: of all."""
        self._watch.plan("fault", method)
        return self._parts.runtime.on(method, pod and self._watch.runtime_name(pod), container)

    def nth_call(self, method: str, nth: int, where: Callable[[Any], bool]) -> Any:
        """The n-th of those of these calls from now on that `where` holds of, for a rule as by
        `on`; nothing is planned: who makes it says what happens."""
        return self._parts.runtime.target.on(method, nth=nth, where=where)

    def away(self) -> AbstractContextManager[object]:
        """A block in which every call of the kubelet fails with UNAVAILABLE."""
        self._watch.plan("fault", "*")
        every_call: AbstractContextManager[object] = self._parts.runtime.on("*", None, None).fails(
            "UNAVAILABLE", "runtime is away"
        )
        return every_call

    async def registry(self) -> ImageRegistry:
        """The case's own image registry, which the runtime pulls from (Feature.REGISTRY)."""
        return await self._parts.runtime.registry()

    async def kill_container(self, container: str, *, pod: str) -> None:
        """End the running container behind the kubelet's back, with exit code 137
        (Feature.OUTSIDE_KILL). Raises RuntimeError when it does not run."""
        self._watch.plan("stopped", self._watch.runtime_name(pod))
        await self._parts.runtime.kill_container(self._watch.runtime_name(pod), container)

    async def stop_sandbox(self, pod: str) -> None:
        """Stop the pod's ready sandbox, and what runs in it, behind the kubelet's back
        (Feature.OUTSIDE_KILL). Raises RuntimeError when it has none."""
        self._watch.plan("stopped", self._watch.runtime_name(pod))
        await self._parts.runtime.stop_sandbox(self._watch.runtime_name(pod))

    async def forget(self, pod: str, container: str | None = None) -> None:
        """Remove the pod's containers and its sandboxes, running or not, behind the kubelet's back;
        with `container` only the containers of that name."""
        own = {"io.kubernetes.pod.name": self._watch.runtime_name(pod)}
        labels = own | ({} if container is None else {"io.kubernetes.container.name": container})
        listing = cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=labels))
        for one in (await self.direct.call("ListContainers", listing)).containers:
            removal = cri.RemoveContainerRequest(container_id=one.id)
            await self.direct.call("RemoveContainer", removal)
        if container is None:
            boxes = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=own))
            for box in (await self.direct.call("ListPodSandbox", boxes)).items:
                await self.direct.call(
                    "RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=box.id)
                )

    @looked_at
    def visits(self, pod: str) -> Sequence[Any]:
        """The connections to the pod's containers (fakecri's `Visit`), in order; their `time_s` is
        of the runtime's clock (Feature.POD_SERVERS)."""
        visits = self._parts.runtime.visits(self._watch.runtime_name(pod))
        return Seen(visits, self._watch, f"visit to {pod}")
