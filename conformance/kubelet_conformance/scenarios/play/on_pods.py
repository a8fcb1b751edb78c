"""The steps that concern pods and other objects: files of static pods, requests at the API."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.api_server import NAMESPACE
from kubelet_conformance.harness.manifests import PodPlan
from kubelet_conformance.harness.node.api import MERGE_PATCH, STRATEGIC_MERGE
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.shape.pods import as_text, merged
from kubelet_conformance.scenarios.shape.steps import (
    Apply,
    Create,
    CreateObject,
    Delete,
    DeleteObject,
    Edit,
    Patch,
    PatchNode,
    RenameFile,
    WriteFile,
    sources_of,
)

STRATEGIC_ONLY = ("resize", "ephemeralcontainers")


class Pods:
    """The pods of a running scenario: their manifests as they are now, and their files."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._node = view.node
        self._sources = sources_of(view.scenario.steps)
        self._manifests = {key: pod.manifest(key) for key, pod in view.scenario.pods.items()}
        for key, source in self._sources.items():
            if source == "api":
                self._node.api.will_create(view.name(key))

    def _plan(self, key: str, change: Any = UNSET) -> PodPlan:
        """The pod as it is now, after a change."""
        if change is not UNSET:
            self._manifests[key] = merged(self._manifests[key], change)
        return PodPlan(self._manifests[key])

    async def apply(self, given: Apply | str) -> None:
        step = Apply(pod=given) if isinstance(given, str) else given
        file = None if step.file is UNSET else step.file
        await self._node.apply_static(self._plan(step.pod, step.set), file=file)

    async def edit(self, step: Edit) -> None:
        plan = self._plan(step.pod, step.set)
        if self._sources.get(step.pod) == "static":
            await self._node.apply_static(plan, file=self._node.manifest_file(plan.name))
        else:
            await self._node.api.send("PATCH", self._path(step.pod), step.set, STRATEGIC_MERGE)

    async def remove(self, key: str) -> None:
        await self._node.remove_static(self._view.name(key))

    async def write_file(self, step: WriteFile) -> None:
        change = {} if step.set is UNSET else step.set
        if step.pod is not UNSET:
            text = as_text(merged(self._manifests[step.pod], change))
            self._node.write_manifest(step.file, text)
        elif step.text is not UNSET:
            self._node.write_manifest(step.file, step.text)

    async def rename_file(self, step: RenameFile) -> None:
        self._node.rename_manifest(step.file, step.to)

    async def remove_file(self, file: str) -> None:
        self._node.remove_manifest(file)

    async def create(self, given: Create | str) -> None:
        step = Create(pod=given) if isinstance(given, str) else given
        await self._node.api.create_pod(self._plan(step.pod, step.set))

    async def delete(self, given: Delete | str) -> None:
        step = Delete(pod=given) if isinstance(given, str) else given
        grace_s = None if step.grace is UNSET else int(step.grace)
        await self._node.api.delete_pod(self._view.name(step.pod), grace_s=grace_s)

    async def patch(self, step: Patch) -> None:
        under = "" if step.subresource is UNSET else f"/{step.subresource}"
        strategic = step.strategic or under[1:] in STRATEGIC_ONLY
        kind = STRATEGIC_MERGE if strategic else MERGE_PATCH
        await self._node.api.send("PATCH", self._path(step.pod) + under, step.set, kind)

    async def vanish(self, key: str) -> None:
        self._node.api.vanish_pod(self._view.name(key))

    async def create_object(self, step: CreateObject) -> None:
        await self._node.api.create_object(step.plural, step.manifest)

    async def delete_object(self, step: DeleteObject) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/{step.plural}/{step.name}"
        await self._node.api.send("DELETE", path, {})

    async def patch_node(self, step: PatchNode) -> None:
        await self._node.run_until(
            self._node.api.node_object, within_s=limits.START_S, what="the Node is there"
        )
        await self._node.api.patch_node(step.set, status=step.status)

    async def delete_node(self, _: bool) -> None:
        await self._node.api.delete_node()

    def _path(self, key: str) -> str:
        return f"/api/v1/namespaces/{NAMESPACE}/pods/{self._view.runtime_name(key)}"
