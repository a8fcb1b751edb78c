"""The runtime of a tenant: a fake of its own, of which the kubelet sees the pods among others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fakecri.recording.call import Call
from kubelet_conformance.harness.image_registry import ImageRegistry
from kubelet_conformance.harness.manifests import PodPlan
from kubelet_conformance.harness.runtimes.fake import FakeRuntime
from kubelet_conformance.harness.sharing.tenancy import Tenancy

OF_A_POD: Final = frozenset(
    {
        "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus",
        "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer",
        "ContainerStatus", "UpdateContainerResources", "UpdatePodSandboxResources",
        "ReopenContainerLog", "ExecSync", "Exec", "Attach", "PortForward", "PullImage",
    }
)  # fmt: skip
"""Calls that a kubelet makes for one pod, and that concern no other."""
OF_ALL: Final = frozenset(
    {
        "Version", "Status", "RuntimeConfig", "UpdateRuntimeConfig", "ImageFsInfo", "ListImages",
        "RemoveImage", "GetContainerEvents", "ListMetricDescriptors",
    }
)  # fmt: skip
"""Calls that no tenant sees."""
IN_TURN: Final = frozenset({"PodSandboxStatus", "ContainerStatus", "PullImage", "RemovePodSandbox"})
"""Calls that a kubelet may make for one pod after the other: one that takes long holds up all."""


class TenantRuntime:
    """`Runtime` over a fake of the tenant's own; the kubelet reaches it through a `CriRouter`."""

    def __init__(self, own: FakeRuntime, tenancy: Tenancy) -> None:
        self._own = own
        self._tenancy = tenancy
        self._shown: dict[int, OwnCall] = {}
        self.direct = own.direct
        self.endpoint = own.endpoint

    @property
    def target(self) -> Any:
        raise self._tenancy.refuse("fault rules that choose calls by more than pod and container")

    @property
    def fake(self) -> Any:
        raise self._tenancy.refuse("what happens to the runtime itself")

    @property
    def machine(self) -> Any:
        raise self._tenancy.refuse("the machine's numbers")

    def kernel_says(self, line: str) -> None:
        raise self._tenancy.refuse("the kernel's log")

    async def registry(self) -> ImageRegistry:
        return await self._own.registry()

    def calls(self, method: str | None, pod: str | None, container: str | None) -> Sequence[Any]:
        """The kubelet's calls that fit, as it would make them for the case alone."""
        if method in OF_ALL:
            raise self._tenancy.refuse(f"the calls of {method}")
        return [self._call(call) for call in self._own.calls(method, pod, container)]

    def _call(self, call: Call) -> OwnCall:
        shown = self._shown.get(call.seq)
        if shown is None:
            shown = self._shown[call.seq] = OwnCall(call, self._tenancy)
        return shown

    def activity(self) -> int:
        """See `Runtime`."""
        return self._own.activity()

    def on(self, method: str, pod: str | None, container: str | None) -> Any:
        """Start a fault rule for calls about the tenant's pods."""
        if method not in OF_A_POD:
            raise self._tenancy.refuse(f"faults in {method}")
        on = self._own.on(method, pod, container)
        return OwnFaults(on, self._tenancy) if method in IN_TURN else on

    def teach(self, pod: str, plan: PodPlan) -> None:
        self._own.teach(pod, plan)

    def visits(self, pod: str) -> Sequence[Any]:
        return self._own.visits(pod)

    def turned_away(self, pod: str) -> Sequence[Any]:
        return self._own.turned_away(pod)

    async def kill_container(self, pod: str, container: str) -> None:
        await self._own.kill_container(pod, container)

    async def stop_sandbox(self, pod: str) -> None:
        await self._own.stop_sandbox(pod)

    async def close(self) -> None:
        await self._own.close()


class OwnFaults:
    """Fault rules that hold up no call: others would wait meanwhile."""

    def __init__(self, on: Any, tenancy: Tenancy) -> None:
        self.fails, self.changes_answer, self.answers = on.fails, on.changes_answer, on.answers
        self._tenancy = tenancy

    def __getattr__(self, name: str) -> Any:
        raise self._tenancy.refuse(f"{name} of calls that are made for one pod after the other")


class OwnCall:
    """A call (fakecri's `Call`) with the messages that it would have for the case alone."""

    def __init__(self, call: Call, tenancy: Tenancy) -> None:
        self._call = call
        self._tenancy = tenancy
        self._request: Any = None
        self._answer: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    @property
    def request(self) -> Any:
        """See `Call.request`."""
        if self._request is None:
            self._request = self._tenancy.own_message(self._call.request)
        return self._request

    @property
    def response(self) -> Any:
        """See `Call.response`."""
        if self._answer is None and self._call.response is not None:
            self._answer = self._tenancy.own_message(self._call.response)
        return self._answer

    @property
    def namespace(self) -> str:
        """See `Call.namespace`."""
        return self._tenancy.own_text(self._call.namespace)

    def to_dict(self, *, t0_s: float = 0.0) -> dict[str, Any]:
        """See `Call.to_dict`."""
        return self._tenancy.own_object(self._call.to_dict(t0_s=t0_s))

    def __str__(self) -> str:
        return str(self._call)

    def __repr__(self) -> str:
        return repr(self._call)
