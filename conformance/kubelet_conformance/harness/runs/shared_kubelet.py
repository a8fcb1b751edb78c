"""A kubelet that several cases share at the same time.

It is started once. Each case is a tenant: its pods are in a namespace of their own, in a runtime of
their own; what it sees is its own. When it ends, its pods are removed, and the kubelet must let go
of them: one that does not is not given to further cases.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from fakekubeapi import FakeApi
from kubelet_conformance.harness.kubelets.base import Kubelet, KubeletDied, NodePaths
from kubelet_conformance.harness.limits import Pace
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.runs.case_run import Outcome, Result, run_case
from kubelet_conformance.harness.runs.choice import Traces
from kubelet_conformance.harness.runtimes.fake import FakeRuntime
from kubelet_conformance.harness.sharing.api_view import TenantApi
from kubelet_conformance.harness.sharing.kubelet_view import SharedPods, TenantKubelet, TenantPaths
from kubelet_conformance.harness.sharing.router import CriRouter
from kubelet_conformance.harness.sharing.runtime_view import TenantRuntime
from kubelet_conformance.harness.sharing.tenancy import Tenancy, namespace_of
from kubelet_conformance.registry import Case
from kubeobjects.structs import replace
from simclock import Clock

UNHURRIED: Final = {
    "eventRecordQPS": 1000,
    "eventBurst": 2000,
    "kubeAPIQPS": 1000,
    "kubeAPIBurst": 2000,
    "registryPullQPS": 0,
}
"""What keeps the requests of one tenant from waiting for those of another."""
GONE_WITHIN_S: Final = 60.0
LOOK_S: Final = 0.5


@dataclass(slots=True, kw_only=True)
class SharedKubelet:
    """One that runs. `make_runtime` makes the runtime of a tenant."""

    kubelet: Kubelet
    router: CriRouter
    make_runtime: Callable[[], FakeRuntime]
    api: FakeApi | None
    clock: Clock
    pace: Callable[[Case], Pace]
    paths: NodePaths
    config: dict[str, Any]
    spent: str = ""
    """Why no further case gets it; "" as long as it is as good as a new one."""
    _number: int = 0
    _pods: SharedPods = field(init=False)

    def __post_init__(self) -> None:
        self._pods = SharedPods(self.kubelet)

    async def run(self, case: Case, traces: Traces) -> Result:
        """Run the case beside others. What it says counts if it passed: a case that fails, or must
        be alone, is to be run again with a kubelet of its own."""
        self._number += 1
        tenancy = Tenancy(namespace_of(self._number))
        directory = self._directory(tenancy)
        directory.mkdir()

        result = await run_case(
            case, lambda case, _: self._tenant(case, tenancy), directory, traces
        )
        if result.outcome is not Outcome.PASSED and not tenancy.reasons:
            self.spent = self.spent or f"{case.id} did not pass"
        return replace(result, shared=True, must_be_alone=tuple(tenancy.reasons))

    def _directory(self, tenancy: Tenancy) -> Path:
        """The tenant's own. Its name is not that of the namespace, for which the case reads the
        namespace of its pods."""
        return self.paths.base / f"case{tenancy.namespace.removeprefix(namespace_of(0)[:2])}"

    @asynccontextmanager
    async def _tenant(self, case: Case, tenancy: Tenancy) -> AsyncIterator[Parts]:
        """The parts of a case."""
        runtime = self.make_runtime()
        self.router.enter(tenancy.namespace, runtime.target)
        api = None
        if self.api is not None:
            await self._make_namespace(tenancy.namespace)
            api = TenantApi(self.api, tenancy)
        try:
            yield Parts(
                kubelet=TenantKubelet(self.kubelet, self._pods, tenancy),
                runtime=TenantRuntime(runtime, tenancy),
                api=api,
                clock=self.clock,
                pace=self.pace(case),
                paths=TenantPaths(self._directory(tenancy), self.paths, tenancy),
                config=dict(self.config),
                tenant=tenancy,
            )
        finally:
            await self._remove(tenancy.namespace, runtime)

    async def _make_namespace(self, name: str) -> None:
        assert self.api is not None
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.api.request("POST", "/api/v1/namespaces", body=body)

    async def _remove(self, namespace: str, runtime: FakeRuntime) -> None:
        """End what is left of a tenant, and let the runtime forget its pods when the kubelet has
        let go of them."""
        for rule in runtime.target.rules():
            rule.release()
        for file in self.paths.manifests.glob(f"{namespace}-*"):
            file.unlink()
        with contextlib.suppress(KubeletDied):
            if not await self._gone(namespace, runtime):
                self.spent = self.spent or f"it keeps pods of namespace {namespace}"
        self.router.leave(namespace)
        await runtime.close()

    async def _gone(self, namespace: str, runtime: FakeRuntime) -> bool:
        """Whether the kubelet lets go of the tenant's pods; their containers are ended."""
        until_s = self.clock.monotonic_s() + GONE_WITHIN_S
        while self.clock.monotonic_s() < until_s:
            self._delete_objects(namespace)
            await _end_containers(runtime)
            if not await self._pods.of(namespace):
                return True
            await self.clock.sleep(LOOK_S, slack_s=LOOK_S)
        return False

    def _delete_objects(self, namespace: str) -> None:
        """Delete everything in the namespace, at once."""
        if self.api is None:
            return
        store = self.api.store
        for key in store.namespaced_keys(namespace):
            store.remove(key)


async def _end_containers(runtime: FakeRuntime) -> None:
    """End the running containers of the runtime, as SIGKILL does."""
    listed: Any = await runtime.direct.call("ListContainers", cri.ListContainersRequest())
    for container in listed.containers:
        if container.state == cri.CONTAINER_RUNNING:
            request = cri.StopContainerRequest(container_id=container.id, timeout=0)
            await runtime.direct.call("StopContainer", request)
