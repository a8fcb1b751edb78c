"""A real runtime, shared by all cases: each has a scope of its own and does not see the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubelet_conformance.harness.image_registry import ImageRegistries, ImageRegistry
from kubelet_conformance.harness.manifests import PodPlan
from kubelet_conformance.harness.runtimes.recorded import RecordedRuntime
from kubelet_conformance.harness.runtimes.scope import Scope
from simclock import Clock


class RealRuntime(RecordedRuntime):
    """`Runtime` over any runtime. `upstream`, the connection to it, is shared by all cases.
    `registries` makes image registries that it pulls from; None: it cannot be configured to."""

    def __init__(
        self, upstream: Any, clock: Clock, endpoint: str, registries: ImageRegistries | None = None
    ) -> None:
        self._scope = Scope(upstream)
        self._registries = registries
        self._registry: ImageRegistry | None = None
        super().__init__(self._scope, clock, endpoint)

    def teach(self, pod: str, plan: PodPlan) -> None:
        """Nothing to do: the containers run the compiled commands."""

    def visits(self, pod: str) -> Sequence[Any]:
        raise RuntimeError(
            "connections to real containers are not recorded: the case needs POD_SERVERS"
        )

    def turned_away(self, pod: str) -> Sequence[Any]:
        return self.visits(pod)

    @property
    def fake(self) -> Any:
        raise RuntimeError("a real runtime plays no behaviours: the case needs BEHAVIORS")

    @property
    def machine(self) -> Any:
        raise RuntimeError(
            "the memory and disks of a real node cannot be set: the case needs NODE_RESOURCES"
        )

    def kernel_says(self, line: str) -> None:
        raise RuntimeError(
            "the log of a real kernel cannot be written: the case needs NODE_RESOURCES"
        )

    async def registry(self) -> ImageRegistry:
        if self._registries is None:
            raise RuntimeError("this runtime has no registry to pull from: the case needs REGISTRY")
        if self._registry is None:
            self._registry = await self._registries.make()
        return self._registry

    async def close(self) -> None:
        try:
            await self._scope.clean_up()
        finally:
            if self._registry is not None:
                await self._registry.stop()
