"""The node a case sees: pods, faults, time and observations; no kubelet, no runtime behind it.

What is seen stands in `ObservedNode`, what the machine does in `NodeMachine`; here is what a case
does with pods, the kubelet, the runtime and the API. What must never happen here: a case can reach
the kubelet's inside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.harness import limits, machine
from conformance.harness.expect import failure
from conformance.harness.kubelets.base import KubeletDied
from conformance.harness.manifests import Container, PodPlan
from conformance.harness.node_machine import NodeMachine

if TYPE_CHECKING:
    from conformance.harness.registry import Registry
    from conformance.harness.setup import Parts


class Node(NodeMachine):
    """One node with one kubelet under test."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._files: dict[str, str] = {}  # static pod -> manifest file

    @property
    def cri(self) -> Any:
        """The runtime without record and faults, for things no kubelet asked for."""
        return self._parts.runtime.direct

    # --- pods -----------------------------------------------------------------------------

    async def apply_static(self, plan: PodPlan, *, file: str | None = None) -> None:
        """Write (or overwrite) the manifest of a static pod; `file` defaults to `<name>.yaml`."""
        self._files[plan.name] = file or f"{plan.name}.yaml"
        self._parts.runtime.teach(self.runtime_name(plan.name), plan)
        self._parts.write_manifest(self._files[plan.name], plan.manifest)

    async def remove_static(self, name: str) -> None:
        """Remove the manifest of that pod."""
        (self._parts.paths.manifests / self._files[name]).unlink()

    def write_file(self, file: str, text: str) -> None:
        """Put any text into the manifest directory; `file` may name a sub-directory."""
        self._parts.write_text(file, text)

    async def create_pod(self, plan: PodPlan) -> None:
        """Create the pod at the API, bound to this node."""
        self._api_pods.add(plan.name)
        self._parts.runtime.teach(plan.name, plan)
        spec = {**plan.manifest["spec"], "nodeName": self.name}
        await self._parts.the_api().create({**plan.manifest, "spec": spec})

    async def run_pods(self, *plans: PodPlan) -> None:
        """Create the pods at the API and run until all are Running there."""
        for plan in plans:
            await self.create_pod(plan)
        await self.run_until(
            lambda: all(self.api_phase(plan.name) == "Running" for plan in plans),
            within_s=limits.START_S,
            what="all pods Running",
        )

    async def delete_pod(self, name: str, *, grace_s: int | None = None) -> None:
        """Delete the pod (or mirror pod) at the API; grace None: the pod's own."""
        await self._parts.the_api().delete(self.runtime_name(name), grace_s)

    def vanish_pod(self, name: str) -> None:
        """The pod is gone from the API without having been deleted: kubelets miss it when they list
        the pods the next time, which they have to do at once."""
        self._parts.the_api().vanish(self.runtime_name(name))

    async def patch_pod(self, name: str, patch: Mapping[str, Any], *, status: bool = False) -> None:
        """Merge-patch the pod (or mirror pod) at the API, as a user would."""
        await self._parts.the_api().patch(self.runtime_name(name), patch, status=status)

    async def debug(self, plan: PodPlan, *containers: Container, target: str = "") -> None:
        """Add ephemeral containers to a pod at the API, in the process namespace of `target`."""
        self._parts.runtime.teach(plan.name, replace(plan, containers=plan.containers + containers))
        aimed = {"targetContainerName": target} if target else {}
        manifests = [{**c.manifest, **aimed} for c in containers]
        await self._parts.the_api().debug(plan.name, manifests)

    async def resize_pod(
        self, name: str, container: str, resources: Mapping[str, Any], *, init: bool = False
    ) -> None:
        """Change the resources of a container at the API, in place."""
        group = "initContainers" if init else "containers"
        wanted = {"name": container, "resources": resources}
        await self._parts.the_api().resize(name, {group: [wanted]})

    async def resize_containers(self, name: str, wanted: Mapping[str, Any]) -> None:
        """The same for several at once: name -> resources."""
        containers = [{"name": each, "resources": wanted[each]} for each in wanted]
        await self._parts.the_api().resize(name, {"containers": containers})

    async def resize_whole_pod(self, name: str, resources: Mapping[str, Any]) -> None:
        """Change the pod's own resources at the API, in place."""
        await self._parts.the_api().resize(name, {"resources": resources})

    # --- other objects at the API, and the server -----------------------------------------

    async def create_secret(self, manifest: Mapping[str, Any]) -> None:
        """Create the Secret at the API."""
        await self._parts.the_api().create_secret(manifest)

    async def create_object(self, plural: str, manifest: Mapping[str, Any]) -> None:
        """Create another object at the API, for example of `configmaps` or `services`."""
        await self._parts.the_api().create_object(plural, manifest)

    async def create_runtime_class(self, name: str, handler: str) -> None:
        """Create a RuntimeClass at the API."""
        await self._parts.the_api().create_runtime_class(name, handler)

    def api_fails(self, method: str, path: str) -> Any:
        """A block in which the API server answers 500 to these requests; `path`: a regular
        expression."""
        return self._parts.the_api().fake.fails(method, path)

    def api_slow(self, method: str, path: str, delay_s: float) -> Any:
        """A block in which the API server handles these requests so many seconds after they came;
        `path`: a regular expression."""
        return self._parts.the_api().fake.delays(method, path, delay_s)

    def api_down(self) -> Any:
        """A block in which the API server is not there."""
        return self._parts.the_api().fake.down()

    # --- the kubelet ----------------------------------------------------------------------

    async def stop_kubelet(self) -> None:
        """Stop the kubelet as a service manager does; containers keep running."""
        await self._parts.kubelet.stop()

    async def kill_kubelet(self) -> None:
        """Kill the kubelet without warning."""
        await self._parts.kubelet.kill()

    async def start_kubelet(self, **config: Any) -> None:
        """Start the kubelet (again); `config`: KubeletConfiguration fields changed from now on."""
        self._parts.config.update(config)
        await self._parts.kubelet.start(self._parts.config)
        self._kubelet_since_s = self.now_s

    async def restart_kubelet(self, **config: Any) -> None:
        """Stop and start."""
        await self.stop_kubelet()
        await self.start_kubelet(**config)

    async def refused_start(self, **config: Any) -> str:
        """Stop the kubelet and start it with these fields, which it must not accept: its last
        words. Afterwards none runs."""
        await self.stop_kubelet()
        try:
            await self._parts.kubelet.start({**self._parts.config, **config})
            await self.run_for(limits.START_S + self.slack_s)
        except KubeletDied as died:
            await self._parts.kubelet.close()
            return str(died)
        raise failure(self, f"a kubelet that does not start with {config}", "it runs")

    @asynccontextmanager
    async def pressure(self, signal: str) -> AsyncIterator[None]:
        """Restart the kubelet with a hard threshold for `signal` that the node is far below, and
        again with the case's own thresholds at the end (Feature.PRESSURE)."""
        before = self._parts.config.get("evictionHard", {})
        await self.restart_kubelet(evictionHard={signal: "99.9%"})
        yield
        await self.restart_kubelet(evictionHard=before)

    async def separate_disks(self, *, split: bool = False, restart: bool = True) -> None:
        """Give images and writable layers a disk of their own (`split`: the images alone), and
        restart the kubelet, which looks at that only once."""
        machine.separate_disks(self._parts.runtime.machine, split=split)
        if restart:
            await self.restart_kubelet()

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """The answer of the pod-resources API to List, GetAllocatableResources or Get. Raises
        LookupError with the kubelet's words for a pod that it does not know."""
        return await self._parts.kubelet.pod_resources(method, **fields)

    # --- the runtime ----------------------------------------------------------------------

    def on(self, method: str, *, pod: str | None = None, container: str | None = None) -> Any:
        """Make calls of the kubelet misbehave: `.fails(code, text, times=)`, `.delays(s)`,
        `.hangs()`; the rule is a context manager and has `.remove()`."""
        return self._parts.runtime.on(method, pod and self.runtime_name(pod), container)

    def runtime_away(self) -> Any:
        """A block in which every call of the kubelet fails with UNAVAILABLE."""
        return self._parts.runtime.on("*", None, None).fails("UNAVAILABLE", "runtime is away")

    async def registry(self) -> Registry:
        """The case's own registry, which the runtime pulls from (Feature.REGISTRY)."""
        return await self._parts.runtime.registry()

    async def kill_container(self, container: str, *, pod: str) -> None:
        """End the running container behind the kubelet's back (exit 137)."""
        await self._parts.runtime.kill_container(self.runtime_name(pod), container)

    async def stop_sandbox(self, pod: str) -> None:
        """Stop the pod's ready sandbox, and what runs in it, behind the kubelet's back."""
        await self._parts.runtime.stop_sandbox(self.runtime_name(pod))

    # --- device plugins -------------------------------------------------------------------

    async def plug_in(self, plugin: Any, *, faithful: bool = True) -> None:
        """Start a device plugin (fakecri's FakeDevicePlugin) and register it, as soon as the
        kubelet takes it; what a kubelet says that refuses it is in `plugin.refusals`. A faithful
        one comes back after a restart of the kubelet (Feature.DEVICE_PLUGINS)."""
        from fakecri.errors import CriError

        deadline_s = self.now_s + limits.REGISTER_S
        before = len(plugin.refusals)
        while True:
            try:
                await self._parts.plugins.start(plugin, faithful=faithful)
                return
            except CriError as error:
                if len(plugin.refusals) > before:
                    return
                if self.now_s >= deadline_s:
                    raise failure(self, "a kubelet that takes registrations", str(error)) from None
            await self._parts.plugins.stop(plugin)
            await self._tick(self._pace.tick_s)

    async def unplug(self, plugin: Any) -> None:
        """The device plugin dies."""
        await self._parts.plugins.stop(plugin)

    @property
    def plugins_dir(self) -> Path:
        """The device-plugins directory, where the kubelet keeps its checkpoint of devices."""
        default = self._parts.paths.root / "device-plugins"
        return Path(getattr(self._parts.plugins, "directory", default))
