"""What a tenant sees of the kubelet that it shares: its own pods."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.harness.api_server import NAMESPACE
from kubelet_conformance.harness.kubelets.base import HttpAnswer, HttpRequest, Kubelet, NodePaths
from kubelet_conformance.harness.sharing.tenancy import Tenancy
from kubeobjects.structs import replace

OF_A_POD: Final = re.compile(rf"/(containerLogs|exec|attach|portForward|run)/{NAMESPACE}/")
"""What the kubelet's own server does for one pod."""
OF_NOBODY: Final = re.compile(r"/healthz(/\w+)?(\?.*)?")


class SharedPods:
    """The pods in `/pods` by namespace. Those who ask while an answer is under way share the next
    one."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._next: asyncio.Task[dict[str, list[dict[str, Any]]]] | None = None
        self._turn = asyncio.Lock()

    async def of(self, namespace: str) -> list[dict[str, Any]]:
        """The pods of that namespace, asked for now. Raises KubeletDied."""
        if self._next is None:
            self._next = asyncio.create_task(self._look())
        by_namespace = await asyncio.shield(self._next)
        return by_namespace.get(namespace, [])

    async def _look(self) -> dict[str, list[dict[str, Any]]]:
        async with self._turn:
            self._next = None  # who asks from now on may want to see what is newer
            by_namespace: dict[str, list[dict[str, Any]]] = {}
            for pod in await self._kubelet.pods():
                by_namespace.setdefault(pod["metadata"].get("namespace", ""), []).append(pod)
        return by_namespace


class TenantKubelet:
    """`Kubelet` of a tenant: it runs already, and is not the tenant's to stop."""

    def __init__(self, whole: Kubelet, pods: SharedPods, tenancy: Tenancy) -> None:
        self._whole = whole
        self._pods = pods
        self._tenancy = tenancy
        self._started = False

    async def start(self, config: Mapping[str, Any], flags: Sequence[str] = ()) -> None:
        if self._started:
            raise self._tenancy.refuse("another start of the kubelet")
        self._started = True

    async def stop(self) -> None:
        raise self._tenancy.refuse("the end of the kubelet")

    async def kill(self) -> None:
        await self.stop()

    async def close(self) -> None:
        """Nothing to do: others use the kubelet."""

    def log_lines(self) -> Sequence[str]:
        """What it has logged, of all its tenants."""
        return [self._tenancy.own_text(line) for line in self._whole.log_lines()]

    async def pods(self) -> Sequence[dict[str, Any]]:
        """The tenant's pods in `/pods`. Raises KubeletDied."""
        own = await self._pods.of(self._tenancy.namespace)
        return [self._tenancy.own_object(pod) for pod in own]

    async def pod_resources(self, method: str, **fields: str) -> Any:
        raise self._tenancy.refuse("the pod-resources API")

    async def http(self, request: HttpRequest) -> HttpAnswer:
        """See `Kubelet`; of the tenant's own pods, or of nobody's."""
        path = request.path
        if OF_A_POD.match(path):
            path = path.replace(f"/{NAMESPACE}/", f"/{self._tenancy.namespace}/", 1)
        elif not OF_NOBODY.fullmatch(path):
            raise self._tenancy.refuse(f"{path} of the kubelet's own server")
        answer = await self._whole.http(replace(request, path=path))
        return replace(answer, text=self._tenancy.own_text(answer.text))

    async def summary(self) -> dict[str, Any]:
        raise self._tenancy.refuse("the statistics of the node")


class TenantPaths(NodePaths, frozen=True):
    """The directories of a tenant: `base` is its own, the kubelet's root and its manifests are
    shared."""

    whole: NodePaths
    tenancy: Tenancy

    @property
    def manifests(self) -> Path:
        return self.whole.manifests

    @property
    def root(self) -> Path:
        return self.whole.root

    @property
    def logs(self) -> Path:
        raise self.tenancy.refuse("the directory of pod logs")

    @property
    def log_links(self) -> Path:
        raise self.tenancy.refuse("the directory of links to logs")

    @property
    def links_below_root(self) -> Path:
        raise self.tenancy.refuse("the directory of links to logs")

    @property
    def client_ca(self) -> Path:
        raise self.tenancy.refuse("client certificates")

    @property
    def pki(self) -> Path:
        raise self.tenancy.refuse("the kubelet's certificates")

    @property
    def login_config(self) -> Path:
        raise self.tenancy.refuse("login plug-ins")

    @property
    def login_programs(self) -> Path:
        raise self.tenancy.refuse("login plug-ins")

    def make(self) -> None:
        """Nothing to make: the kubelet's directories are there."""
