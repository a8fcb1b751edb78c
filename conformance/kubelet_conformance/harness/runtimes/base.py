"""The interface of a runtime: a target for the kubelet, the record of its calls, faults, and
changes behind its back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kubelet_conformance.harness.image_registry import ImageRegistry
from kubelet_conformance.harness.manifests import PodPlan


class Runtime(Protocol):
    """One case's view of a runtime. `pod` is always the runtime's name of a pod (`web-node`)."""

    direct: Any
    """The same runtime without record and faults, for calls of the harness itself."""
    endpoint: str
    """`unix:///...` for a kubelet in its own process; "" where there is no socket."""

    def calls(self, method: str | None, pod: str | None, container: str | None) -> Sequence[Any]:
        """The recorded calls (fakecri's `Call`) in order of arrival."""

    def activity(self) -> int:
        """A number that changes when something is seen of the kubelet: a call begins or ends that
        is not among those which every kubelet makes again and again, whatever its pods do."""

    def on(self, method: str, pod: str | None, container: str | None) -> Any:
        """Start a fault rule: `.fails(code, text, times=)`, `.delays(s)`, `.hangs()`."""

    def teach(self, pod: str, plan: PodPlan) -> None:
        """Tell a fake runtime what the plan's containers do; a real one runs their compiled
        commands."""

    def visits(self, pod: str) -> Sequence[Any]:
        """The connections to the containers of that pod (fakecri's `Visit`), in order of arrival;
        only a fake knows them (Feature.POD_SERVERS)."""

    def turned_away(self, pod: str) -> Sequence[Any]:
        """The clients that found nothing on a port of that pod which speaks with them (fakecri's
        `Visit`), likewise; in real time the system refuses them, and nobody knows."""

    @property
    def target(self) -> Any:
        """The recorded `CriTarget`, for a kubelet in this process."""

    @property
    def fake(self) -> Any:
        """The fake runtime (fakecri's `FakeCRI`). Raises RuntimeError under a real one."""

    @property
    def machine(self) -> Any:
        """The fake node (fakecri's `FakeNode`). Raises RuntimeError under a real runtime."""

    def kernel_says(self, line: str) -> None:
        """Write a line into the kernel's log of a fake node. Raises RuntimeError under a real
        runtime."""

    async def kill_container(self, pod: str, container: str) -> None:
        """End the running container with exit code 137, behind the kubelet's back."""

    async def stop_sandbox(self, pod: str) -> None:
        """Stop the pod's ready sandbox, behind the kubelet's back."""

    async def registry(self) -> ImageRegistry:
        """The case's own registry, which this runtime pulls from (Feature.REGISTRY)."""

    async def close(self) -> None:
        """Remove everything that the case has made."""
